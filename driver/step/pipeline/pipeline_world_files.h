/* The files of a world in the store, with the archive's present versions of those that are gone. */
#pragma once
#include "step/pipeline/pipeline_world.h"

struct world_files {
	/* what they make: the one that was asked for, or with drift one of another key */
	const struct world *world;
	/* for each piece, for each entry of its lock in `world` */
	const char *const *const *paths;
	struct strlist drift; /* as struct world_result */
	struct fetch_stats fetched;
};

/* world_files: fetches what the store lacks. A package that each place certainly lacks has left the
 * archive: its present version by the signed index takes its place, with a warning; with no_drift
 * that is ERR_NETWORK. Else what drift_resolve, fetch_all and archive_index_read say. */
int world_files(const struct world_request *q, const struct run *run, struct arena *a, struct world_files *ret,
		struct err *e) MUST_CHECK;
