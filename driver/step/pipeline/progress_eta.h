/* ETA: how much of a build is left, weighted by what each unit took in earlier builds, here or (as
 * the release's table says) elsewhere. */
#pragma once
#include "core/ninja/ninja_log.h"
#include "step/pipeline/weights.h"
#include "step/watch/watch.h"

struct eta;

struct eta_view {
	double percent;      /* of the work, 0..100 */
	double seconds_left; /* negative: not known yet */
	/* most of the commands are in no list, so they are only counted; or too little was made to
	 * say how fast this machine is */
	bool about;
};

/* eta_new: `w` must live as long as the result, which lives in the arena. */
struct eta *eta_new(const struct weights *w, struct arena *a);
/* eta_plan: this tree makes the outputs of these edges and, if they are the `whole` plan, nothing
 * else; other commands of the release's table are left to later runs. `made`: what an earlier run
 * has made already. A command that no list knows counts as the others of its kind do. Without a
 * plan every known command is expected. Once per `eta`. */
void eta_plan(struct eta *x, const struct ninja_edge *edges, size_t count, const struct ninja_log *made, bool whole);
/* eta_count: `done` of `all` commands have ended; `line` ends in the output of the last ("Building
 * CXX object a.o"); `jobs`: how many are running, of which the most counts. A count that begins
 * anew is a new run. */
void eta_count(struct eta *x, unsigned done, unsigned all, const char *line, double now, unsigned jobs);
/* eta_update: to be called about once a second with what is running, which counts for its age, but
 * for no more than such a command usually takes. */
void eta_update(struct eta *x, const struct watch_running *running, size_t count, double now);
/* eta_look: the estimate: what is left of each kind of command over that kind's pace of the last
 * minutes, on the processors that were used; but no less than the longest command that is left, and
 * the steps that follow. */
struct eta_view eta_look(const struct eta *x);
