/* The compile and link commands of a build, from the logs of ninja and ccache and from the watch.
 * */
#pragma once
#include "core/ninja/ninja.h"
#include "core/root/jobs.h"
#include "step/watch/watch.h"

enum report_state {
	REPORT_MADE, /* by a compiler, in this run of ptbuild */
	REPORT_HIT,  /* taken from the compiler cache */
	/* by an earlier run, which was killed or failed; whether it came from the cache is not
	 * known */
	REPORT_BEFORE
};

enum report_kind { REPORT_COMPILE, REPORT_HEAVY, REPORT_LINK };

struct report_unit {
	const char *path;   /* as watch_unit_name */
	const char *source; /* its first input as the build saw it, "" if not known */
	double start, end;  /* seconds since the epoch */
	/* the processor slot that it presumably had: the lowest that was free */
	unsigned slot;
	uint64_t peak_bytes; /* 0: not seen */
	enum report_state state;
	enum report_kind kind;
};

struct report_units {
	struct report_unit *units; /* sorted by start */
	size_t count;
	unsigned slots;
	struct ccache_stats ccache; /* of the last run of the build */
	size_t logs;                /* how many logs of ninja were found */
};

/* report_units_collect: reads ninja's logs anywhere below src/build of the build directory and
 * ccache's in out/. `since`: when this run of ptbuild began (seconds since the epoch); units that
 * started before were made by an earlier one. `heavy`: the release's table of heavy units, may be
 * NULL. A log that cannot be read is a warning. */
void report_units_collect(const char *build_dir, const struct watch_result *watched, double since,
			  const struct memory_row *heavy, const struct run *run, struct arena *a,
			  struct report_units *ret);
