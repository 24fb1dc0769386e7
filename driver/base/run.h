/* What every step is handed: where to log and how to notice that the user wants to stop. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/log.h"

struct run {
	struct log *log;
	/* readable once the user wants to stop (os_open_cancel); -1: never */
	int cancel_fd;
};

bool run_cancelled(const struct run *r);
/* run_check: ERR_INTERRUPTED once cancelled. */
int run_check(const struct run *r, struct err *e);
