/* Messages for people, on standard error. Standard output belongs to results. */
#pragma once
#include <stdbool.h>

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
/* log_stage: a status line for a new stage, printed at once. */
void log_stage(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* log_wait: what a terminal shows while something takes long; nothing elsewhere. */
void log_wait(struct log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* log_status_end: clears the status line. */
void log_status_end(struct log *l);
/* log_seconds: monotonic clock. */
double log_seconds(void);
