#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/os.h"
#include "base/sys/proc_internal.h"

enum stage { STAGE_SETUP, STAGE_CWD, STAGE_EXEC };

struct failure {
	enum stage stage;
	int error;
};

/* Runs in the child: only what is safe between fork and exec. */
static _Noreturn void child_fail(int report, enum stage stage)
{
	struct failure f = {.stage = stage, .error = errno};
	ssize_t n = write(report, &f, sizeof(f));
	_exit(n == (ssize_t)sizeof(f) ? 127 : 126);
}

/* Puts fds[i] at number i. All are moved out of the way
 * first, since one may lie at the number of another. */
static int child_place(int *fds, int count)
{
	for (int i = 0; i < count; i++)
		if ((fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, count)) < 0)
			return -1;
	for (int i = 0; i < count; i++)
		if (dup2(fds[i], i) < 0)
			return -1;
	return 0;
}

static void child_close_from(int first)
{
	if (os_close_on_exec_from(first) == 0)
		return;
	/* Linux before 5.11, macOS. */
	struct rlimit limit;
	rlim_t count = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536
			       ? limit.rlim_cur
			       : 65536;
	for (int fd = first; (rlim_t)fd < count; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* A program that is started. */
struct start {
	const struct proc_spec *spec;
	const char *path;
	int *fds; /* the child rearranges its own copy */
	int count;
	int report; /* where a failure is written to */
	pid_t parent;
};

static _Noreturn void child_main(const struct start *s)
{
	const struct proc_spec *spec = s->spec;
	int report = s->report;
	const int count = s->count;
	int moved = fcntl(report, F_DUPFD_CLOEXEC, count);

	if (moved < 0 || child_place(s->fds, count) < 0)
		child_fail(moved < 0 ? report : moved, STAGE_SETUP);
	report = moved;
	child_close_from(count);
	if (spec->enter && spec->enter(spec->enter_user) < 0)
		child_fail(report, STAGE_SETUP);
	/* A keeper that is killed outright leaves no program behind. It may be gone already. */
	if (os_die_with_parent() < 0 || getppid() != s->parent)
		child_fail(report, STAGE_SETUP);
	if (spec->file_limit) {
		struct rlimit limit;
		if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
			child_fail(report, STAGE_SETUP);
		/* The caller's own limit may be lower, and only root may raise it. */
		if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > spec->file_limit)
			limit.rlim_max = spec->file_limit;
		if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > limit.rlim_max)
			limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
			child_fail(report, STAGE_SETUP);
	}

	if (spec->umask)
		(void)umask(spec->umask);
	if (spec->cwd && chdir(spec->cwd) < 0)
		child_fail(report, STAGE_CWD);
	/* What the parent ignores (SIGPIPE) would stay ignored through exec. */
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	execve(s->path, (char *const *)spec->argv,
	       spec->envp ? (char *const *)spec->envp : environ);
	child_fail(report, STAGE_EXEC);
}

_Noreturn void proc_keeper_end(int status)
{
	if (!WIFSIGNALED(status))
		_exit(WEXITSTATUS(status));
	int sig = WTERMSIG(status);
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, sig);
	(void)signal(sig, SIG_DFL);
	(void)kill(getpid(), sig);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
	_exit(128 + sig);
}

/* The child becomes the keeper, its child the program. */
static _Noreturn void keeper_main(const struct start *s)
{
	struct start own = *s;
	const struct rlimit no_core = {0};

	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)signal(SIGCHLD, SIG_DFL); /* not later: it would throw away one that is pending */
	if (setpgid(0, 0) < 0 || proc_keeper_start(s->parent) < 0)
		child_fail(s->report, STAGE_SETUP);
	own.parent = getpid();
	pid_t program = fork();
	if (program == 0)
		child_main(&own);
	if (program < 0)
		child_fail(s->report, STAGE_SETUP);
	proc_keeper_run(program, s->spec->alone);
}

/* Nothing arrives once exec has closed the child's end. */
static int read_failure(int fd, const struct proc_spec *spec, struct err *e)
{
	struct failure f;
	ssize_t n;

	do {
		n = read(fd, &f, sizeof(f));
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(f))
		return 0;
	errno = f.error;
	if (f.stage == STAGE_CWD)
		return err_errno(e, ERR_SYSTEM, "cannot start '%s' in '%s'", spec->argv[0],
				 spec->cwd);
	return err_errno(e, ERR_SYSTEM, "cannot start '%s'", spec->argv[0]);
}

int proc_spawn(const struct proc_spec *spec, const char *path, int in, int out, int err, pid_t *ret,
	       struct err *e)
{
	int pipe_fds[2];

	if (os_pipe(pipe_fds) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot start '%s'", spec->argv[0]);
	AUTO_FD int report = pipe_fds[0];
	AUTO_ARENA struct arena a = {0};
	int count = 3 + (int)spec->fd_count;
	int *fds = arena_array(&a, (size_t)count, sizeof(*fds));
	fds[0] = in;
	fds[1] = out;
	fds[2] = err;
	for (int i = 3; i < count; i++)
		fds[i] = spec->fds[i - 3];
	/* No handler of the parent may run in the child before exec. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const struct start start = {.spec = spec,
				    .path = path,
				    .fds = fds,
				    .count = count,
				    .report = pipe_fds[1],
				    .parent = getpid()};
	pid_t pid = fork();
	if (pid == 0 && spec->attached)
		child_main(&start);
	if (pid == 0)
		keeper_main(&start);
	int saved = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(pipe_fds[1]);
	if (pid < 0) {
		errno = saved;
		return err_errno(e, ERR_SYSTEM, "cannot start '%s'", spec->argv[0]);
	}

	/* Both sides set it: whichever is first, a signal to the group cannot miss. */
	if (!spec->attached)
		(void)setpgid(pid, pid);
	*ret = pid;
	return read_failure(report, spec, e);
}
