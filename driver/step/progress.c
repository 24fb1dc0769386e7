#include "step/progress.h"

#include <stdio.h>

static void begin(const char *command, void *user)
{
	struct progress *p = user;
	p->step = command;
	p->since = log_seconds();
	p->done = p->all = 0;
}

static void show(void *user)
{
	const struct progress *p = user;
	if (p->all > 0)
		log_status(p->log, "%s: %s %u/%u (%u%%), %.0f s", p->package, p->step, p->done, p->all, p->done * 100 / p->all,
			   log_seconds() - p->since);
}

static void line(const char *text, size_t len, void *user)
{
	struct progress *p = user;
	unsigned done, all;
	(void)len;
	if (sscanf(text, "[%u/%u]", &done, &all) != 2 || all == 0)
		return;
	p->done = done;
	p->all = all;
	show(p);
}

static void end(void *user)
{
	const struct progress *p = user;
	log_status_end(p->log);
}

void progress_init(struct progress *p, struct log *log, const char *package)
{
	*p = (struct progress){
		.log = log, .package = package, .observer = {.begin = begin, .line = line, .tick = show, .end = end, .user = p}};
}
