/* ETA: how much of a build is left, weighted by what each unit took in earlier builds. */
#pragma once
#include "cache/history.h"
#include "core/ninja/ninja_log.h"

struct eta;

/* A unit that is being made now. */
struct eta_making {
	const char *path;
	double age; /* seconds */
};

struct eta_view {
	double percent;      /* of the work, 0..100 */
	double seconds_left; /* negative: nobody can say yet */
	/* most of the units are not known from earlier builds, so they are only counted */
	bool about;
};

/* eta_new: `known` must live as long as the result, which lives in the arena. */
struct eta *eta_new(const struct history *known, struct arena *a);
/* eta_plan: this tree makes the outputs of these edges (sorted by output) and nothing else; `made`:
 * those an earlier run has made already. Without it every known unit is expected. What no earlier
 * build knows counts as the others of its kind do, the known ones and those that this run has made.
 * Once per `eta`. */
void eta_plan(struct eta *x, const struct ninja_edge *edges, size_t count, const struct ninja_log *made);
/* eta_count: the build system says that `done` of `all` commands have ended; `line`: how it named
 * the last one ("Building CXX object a.o", "a.o"); `jobs`: how many are being made, of which the
 * most counts. A count that begins anew is a new run of it. */
void eta_count(struct eta *x, unsigned done, unsigned all, const char *line, double now, unsigned jobs);
/* eta_update: to be called about once a second: what is being made counts for as long as it has
 * been running, but for no more than it usually takes. */
void eta_update(struct eta *x, const struct eta_making *making, size_t count, double now);
/* eta_look: the estimate: what is left of each kind of command divided by that kind's pace of the
 * last minutes, which begins as one second of work a second and job. */
struct eta_view eta_look(const struct eta *x);
