/* Estimate: how much of a build is left, by the weights of its commands and this build's own
 * speed. */
#pragma once
#include "core/ninja/ninja.h"
#include "step/pipeline/cost.h"
#include "step/watch/watch.h"

struct estimate;

/* A command that has ended. */
struct estimate_made {
	const char *path;
	double seconds;
};

struct estimate_look {
	const struct estimate_made *made; /* all that ninja's logs name */
	size_t made_count;
	const struct watch_running *running;
	size_t running_count;
	unsigned done, all; /* commands of this run of ninja; 0: none has ended yet */
	double seconds;     /* since the build began */
};

struct estimate_view {
	double percent;      /* of the work, 0..100 */
	double seconds_left; /* negative: not known yet */
	/* most commands are in no table, or too little was made to say how fast this machine is */
	bool about;
};

/* estimate_new: `w` must live as long as the result, which lives in the arena; `jobs`: how many
 * commands may run at once (0: not known). */
struct estimate *estimate_new(const struct weights *w, unsigned jobs, struct arena *a);
/* estimate_add: the tree makes the outputs of these edges, and if they are not the `whole` plan
 * what else the table has, in later runs of ninja. What is known already is not added again. */
void estimate_add(struct estimate *x, const struct ninja_edge *edges, size_t count, bool whole);
/* estimate_before: an earlier run made these: they are not left and say nothing of the speed. */
void estimate_before(struct estimate *x, const struct estimate_made *made, size_t count);
/* estimate_look: what is left now. Without a plan it is by number. */
struct estimate_view estimate_look(struct estimate *x, const struct estimate_look *q);
