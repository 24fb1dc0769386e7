/* The parts of proc that only proc*.c share. */
#pragma once
#include "base/proc.h"

/* proc_spawn: starts `path` with the three descriptors as its standard ones and spec->fds behind them, in a process group of its own. Reports what failed in the child before the program ran. */
int proc_spawn(const struct proc_spec *spec, const char *path, int in, int out, int err, pid_t *ret, struct err *e) MUST_CHECK;

/* One stream of the child: read end, and the line that is not complete yet. */
struct proc_stream {
	int fd;          /* -1: at its end */
	struct buf *out; /* NULL: not kept */
	struct buf line;
	bool after_cr; /* a '\r' ended the last line: a '\n' right behind it is the same end */
};

/* proc_stream_read: takes what is there, at most a pipe full, to the buffer, the log file and the lines; closes the descriptor at the end of the stream. */
int proc_stream_read(struct proc_stream *s, const struct proc_spec *spec, int log_fd, struct err *e) MUST_CHECK;
/* proc_stream_end: gives out a last line without a newline and frees. */
void proc_stream_end(struct proc_stream *s, const struct proc_spec *spec);
