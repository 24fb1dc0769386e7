/* What every step is handed: where to log and how to notice that the user wants to stop. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Messages for people, on standard error, from any thread. Standard output belongs to results. */

enum log_level { LOG_QUIET = -1, LOG_NORMAL = 0, LOG_VERBOSE = 1, LOG_DEBUG = 2 };

struct log {
	enum log_level level;
	int fd;           /* where lines go; normally 2 */
	bool tty;         /* fd is a terminal: a status line is rewritten in place */
	bool colour;      /* warnings are coloured */
	bool status_on;   /* a status line is on the screen now */
	double status_at; /* monotonic seconds of the last status line printed */
};

/* log_init: a logger on `fd`. */
void log_init(struct log *l, int fd, enum log_level level);
/* One line each, without its newline: from LOG_NORMAL, from LOG_VERBOSE, and "warning: ..." unless
 * LOG_QUIET. */
void log_info(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_verbose(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* log_status: progress. On a terminal it replaces the last status line, at most ten times a second;
 * elsewhere it is a plain line at most once a minute. */
void log_status(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* log_every: like log_status, but elsewhere at most once in so many seconds. */
void log_every(struct log *l, double seconds, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* log_stage: a status line for a new stage, printed at once. */
void log_stage(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* log_wait: shows a message on a terminal during a long operation; does nothing elsewhere. */
void log_wait(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* log_status_end: clears the status line. */
void log_status_end(struct log *l);
/* log_seconds: monotonic clock. */
double log_seconds(void);

/* What a program in the sandbox may take; 0: the default (core/root/sandbox_limits.h). */
struct run_limits {
	uint64_t processes; /* and threads, at once */
	uint64_t memory;    /* bytes, all of them together */
	uint64_t disk;      /* bytes in the directories it may write */
	uint64_t log;       /* bytes of output */
	uint64_t silence;   /* seconds without output */
	uint64_t time;      /* seconds */
};

struct run {
	struct log *log;
	/* readable once the user wants to stop (os_open_cancel); -1: never */
	int cancel_fd;
	struct run_limits limits;
	unsigned without_protections; /* bits of enum sandbox_protection */
};

bool run_cancelled(const struct run *r);
/* run_check: ERR_INTERRUPTED once cancelled. */
int run_check(const struct run *r, struct err *e);

/* thread_start: pthread_create with every signal blocked in the new thread, since signals belong to
 * the main one. 0, or the errno of the failure. */
int thread_start(pthread_t *ret, void *(*run)(void *), void *user);
/* thread_each: work(i, user) for each i below `count`, several at once in as many threads (at most
 * 64), in this one alone where none can be started; returns when all have ended. */
void thread_each(unsigned count, void (*work)(unsigned i, void *user), void *user);
/* thread_items: calls work(thread, i, user, e) for each of `count` items in at most `threads`
 * threads, the largest of `sizes` first (NULL: in order). After a failure no further item begins:
 * returns -1 with the error of the first failed item in order. Also -1 once the run is
 * cancelled. */
int thread_items(unsigned threads, size_t count, const uint64_t *sizes, const struct run *run,
		 int (*work)(unsigned thread, size_t i, void *user, struct err *e), void *user,
		 struct err *e);
