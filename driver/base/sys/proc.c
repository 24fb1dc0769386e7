#include "base/sys/proc.h"
#include "base/os.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/sys/fs.h"
#include "base/sys/proc_internal.h"

#define KILL_AFTER_S 1.0 /* from SIGTERM to SIGKILL */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define DRAIN_S 0.5 /* how long a dead program's children may still hold its output open */
#define NO_PIDFD_POLL_S 0.02
#define CHUNK (64 * 1024)
#define MAX_CHUNKS 16              /* a pipe holds 64 KiB, by fcntl up to 1 MiB */
#define MAX_LINE ((size_t)1 << 20) /* a longer line is given out in pieces */
#define DEFAULT_MAX_OUTPUT ((size_t)64 << 20)

/* One stream of the child: read end, and the line that is not complete yet. */
struct stream {
	int fd;          /* -1: at its end */
	struct buf *out; /* NULL: not kept */
	struct buf line;
	bool after_cr; /* a '\r' ended the last line: a '\n' right behind it is the same end */
};

static void give_line(struct stream *s, const struct proc_spec *spec)
{
	spec->on_line(buf_cstr(&s->line), s->line.len, spec->user);
	buf_reset(&s->line);
}

static void take_lines(struct stream *s, const struct proc_spec *spec, const char *data, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = 0;
		while (i + n < len && data[i + n] != '\n' && data[i + n] != '\r')
			n++;
		size_t room = MAX_LINE - s->line.len;
		bool cut = n >= room;
		if (cut)
			n = room;
		buf_add(&s->line, data + i, n);
		i += n;
		if (n)
			s->after_cr = false;
		if (cut) {
			give_line(s, spec);
			continue;
		}

		if (i == len)
			break;
		bool cr = data[i++] == '\r';
		/* "\r\n" is one end, and a progress line that
		 * begins with '\r' has no empty line before it. */
		if (s->line.len || (!cr && !s->after_cr))
			give_line(s, spec);
		s->after_cr = cr;
	}
}

static void keep(struct buf *out, size_t max, const char *data, size_t len)
{
	size_t limit = max ? max : DEFAULT_MAX_OUTPUT;

	if (out->len >= limit)
		return;
	buf_add(out, data, len < limit - out->len ? len : limit - out->len);
}

/* What is there, at most a pipe full, to the buffer, the
 * log file and the lines; closes the descriptor at its end. */
static int read_stream(struct stream *s, const struct proc_spec *spec, int log_fd, struct err *e)
{
	char chunk[CHUNK];

	for (int i = 0; s->fd >= 0 && i < MAX_CHUNKS; i++) {
		ssize_t n = read(s->fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			close(s->fd);
			s->fd = -1;
			return 0;
		}

		if (s->out)
			keep(s->out, spec->max_output, chunk, (size_t)n);
		if (spec->on_line)
			take_lines(s, spec, chunk, (size_t)n);
		if (log_fd >= 0 && fs_write_all(log_fd, chunk, (size_t)n, spec->log_path, e) < 0)
			return -1;
	}

	return 0;
}

/* Gives out a last line without a newline. */
static void end_stream(struct stream *s, const struct proc_spec *spec)
{
	if (s->line.len && spec->on_line)
		give_line(s, spec);
	buf_release(&s->line);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* One running child. */
struct child {
	const struct proc_spec *spec;
	pid_t pid;
	int pidfd; /* -1: the kernel has none, so it is polled */
	int log_fd;
	struct stream streams[2];
	double started;
	bool dead;      /* the program itself has ended; it is not reaped yet */
	bool stopping;  /* SIGTERM was sent; the caller's error says why */
	double kill_at; /* when SIGKILL is due; INFINITY: never, or done */
	double tick_at; /* when on_tick is due; INFINITY: never */
	double end_at;  /* when the output of a dead program is given up; INFINITY: not known yet */
};

/* An attached child shares our own group, and has no keeper. */
static void stop_group(const struct child *c, int signal)
{
	(void)kill(c->spec->attached ? c->pid : -c->pid, signal);
}

static void stop(struct child *c, double now)
{
	c->stopping = true;
	c->kill_at = now + KILL_AFTER_S;
	c->end_at = c->kill_at + DRAIN_S;
	stop_group(c, SIGTERM);
}

/* The child is left a zombie, so that its number, which is the
 * group's, cannot be given to another process before the last kill. */
static bool is_dead(const struct child *c)
{
	siginfo_t info = {0};
	return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == c->pid;
}

static double next_deadline(const struct child *c)
{
	double at = c->stopping || c->dead ? c->kill_at : fmin(c->kill_at, c->tick_at);

	if (!c->stopping && c->spec->timeout_s > 0)
		at = fmin(at, c->started + c->spec->timeout_s);
	if (c->dead)
		at = fmin(at, c->end_at);
	else if (c->pidfd < 0)
		at = fmin(at, log_seconds() + NO_PIDFD_POLL_S);
	return at;
}

static int read_streams(struct child *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(c->streams) && rc == 0; i++)
		rc = read_stream(&c->streams[i], c->spec, c->log_fd, e);
	return rc;
}

static void note_death(struct child *c, double now)
{
	if (c->dead || !is_dead(c))
		return;
	c->dead = true;
	c->end_at = fmin(c->end_at, now + (c->stopping ? KILL_AFTER_S : DRAIN_S));
}

/* A tick that came late, because the machine slept or was busy, comes once. */
static int tick(struct child *c, double now, struct err *e)
{
	if (now < c->tick_at)
		return 0;
	c->tick_at = now + c->spec->tick_s;
	return c->spec->on_tick(c->pid, c->spec->tick_user, e);
}

/* Watches until the program is dead and its output at the
 * end, or given up. -1: it was stopped, and `e` says why. */
static int watch(struct child *c, const struct run *run, struct err *e)
{
	for (;;) {
		struct pollfd p[] = {
			{.fd = c->streams[0].fd, .events = POLLIN},
			{.fd = c->streams[1].fd, .events = POLLIN},
			{.fd = c->dead ? -1 : c->pidfd, .events = POLLIN},
			{.fd = c->stopping ? -1 : run->cancel_fd, .events = POLLIN},
		};
		double left = next_deadline(c) - log_seconds();
		int ms = -1;
		if (!isinf(left))
			ms = left <= 0 ? 0 : (int)fmin(left * 1000 + 1, 3600e3);
		(void)poll(p, ARRAY_LEN(p), ms);
		double now = log_seconds();
		/* First the process, then its output: what it
		 * wrote before its end is in the pipes by then. */
		note_death(c, now);
		if (read_streams(c, c->stopping ? ERR_IGNORED : e) < 0 && !c->stopping)
			stop(c, now);
		if (c->dead && ((c->streams[0].fd < 0 && c->streams[1].fd < 0) || now >= c->end_at))
			return c->stopping ? -1 : 0;
		if (!c->stopping && !c->dead && c->spec->timeout_s > 0 &&
		    now >= c->started + c->spec->timeout_s) {
			err_set(e, ERR_SYSTEM, "timed out after %g s: '%s'", c->spec->timeout_s,
				c->spec->argv[0]);
			stop(c, now);
		} else if (!c->stopping &&
			   (run_check(run, e) < 0 || (!c->dead && tick(c, now, e) < 0))) {
			stop(c, now);
		} else if (now >= c->kill_at) {
			(void)kill(c->pid, c->spec->attached ? SIGKILL : PROC_KEEPER_KILL);
			c->kill_at = INFINITY;
		}
	}
}

static void reap(const struct child *c, struct proc_result *r)
{
	/* Nothing of the group outlives the call; the zombie still holds the group's number. */
	stop_group(c, SIGKILL);
	int status = 0;
	struct rusage u = {0};
	while (wait4(c->pid, &status, 0, &u) < 0 && errno == EINTR)
		;
	*r = (struct proc_result){
		.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
		.seconds = log_seconds() - c->started,
		.cpu_seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
	};
}

/* A pipe whose read end does not block, in the stream; the write end is returned, -1 with errno. */
static int open_stream(struct stream *s)
{
	int fds[2];

	if (os_pipe(fds) < 0)
		return -1;
	s->fd = fds[0];
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	return fds[1];
}

static int start(struct child *c, struct err *e)
{
	const struct proc_spec *spec = c->spec;
	AUTO_ARENA struct arena a = {0};
	const char *path =
		strchr(spec->argv[0], '/') ? spec->argv[0] : proc_find(&a, spec->argv[0]);

	if (!path) {
		err_set(e, ERR_SYSTEM, "program not found: '%s'", spec->argv[0]);
		return err_hint(e, "install it, or put its directory in PATH");
	}

	bool wanted = !spec->attached && (spec->out || spec->log_path || spec->on_line);
	AUTO_FD int in = spec->attached ? dup(STDIN_FILENO) : open("/dev/null", O_RDWR | O_CLOEXEC);
	AUTO_FD int out =
		wanted ? open_stream(&c->streams[0]) : dup(spec->attached ? STDOUT_FILENO : in);
	AUTO_FD int err = spec->attached ? dup(STDERR_FILENO)
			  : spec->err    ? open_stream(&c->streams[1])
					 : dup(out);
	if (in < 0 || out < 0 || err < 0)
		return err_errno(e, ERR_SYSTEM, "cannot start '%s'", spec->argv[0]);
	c->streams[0].out = spec->out;
	c->streams[1].out = spec->err;
	c->started = log_seconds();
	if (proc_spawn(spec, path, in, out, err, &c->pid, e) < 0)
		return -1;
	c->pidfd = os_process_fd(c->pid);
	return 0;
}

static int open_log(const struct proc_spec *spec, struct err *e)
{
	if (spec->log_top)
		return fs_append(spec->log_top, spec->log_path, e);
	int fd = open(spec->log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	return fd < 0 ? err_errno(e, ERR_SYSTEM, "cannot write '%s'", spec->log_path) : fd;
}

int proc_run(const struct proc_spec *spec, const struct run *run, struct proc_result *ret,
	     struct err *e)
{
	if (run_check(run, e) < 0)
		return -1;
	struct child c = {.spec = spec,
			  .pidfd = -1,
			  .log_fd = -1,
			  .kill_at = INFINITY,
			  .end_at = INFINITY,
			  .tick_at = spec->on_tick ? log_seconds() + spec->tick_s : INFINITY,
			  .streams = {{.fd = -1}, {.fd = -1}}};
	if (spec->log_path && (c.log_fd = open_log(spec, e)) < 0)
		return -1;
	struct proc_result result = {0};
	int rc = start(&c, e);
	if (rc == 0)
		rc = watch(&c, run, e);
	if (c.pid > 0)
		reap(&c, &result);
	for (size_t i = 0; i < ARRAY_LEN(c.streams); i++)
		end_stream(&c.streams[i], spec);
	cleanup_fd(&c.pidfd);
	cleanup_fd(&c.log_fd);
	if (rc == 0 && spec->answer && result.signal)
		return err_set(e, ERR_SYSTEM, "'%s' was killed by signal %d (%s)", spec->argv[0],
			       result.signal, strsignal(result.signal));
	if (rc == 0)
		*ret = result;
	return rc;
}

/* The end of a program's complaint: the last lines, at most as much as a message can show. */
static const char *last_words(const struct buf *b)
{
	const size_t max_lines = 5, max_bytes = 1000;
	const char *text = buf_cstr(b), *p = text + b->len;
	size_t lines = 0;

	while (p > text && (size_t)(text + b->len - p) < max_bytes &&
	       !(p[-1] == '\n' && ++lines == max_lines))
		p--;
	return p;
}

static void cut_white(struct buf *b)
{
	while (b->len && strchr(" \t\r\n\v\f", b->data[b->len - 1]))
		b->len--;
	(void)buf_cstr(b);
}

int proc_capture(const char *const *argv, const struct run *run, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0}, errors = {0};
	const char *path = getenv("PATH");
	/* A tool of the machine needs nothing else that
	 * its caller's environment has, such as passwords. */
	const char *const env[] = {"LC_ALL=C",
				   arena_printf(&a, "PATH=%s", path ? path : DEFAULT_PATH), NULL};
	const struct proc_spec spec = {
		.argv = argv, .envp = env, .out = &text, .err = &errors, .answer = true};
	struct proc_result r;

	if (proc_run(&spec, run, &r, e) < 0)
		return -1;
	cut_white(&text);
	cut_white(&errors);
	const char *words = errors.len ? last_words(&errors) : "no message";
	if (r.status)
		return err_set(e, ERR_SYSTEM, "'%s' failed with status %d: %s", argv[0], r.status,
			       words);
	buf_add(out, text.data, text.len);
	return 0;
}

/* A program that has no room for a page often cannot say why it failed. */
#define FULL_BYTES 65536

bool proc_no_space(const char *program, const char *dir, const char *output, struct err *e)
{
	uint64_t left;
	int number = err_disk(output);

	if (!number && fs_free_bytes(dir, &left, ERR_IGNORED) == 0 && left < FULL_BYTES)
		number = ENOSPC;
	if (!number)
		return false;
	errno = number;
	(void)!err_errno(e, ERR_SYSTEM, "%s cannot write below '%s'", program, dir);
	return true;
}

char *proc_beside(struct arena *a, const char *rel)
{
	char exe[4096];

	if (os_program_path(exe, sizeof(exe)) < 0)
		return NULL;
	char *path = path_absolute(a, "/", arena_printf(a, "%s/../%s", path_dir(a, exe), rel));
	return access(path, F_OK) == 0 ? path : NULL;
}

static char *find_own(struct arena *a, const char *name)
{
	const char *dir = proc_beside(a, "libexec/ptbuild");
	return dir ? proc_find_in(a, dir, name) : NULL;
}

static char *find_in_path(struct arena *a, const char *name)
{
	const char *path = getenv("PATH");
	return proc_find_in(a, path ? path : DEFAULT_PATH, name);
}

char *proc_find(struct arena *a, const char *name)
{
	char *own = find_own(a, name);
	return own ? own : find_in_path(a, name);
}

char *proc_find_host(struct arena *a, const char *name)
{
	char *found = find_in_path(a, name);
	return found ? found : find_own(a, name);
}

char *proc_find_in(struct arena *a, const char *path, const char *name)
{
	if (!*name || strchr(name, '/'))
		return NULL;
	struct strlist dirs = {0};
	strlist_split(&dirs, a, path, ":");
	for (size_t i = 0; i < dirs.count; i++) {
		/* A relative entry would mean another program in each directory. */
		if (dirs.items[i][0] != '/')
			continue;
		char *full = path_join(a, dirs.items[i], name);
		struct stat st;
		if (stat(full, &st) == 0 && S_ISREG(st.st_mode) && access(full, X_OK) == 0)
			return full;
	}

	return NULL;
}
