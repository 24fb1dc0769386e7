#include <string.h>

#include "base/fs.h"
#include "step/build_parts.h"

#define TICK_S 1.0

/* One running command and who watches it. */
struct watched {
	const struct build_observer *observer;
};

static void tell_line(const char *line, size_t len, void *user)
{
	const struct build_observer *o = ((const struct watched *)user)->observer;
	if (o && o->line)
		o->line(line, len, o->user);
}

static int tell_tick(pid_t pid, void *user, struct err *e)
{
	const struct build_observer *o = ((const struct watched *)user)->observer;
	(void)pid;
	(void)e;
	if (o && o->tick)
		o->tick(o->user);
	return 0;
}

int build_command_run(const struct build_command *c, const struct run *run, struct proc_result *ret, struct err *e)
{
	const struct build_observer *o = c->q->observer;
	struct watched w = {.observer = o};
	struct stat st;
	uint64_t offset = stat(c->log, &st) == 0 ? (uint64_t)st.st_size : 0;
	struct proc_spec spec = {
		.log_path = c->log, .on_line = tell_line, .user = &w, .on_tick = tell_tick, .tick_user = &w, .tick_s = TICK_S};
	if (o && o->begin)
		o->begin(c->step, o->user);
	int r = sandbox_run(c->sandbox, c->argv, &spec, run, ret, e);
	if (o && o->end)
		o->end(o->user);
	if (r != 0)
		return err_wrap(e, "%s: %s", c->q->plan->package, c->step);
	return ret->status == 0 ? 0 : build_failure(c, offset, ret->status, e);
}
