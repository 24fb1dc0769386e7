/* What every step is handed: where to log and how to notice that the user wants to stop. */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"

/* What a program in the sandbox may take; 0: the default (core/root/sandbox_limits.h). */
struct run_limits {
	uint64_t processes; /* and threads, at once */
	uint64_t memory;    /* bytes, all of them together */
	uint64_t disk;      /* bytes that lie in the directories it may write */
	uint64_t log;       /* bytes of output */
	uint64_t silence;   /* seconds without output */
	uint64_t time;      /* seconds */
};

struct run {
	struct log *log;
	/* readable once the user wants to stop (os_open_cancel); -1: never */
	int cancel_fd;
	struct run_limits limits;
	unsigned without_walls; /* bits of enum sandbox_wall */
};

bool run_cancelled(const struct run *r);
/* run_check: ERR_INTERRUPTED once cancelled. */
int run_check(const struct run *r, struct err *e);
