#include "core/root/sandbox_parts.h"

#include <inttypes.h>

#include "base/sys/fs.h"
#include "base/sys/machine.h"

#define TICK_S 0.25
#define SLOW_S 1.0 /* what reads the whole tree of processes */
#define DISK_S 5.0 /* what walks through the files, at least */
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define HOUR UINT64_C(3600)

static uint64_t all_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

struct run_limits sandbox_limits(const struct run *run)
{
	struct run_limits l = run->limits;

	/* A job is a shell, ccache, a driver, a compiler and
	 * an assembler; linkers take a thread a processor. */
	if (!l.processes)
		l.processes = 256 + 64 * (uint64_t)machine_processors();
	if (!l.memory)
		l.memory = all_memory() / 20 * 19;
	if (!l.log)
		l.log = GIB;
	/* One unit of nvcc or one link with LTO can run for an hour without output. */
	if (!l.silence)
		l.silence = 4 * HOUR;
	if (!l.time)
		l.time = 72 * HOUR;
	return l;
}

/* "stopped: ..."; the option allows more. */
__attribute__((format(printf, 3, 4))) static int stop(struct err *e, const char *option,
						      const char *fmt, ...)
{
	AUTO_BUF struct buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	err_set(e, ERR_BUILD, "stopped: %s", buf_cstr(&text));
	return err_hint(e, "if this is expected, raise the limit: %s", option);
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

static int check_output(const struct sandbox_watch *w, double now, struct err *e)
{
	const struct run_limits *l = &w->limits;

	if (w->output > l->log)
		return stop(e, "--max-log SIZE", "it wrote more than %.1f MiB of output",
			    mib(l->log));
	if (now - w->said > (double)l->silence)
		return stop(e, "--max-silence TIME", "it wrote nothing for %" PRIu64 " s",
			    l->silence);
	if (now - w->started > (double)l->time)
		return stop(e, "--max-time TIME", "it ran for more than %" PRIu64 " s", l->time);
	return 0;
}

static int check_processes(const struct sandbox_watch *w, pid_t pid, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct proctree_item *items;
	size_t count;
	uint64_t tasks = 0, resident = 0, own = 0;

	proctree_read(pid, &a, &items, &count);
	for (size_t i = 0; i < count; i++) {
		tasks += items[i].threads > 0 ? (uint64_t)items[i].threads : 1;
		resident += items[i].rss_bytes;
	}

	if (tasks > w->limits.processes)
		return stop(e, "--max-processes N",
			    "it ran %" PRIu64 " processes and threads at once, and %" PRIu64
			    " are allowed",
			    tasks, w->limits.processes);
	if (resident <= w->limits.memory)
		return 0;
	/* Shared pages were counted for each process. */
	for (size_t i = 0; i < count; i++)
		own += proctree_own(items[i].pid);
	if (own <= w->limits.memory)
		return 0;
	return stop(e, "--max-memory SIZE", "memory use reached %.0f MiB, the limit is %.0f MiB",
		    mib(own), mib(w->limits.memory));
}

/* The tree is measured when the disk has lost about as much as it may hold, and now and then, since
 * others free space meanwhile: measuring may use a twentieth of the time at most. */
static int check_disk(struct sandbox_watch *w, double at, struct err *e)
{
	uint64_t now = 0, held = 0, size = 0;
	const char *where = NULL;
	struct err why = {0};

	for (size_t i = 0; i < w->sandbox->count && !where; i++)
		if (w->sandbox->ops[i].type == SANDBOX_RW)
			where = w->sandbox->ops[i].source;
	if (!where || fs_free_bytes(where, &now, ERR_IGNORED) < 0)
		return 0;
	if (w->keep_free && now < w->keep_free) {
		err_set(e, ERR_SYSTEM, "stopped: less than %.0f MiB are left on the disk of '%s'",
			mib(w->keep_free), where);
		return err_hint(e,
				"free space, or let the build fill the disk with --max-disk SIZE");
	}

	if (!w->asked.disk || (now + w->asked.disk / 2 > w->free_before && at < w->disk_at))
		return 0;
	for (size_t i = 0; i < w->sandbox->count; i++) {
		if (w->sandbox->ops[i].type != SANDBOX_RW)
			continue;
		/* A directory that cannot be read must not hide files from the limit. */
		if (fs_tree_size(w->sandbox->ops[i].source, &size, &why) < 0)
			return stop(e, "--max-disk SIZE", "what it wrote cannot be measured: %s",
				    why.msg);
		held += size;
	}

	w->disk_at = at + DISK_S + 20 * (log_seconds() - at);
	if (held <= w->asked.disk)
		return 0;
	return stop(e, "--max-disk SIZE", "its files reached %.0f MiB, the limit is %.0f MiB",
		    mib(held), mib(w->asked.disk));
}

static int on_tick(pid_t pid, void *user, struct err *e)
{
	struct sandbox_watch *w = user;
	double now = log_seconds();

	if (w->caller.on_tick && now >= w->caller_at) {
		w->caller_at = now + w->caller.tick_s;
		int rc = w->caller.on_tick(pid, w->caller.tick_user, e);
		if (rc != 0)
			return rc;
	}

	if (w->off)
		return 0;
	/* Only commands of a build, which have a log: a shell on a terminal writes when its user
	 * types, and ptbuild's own queries in the sandbox are short. */
	if (w->caller.log_path && check_output(w, now, e) < 0)
		return -1;
	if (now < w->slow_at)
		return 0;
	w->slow_at = now + SLOW_S;
	return check_processes(w, pid, e) < 0 ? -1 : check_disk(w, now, e);
}

/* Keeps the last message of bubblewrap, which writes every line until the program starts;
 * else the first line, which is the loader's where bubblewrap itself cannot start. */
static void on_line(const char *line, size_t len, void *user)
{
	static const char mark[] = "bwrap: ";
	struct sandbox_watch *w = user;
	size_t n = sizeof(mark) - 1;

	w->output += len + 1;
	w->said = log_seconds();
	if (len > n && memcmp(line, mark, n) == 0)
		snprintf(w->words, sizeof(w->words), "%.*s", (int)(len - n), line + n);
	else if (!w->words[0])
		snprintf(w->words, sizeof(w->words), "%s", line);
	if (w->caller.on_line)
		w->caller.on_line(line, len, w->caller.user);
}

void sandbox_watch_begin(struct sandbox_watch *w, const struct sandbox *s, const struct run *run,
			 struct proc_spec *spec)
{
	double now = log_seconds();

	*w = (struct sandbox_watch){.sandbox = s,
				    .limits = sandbox_limits(run),
				    .asked = run->limits,
				    .off = !sandbox_protection(run, PROTECTION_LIMITS),
				    .caller = *spec,
				    .started = now,
				    .said = now,
				    .slow_at = now + TICK_S,
				    .caller_at = now + spec->tick_s};
	for (size_t i = 0; i < s->count && !w->free_before; i++)
		if (s->ops[i].type == SANDBOX_RW &&
		    fs_free_bytes(s->ops[i].source, &w->free_before, ERR_IGNORED) < 0)
			break;
	/* What others need to go on. A disk that has no more
	 * than that to begin with is filled to its end. */
	if (!run->limits.disk && w->free_before > 2 * GIB)
		w->keep_free = GIB / 2;
	spec->on_line = on_line;
	spec->user = w;
	spec->on_tick = on_tick;
	spec->tick_user = w;
	spec->tick_s = spec->tick_s > 0 && spec->tick_s < TICK_S ? spec->tick_s : TICK_S;
}
