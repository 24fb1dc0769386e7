/* The compile and link commands of a build, from what ninja, ccache and the watch wrote down. */
#pragma once
#include "cache/history.h"
#include "core/ninja/ccache_stats.h"
#include "core/root/jobs.h"
#include "step/watch/watch.h"

enum report_state {
	REPORT_MADE, /* by a compiler, in this run of ptbuild */
	REPORT_HIT,  /* taken from the compiler cache */
	/* by an earlier run, which was killed or failed; how, is not known any more */
	REPORT_BEFORE
};

struct report_unit {
	const char *path;   /* as history names it */
	const char *source; /* its first input as the build saw it, "" if not known */
	double start, end;  /* seconds since the epoch */
	/* which of the processors it was on, as far as one can tell: the lowest that was free */
	unsigned slot;
	uint64_t peak_bytes; /* 0: not seen */
	enum report_state state;
	enum history_kind kind;
};

struct report_units {
	struct report_unit *units; /* sorted by start */
	size_t count;
	unsigned slots;
	struct ccache_stats ccache; /* of the last run of the build */
	size_t logs;                /* how many logs of ninja were found */
};

/* report_units_collect: looks for the logs of ninja anywhere below src/build of the build directory
 * (packages that drive CMake or ninja themselves keep them deeper) and for ccache's in out/.
 * `watched`: what the watch saw, `since`: when this run of ptbuild began (seconds since the epoch;
 * units that started before were made by an earlier one); `heavy`: the release's table of heavy
 * units, may be NULL. A log that cannot be read is passed over with a warning. */
void report_units_collect(const char *build_dir, const struct watch_result *watched, double since,
			  const struct memory_row *heavy, const struct run *run, struct arena *a,
			  struct report_units *ret);
/* report_units_history: what is to be remembered: the time and memory of each unit that a compiler
 * really made in this run. Of one that came out of the compiler cache the time says how fast the
 * cache is, and of one that an earlier run made nobody knows whether it came from there, so neither
 * is in it. Returns how many; the units live in the arena. */
size_t report_units_history(const struct report_units *u, struct arena *a, struct history_unit **ret);
