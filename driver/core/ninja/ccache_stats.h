/* ccache's log of one build (CCACHE_STATSLOG): for each call the source file, and the names of the
 * counters that it raised. */
#pragma once
#include "base/base.h"

struct ccache_counter {
	/* as ccache calls it: "direct_cache_hit", "cache_miss", "called_for_link" */
	const char *name;
	unsigned count;
};

struct ccache_source {
	const char *path;
	unsigned hits, misses; /* of its compilations; both 0: ccache only passed it on */
};

struct ccache_stats {
	struct ccache_counter *counters; /* sorted by name */
	size_t counters_count;
	struct ccache_source *sources; /* sorted by path */
	size_t sources_count;
	unsigned direct_hits, preprocessed_hits, misses; /* of compilations */
	/* how many of the hits came from the remote storage */
	unsigned remote_hits;
};

/* ccache_stats_parse: any bytes have a result; other lines are skipped. */
void ccache_stats_parse(const char *text, size_t len, struct arena *a, struct ccache_stats *ret);
/* ccache_stats_source: NULL when there is none. */
const struct ccache_source *ccache_stats_source(const struct ccache_stats *s, const char *path);
