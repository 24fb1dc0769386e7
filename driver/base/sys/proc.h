/* Child processes: run one, watch it, take its output, kill its whole group when told to stop. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/run.h"

/* proc_line_fn: called for each complete line of the child's standard output and error, without its
 * end: '\n', "\r\n", or the '\r' of a progress line (empty lines between those are left out). A
 * last line without an end is given at the end; one of more than 1 MiB comes in pieces. `line` is
 * NUL-terminated and valid during the call. */
typedef void (*proc_line_fn)(const char *line, size_t len, void *user);

/* proc_tick_fn: called now and then while the child runs; `pid` leads its group and is its parent,
 * in the caller's thread. -1 stops the group as when cancelled, and proc_run fails with the error
 * set here. */
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
	proc_line_fn on_line; /* NULL: none */
	void *user;
	proc_tick_fn on_tick; /* every tick_s seconds; NULL: none */
	void *tick_user;
	double tick_s;
	/* 0: none; past it the group is stopped as when cancelled and the call fails
	 * (ERR_SYSTEM) */
	double timeout_s;
	unsigned long file_limit; /* RLIMIT_FSIZE in bytes; 0: as it is */
	const int *fds;           /* descriptors that the child gets as 3, 4, ... in this order */
	size_t fd_count;
	mode_t umask; /* of the child; 0: the parent's */
	/* for a person: its standard streams are the caller's, it is in the caller's process group
	 * and so has its terminal; out, err, log_path and on_line are not used */
	bool attached;
};

struct proc_result {
	int status;         /* exit status 0..255; 128 + signal when killed by one */
	int signal;         /* the signal that ended it, else 0 */
	double seconds;     /* wall */
	double cpu_seconds; /* user + system of it and its waited-for children */
	long max_rss_kib;   /* largest resident set of any one of them */
};

/* proc_run: runs to the end. The child is in a process group of its own, its signal mask empty,
 * signals at their defaults, standard input /dev/null, all other descriptors but `fds` closed
 * (CLOEXEC); it and all it has started, daemons too, are killed when the parent dies, however that
 * happens. Once it has ended, processes it left behind may hold its output open for half a second;
 * then the rest of its group is killed, so nothing of it runs on. When run->cancel_fd becomes
 * readable: SIGTERM to the group (attached: to the child), SIGKILL one second later,
 * ERR_INTERRUPTED. A program that cannot be started is ERR_SYSTEM naming it, and so is a log file
 * that cannot be written (the group is stopped). A non-zero exit is NOT an error here: read
 * ret->status. */
int proc_run(const struct proc_spec *spec, const struct run *run, struct proc_result *ret, struct err *e) MUST_CHECK;
/* proc_capture: runs argv with the parent's environment and adds its standard output to `out`,
 * trailing white space cut; a non-zero exit is ERR_SYSTEM with the last lines of its standard
 * error. */
int proc_capture(const char *const *argv, const struct run *run, struct buf *out, struct err *e) MUST_CHECK;
/* proc_find: full path of a program in PATH, in the arena; NULL if there is none or `name` has a
 * '/'. Relative entries of PATH are passed over. */
char *proc_find(struct arena *a, const char *name);
/* proc_find_in: the same in the directories of `path`, which is written like PATH. */
char *proc_find_in(struct arena *a, const char *path, const char *name);
