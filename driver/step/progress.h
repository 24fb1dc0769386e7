/* Progress: what a person sees of a running build: on a terminal one line, elsewhere a line a minute, with -q nothing. */
#pragma once
#include "base/log.h"
#include "step/build.h"

struct progress {
	struct log *log;
	const char *package;
	const char *step; /* the command that runs now */
	double since;     /* when it began */
	unsigned done, all;
	struct build_observer observer; /* to hand to the build step */
};

/* progress_init: `p` must stay where it is: its observer points to it. */
void progress_init(struct progress *p, struct log *log, const char *package);
