/* Child processes: run one, watch it, read its output, kill its process group on cancellation. */
#pragma once
#include "base/base.h"

/* proc_line_fn: called for each complete line of output, without its end: '\n', "\r\n", or the '\r'
 * of a progress line (empty lines between those are left out). The last line needs no end; one of
 * more than 1 MiB comes in pieces. `line` is NUL-terminated and valid during the call. */
typedef void (*proc_line_fn)(const char *line, size_t len, void *user);

/* proc_tick_fn: called in the caller's thread while the child runs; `pid` leads its group. -1 stops
 * the group as when cancelled, and proc_run fails with the error set here. */
typedef int (*proc_tick_fn)(pid_t pid, void *user, struct err *e);

struct proc_spec {
	/* argv[0] is looked up in the parent's PATH (by proc_find) when it has no '/' */
	const char *const *argv;
	const char *const *envp; /* NULL: the parent's environment */
	const char *cwd;         /* NULL: the parent's */
	/* standard output is appended here; NULL: see log_path, else discarded */
	struct buf *out;
	/* standard error is appended here; NULL: goes where standard output goes */
	struct buf *err;
	size_t max_output;    /* per buffer; what exceeds it is dropped; 0: 64 MiB */
	const char *log_path; /* both streams are appended to this file as well; NULL: none */
	const char *log_top;  /* what log_path is below; NULL: nothing */
	proc_line_fn on_line; /* NULL: none */
	void *user;
	proc_tick_fn on_tick; /* every tick_s seconds; NULL: none */
	void *tick_user;
	double tick_s;
	/* 0: none; past it the group is stopped and the call fails (ERR_SYSTEM) */
	double timeout_s;
	unsigned long file_limit; /* RLIMIT_FSIZE in bytes; 0: as it is */
	const int *fds;           /* descriptors that the child gets as 3, 4, ... in this order */
	size_t fd_count;
	mode_t umask; /* of the child; 0: the parent's */
	/* runs in the child before the program, where only what is safe between fork and exec may
	 * be called; -1 with errno: it is not started. NULL: none */
	int (*enter)(void *user);
	void *enter_user;
	/* in the caller's process group, with its terminal and standard streams; out, err, log_path
	 * and on_line are not used */
	bool attached;
	/* what it leaves running is killed at once when it ends, also in sessions of its own; not
	 * of what is attached. macOS: its group alone */
	bool alone;
	/* what it says, or that it fails, is an answer; that a signal killed it is ERR_SYSTEM */
	bool answer;
};

struct proc_result {
	int status;         /* exit status 0..255; 128 + signal when killed by one */
	int signal;         /* the signal that ended it, else 0 */
	double seconds;     /* elapsed */
	double cpu_seconds; /* user + system of it and its waited-for children */
};

/* proc_run: runs to the end, in a process group of its own, signals and signal mask at their
 * defaults, standard input /dev/null, all descriptors but `fds` closed. It and all it has started
 * are killed when the parent dies. Once it has ended, processes it left may hold its output open
 * for half a second; then its group is killed. On run->cancel_fd: SIGTERM to the group (attached:
 * to the child), SIGKILL one second later, ERR_INTERRUPTED. ERR_SYSTEM: it cannot be started, or
 * the log cannot be written. A non-zero exit is not an error: read ret->status. */
int proc_run(const struct proc_spec *spec, const struct run *run, struct proc_result *ret,
	     struct err *e) MUST_CHECK;
/* proc_capture: runs a tool with PATH and LC_ALL alone, and adds its standard output to `out`,
 * trailing white space cut; a non-zero exit is ERR_SYSTEM with the last lines of its standard
 * error. */
int proc_capture(const char *const *argv, const struct run *run, struct buf *out,
		 struct err *e) MUST_CHECK;
/* proc_no_space: after `program` failed, which wrote below `dir`: whether the disk was full, as its
 * output says or as the file system is; then `e` is ERR_SYSTEM, with the directory. */
bool proc_no_space(const char *program, const char *dir, const char *output, struct err *e);
/* proc_beside: a file of the installation that this program is of, "share/ptbuild": below the
 * directory that holds its bin; NULL if it does not exist. */
char *proc_beside(struct arena *a, const char *rel);
/* proc_find: returns the full path of a program installed with this one (libexec/ptbuild: equal
 * bytes on every machine), else of one in PATH; NULL if neither exists or `name` has a '/'. Skips
 * relative entries. proc_find_host: searches PATH first, for what a system sets up. proc_find_in:
 * searches only `path`, which is written like PATH. */
char *proc_find(struct arena *a, const char *name);
char *proc_find_host(struct arena *a, const char *name);
char *proc_find_in(struct arena *a, const char *path, const char *name);

/* The tree of processes below one, read from /proc, cheaply enough for once a second. Processes
 * that end meanwhile are left out. */

struct proctree_item {
	pid_t pid, parent;
	uint64_t started;   /* ticks since boot: with the pid it names a process for ever */
	double cpu_seconds; /* user and system, of it and of its children that were waited for */
	/* shared pages count for each process that maps them */
	uint64_t rss_bytes;
	long threads;
	char name[16]; /* the program's, cut */
};

/* proctree_read: `root` first, then all below it, parents before their children; none when root is
 * gone. Where the kernel does not list children (CONFIG_PROC_CHILDREN) it is proctree_scan, which
 * looks at all processes of the machine. */
void proctree_read(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count);
void proctree_scan(pid_t root, struct arena *a, struct proctree_item **ret, size_t *ret_count);
/* proctree_tasks: processes and threads of a user, as far as they can be seen. */
uint64_t proctree_tasks(uid_t user);
/* proctree_command: the arguments, each ended by a NUL, appended to `out`, at most 128 KiB. False
 * when the process is gone. */
bool proctree_command(pid_t pid, struct buf *out);
/* proctree_peak: the largest resident set it ever had, in bytes; 0 when it is gone. */
uint64_t proctree_peak(pid_t pid);
/* proctree_own: the memory that it has and no other process shares by a file, in bytes. */
uint64_t proctree_own(pid_t pid);
/* proctree_cwd: its working directory as it sees it; NULL when that is unknown. */
char *proctree_cwd(pid_t pid, struct arena *a);

/* python_module: adds the words that start a module with a Python of this machine. Isolated (-I): a
 * file of the module's name in the current directory, or in PYTHONPATH, does not run instead. */
void python_module(const char *python, const char *module, struct arena *a, struct strlist *argv);

/* pip of this machine: it has the user's network settings and knows the index. */

/* pip_find: adds the arguments that start it. ERR_NETWORK if pip does not exist, with `hint` as the
 * fix. */
int pip_find(struct arena *a, struct strlist *argv, const char *hint, struct err *e) MUST_CHECK;
/* pip_missing: whether its output says that Python has no pip, as on a Debian without python3-pip;
 * sets the error of pip_find. */
bool pip_missing(const struct buf *output, const char *hint, struct err *e);
/* pip_reason: what its output says went wrong, its lines of errors or else the last one, in one
 * line of some 1000 bytes; where no index was reached, that comes first. */
char *pip_reason(struct arena *a, const struct buf *output) __attribute__((returns_nonnull));
