#include <string.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "step/compile/build_parts.h"

#define TICK_S 1.0
#define MAX_SAID (UINT64_C(32) << 20) /* the end of it has what matters */

/* A running command, its observer, and the memory pressure meanwhile. */
struct watched {
	const struct build_observer *observer;
	bool several;
	struct jobs_pressure pressure;
	double pressed; /* pressure at which it was stopped, in percent; 0: it was not */
};

static void on_line(const char *line, size_t len, void *user)
{
	const struct build_observer *o = ((const struct watched *)user)->observer;
	if (o && o->line)
		o->line(line, len, o->user);
}

static int on_tick(pid_t pid, void *user, struct err *e)
{
	struct watched *w = user;
	(void)pid;
	if (w->observer && w->observer->tick)
		w->observer->tick(w->observer->user);
	if (!w->several)
		return 0;
	double full = machine_pressure();
	if (!jobs_pressed(&w->pressure, full, log_seconds()))
		return 0;
	w->pressed = full;
	return err_set(e, ERR_SYSTEM, "memory pressure");
}

/* What the command wrote into the log, from `offset` on, or the end of that. */
static void read_output(const char *build_dir, uint64_t offset, struct arena *a, struct build_log *ret)
{
	AUTO_BUF struct buf log = {0};
	struct stat st;
	AUTO_FD int fd = fs_open(build_dir, BUILD_LOG, &st, ERR_IGNORED);
	uint64_t size = fd < 0 ? 0 : (uint64_t)st.st_size;
	if (size > MAX_SAID && offset < size - MAX_SAID)
		offset = size - MAX_SAID;
	if (offset < size && lseek(fd, (off_t)offset, SEEK_SET) >= 0 &&
	    fs_read_fd(fd, BUILD_LOG, MAX_SAID, &log, ERR_IGNORED) < 0)
		buf_reset(&log);
	for (size_t i = 0; i < log.len; i++)
		if (log.data[i] == '\0')
			log.data[i] = ' ';
	build_log_read(buf_cstr(&log), log.len, a, ret);
}

/* Whether it failed for lack of memory, and what showed that. */
static bool was_short(const struct build_log *said, uint64_t killed, struct build_outcome *out)
{
	const char *unit = said->unit ? said->unit : "";
	const char *colon = said->unit ? ": " : "";
	if (!said->killed && killed == 0)
		return false;
	if (said->killed)
		snprintf(out->why, sizeof(out->why), "%s%s%s", unit, colon, said->killed);
	else
		snprintf(out->why, sizeof(out->why), "%s%sthe kernel killed %llu process%s for memory", unit, colon,
			 (unsigned long long)killed, killed == 1 ? "" : "es");
	return true;
}

int build_command_run(const struct build_command *c, bool several, const struct run *run, struct build_outcome *ret,
		      struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct build_observer *o = c->q->observer;
	struct watched w = {.observer = o, .several = several};
	struct build_outcome out = {0};
	struct build_log said;
	struct stat st;
	uint64_t offset = fs_stat(c->q->build_dir, BUILD_LOG, &st) == 0 ? (uint64_t)st.st_size : 0;
	struct proc_spec spec = {.log_top = c->q->build_dir,
				 .log_path = BUILD_LOG,
				 .on_line = on_line,
				 .user = &w,
				 .on_tick = on_tick,
				 .tick_user = &w,
				 .tick_s = TICK_S};
	uint64_t kills = machine_oom_kills();
	double start = log_seconds();
	if (o && o->begin)
		o->begin(c->step, o->user);
	int r = sandbox_run(c->sandbox, c->argv, &spec, run, &out.proc, e);
	if (o && o->end)
		o->end(o->user);
	out.seconds = log_seconds() - start;
	uint64_t after = machine_oom_kills();
	if (w.pressed > 0) {
		err_clear(e);
		out.short_of_memory = true;
		snprintf(out.why, sizeof(out.why),
			 "memory was so short for %.0f s that all processes were stalled %.0f %% of the time",
			 JOBS_PRESSURE_S, w.pressed);
	} else if (r != 0) {
		return err_wrap(e, "%s: %s", c->q->plan->package, c->step);
	} else if (out.proc.status != 0) {
		read_output(c->q->build_dir, offset, &a, &said);
		out.short_of_memory = was_short(&said, after > kills ? after - kills : 0, &out);
		if (!out.short_of_memory)
			return build_failure(c, &said, out.proc.status, e);
	}
	*ret = out;
	return 0;
}
