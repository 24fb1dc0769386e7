/* What every step is handed: where to speak and how to notice that the user wants to stop. No
 * globals below main. */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/log.h"

struct run {
	struct log *log;
	/* becomes readable (and stays so) once SIGINT or SIGTERM came; -1: cannot be cancelled */
	int cancel_fd;
};

/* run_cancelled: without waiting, whether cancel_fd is readable. */
bool run_cancelled(const struct run *r);
/* run_check: -1 with ERR_INTERRUPTED "interrupted" once cancelled, else 0. */
int run_check(const struct run *r, struct err *e);
