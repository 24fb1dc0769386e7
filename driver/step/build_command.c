#include <string.h>

#include "base/fs.h"
#include "step/build_parts.h"

/* What a running build tells about itself, line by line. */
struct watch {
	const struct build_command *command;
	struct log *log;
	double since;
};

static void watch_line(const char *line, size_t len, void *user)
{
	struct watch *w = user;
	unsigned done, all;
	char head[64];
	snprintf(head, sizeof(head), "%.*s", (int)(len < 63 ? len : 63), line);
	if (sscanf(head, "[%u/%u]", &done, &all) == 2 && all > 0)
		log_status(w->log, "%s: %s %u/%u (%u%%), %.0f s", w->command->q->plan->package, w->command->step, done, all,
			   done * 100 / all, log_seconds() - w->since);
}

int build_command_run(const struct build_command *c, const struct run *run, struct proc_result *ret, struct err *e)
{
	struct watch w = {.command = c, .log = run->log, .since = log_seconds()};
	struct stat st;
	uint64_t offset = stat(c->log, &st) == 0 ? (uint64_t)st.st_size : 0;
	struct proc_spec spec = {.log_path = c->log, .on_line = watch_line, .user = &w};
	int r = sandbox_run(c->sandbox, c->argv, &spec, run, ret, e);
	log_status_end(run->log);
	if (r != 0)
		return err_wrap(e, "%s: %s", c->q->plan->package, c->step);
	return ret->status == 0 ? 0 : build_failure(c, offset, ret->status, e);
}
