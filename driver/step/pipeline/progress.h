/* Progress: on a terminal one line that is rewritten, elsewhere a line a minute and one for each
 * step, with -q nothing. */
#pragma once
#include "step/compile/build.h"
#include "step/pipeline/cost.h"
#include "step/watch/watch.h"

struct progress_request {
	const char *package;
	const char *build_dir;         /* of the compile key */
	struct watch *watch;           /* NULL: jobs and memory are not shown */
	const struct weights *weights; /* what the commands take */
	unsigned jobs;                 /* how many may run at once; 0: not known */
};

struct progress;

/* progress_new: lives in the arena; the strings of `q` are not copied. */
struct progress *progress_new(const struct progress_request *q, const struct run *run, struct arena *a);
/* progress_observer: for the build step. */
const struct build_observer *progress_observer(const struct progress *p);
/* progress_step: a step begins. */
void progress_step(struct progress *p, const char *step);

/* progress_bytes: "812 MiB", "3.1 GiB". */
void progress_bytes(char *to, size_t size, uint64_t bytes);
