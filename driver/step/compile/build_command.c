#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "step/compile/build_parts.h"

/* Less than this left on the disk of the build tree counts as full. */
#define FULL_BYTES (UINT64_C(256) << 10)
#define RESUMES "the build tree is kept; the same command resumes the build"

static bool has_ninja(const char *src, const char *dir, struct arena *a)
{
	return fs_exists(src, path_join(a, dir, "build.ninja"));
}

/* The directory below src whose build.ninja makes the unit, relative to src; NULL if unknown.
 * CMake names units relative to its build directory, extensions of torch name them by full path. */
static const char *ninja_dir(const char *build_dir, const char *unit, struct arena *a)
{
	const char *src = path_join(a, build_dir, "src");

	if (*unit == '/') {
		/* without a sandbox: the tree's path on the host */
		const char *inside = path_below(unit, SANDBOX_SRC);
		if (!inside && !(inside = path_below(unit, src)))
			return NULL;
		for (const char *dir = path_dir(a, inside);
		     strcmp(dir, ".") != 0 && *dir && *dir != '/'; dir = path_dir(a, dir))
			if (has_ninja(src, dir, a))
				return dir;
		return NULL;
	}

	struct strlist names = {0};
	if (fs_exists(build_dir, BUILD_NINJA))
		return "build";
	if (fs_list(build_dir, BUILD_TREE, a, &names, ERR_IGNORED) < 0)
		return NULL;
	for (size_t i = 0; i < names.count; i++) {
		const char *dir = path_join(a, "build", names.items[i]);
		if (has_ninja(src, dir, a))
			return dir;
	}

	return NULL;
}

/* "ptbuild shell VARIANT", with the options that find the tree. */
static const char *shell_command(const struct build_request *q, struct arena *a)
{
	return arena_printf(a, "ptbuild shell %s%s%s", shell_quoted(q->plan->variant, a),
			    q->shell_options ? " " : "", q->shell_options ? q->shell_options : "");
}

/* Sets `e` for a command that ended with a status other than 0; `said`: its output. */
static int build_failure(const struct build_command *c, const struct build_log *said, int status,
			 struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *package = c->q->plan->package;
	uint64_t free_bytes;

	/* Whatever the build said of a full disk: often it could not even write that. */
	if (fs_free_bytes(c->q->build_dir, &free_bytes, ERR_IGNORED) == 0 &&
	    free_bytes < FULL_BYTES) {
		err_set(e, ERR_SYSTEM,
			"%s: %s failed with status %d: no space left on the disk of '%s'", package,
			c->step, status, c->log);
		return err_hint(e, "free space, or use another disk with --cache; " RESUMES);
	}

	/* A compiler removes the file that it could not finish, so space is free again by now; or
	 * it was another disk. */
	if (err_kind_of_words(said->error, ERR_BUILD) == ERR_SYSTEM) {
		err_set(e, ERR_SYSTEM, "%s: %s failed with status %d: %s", package, c->step, status,
			said->error);
		return err_hint(e,
				"this is a problem of the machine: fix it, free space, or use "
				"another disk with --cache\nthe whole log is '%s'; " RESUMES,
				c->log);
	}

	err_set(e, ERR_BUILD, "%s: %s failed with status %d: %s", package, c->step, status,
		said->error);
	if (c->ret_unit)
		*c->ret_unit = said->unit != NULL;
	const char *dir = said->unit ? ninja_dir(c->q->build_dir, said->unit, &a) : NULL;
	if (!dir)
		return err_hint(e,
				"inspect the build tree with: %s\nthe whole log is '%s'; " RESUMES,
				shell_command(c->q, &a), c->log);
	err_set(e, ERR_BUILD, "%s: %s failed with status %d in unit '%s': %s", package, c->step,
		status, said->unit, said->error);
	return err_hint(
		e,
		"build this unit alone with: %s -- ninja -C %s %s\nthe whole log is '%s'; " RESUMES,
		shell_command(c->q, &a), shell_quoted(dir, &a), shell_quoted(said->unit, &a),
		c->log);
}

int build_too_large(const struct build_command *c, const char *why, uint64_t memory, struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	err_set(e, ERR_SYSTEM,
		"%s: %s does not fit into memory even with one job at a time (%s free): %s",
		c->q->plan->package, c->step, machine_memory_text(memory, &a), why);
	return err_hint(e,
			"give it more memory (a limit of the container or of a cgroup counts), or "
			"add swap (look with: %s)\nthe whole log is '%s'; " RESUMES,
			shell_command(c->q, &a), c->log);
}

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
	double full = machine_pressure("");
	if (!jobs_pressed(&w->pressure, full, log_seconds()))
		return 0;
	w->pressed = full;
	return err_set(e, ERR_SYSTEM, "memory pressure");
}

/* What the command wrote into the log, from `offset` on, or the end of that. */
static void read_output(const char *build_dir, uint64_t offset, struct arena *a,
			struct build_log *ret)
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
		snprintf(out->why, sizeof(out->why),
			 "%s%sthe kernel killed %llu process%s for memory", unit, colon,
			 (unsigned long long)killed, killed == 1 ? "" : "es");
	return true;
}

int build_command_run(const struct build_command *c, bool several, const struct run *run,
		      struct build_outcome *ret, struct err *e)
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
	uint64_t kills = machine_oom_kills("");
	double start = log_seconds();

	if (o && o->begin)
		o->begin(c->step, o->user);
	int r = sandbox_run(c->sandbox, c->argv, &spec, run, &out.proc, e);
	if (o && o->end)
		o->end(o->user);
	out.seconds = log_seconds() - start;
	uint64_t after = machine_oom_kills("");
	out.kills = after > kills ? after - kills : 0;
	if (w.pressed > 0) {
		err_clear(e);
		out.short_of_memory = true;
		snprintf(out.why, sizeof(out.why),
			 "memory was so short for %.0f s that all processes were stalled %.0f %% "
			 "of the time",
			 JOBS_PRESSURE_S, w.pressed);
	} else if (r != 0) {
		return err_wrap(e, "%s: %s", c->q->plan->package, c->step);
	} else if (out.proc.status != 0) {
		read_output(c->q->build_dir, offset, &a, &said);
		out.short_of_memory = was_short(&said, out.kills, &out);
		if (!out.short_of_memory)
			return build_failure(c, &said, out.proc.status, e);
	}

	*ret = out;
	return 0;
}
