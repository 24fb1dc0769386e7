/* Whether there is disk space for what is downloaded, and for what is made of it. */
#pragma once
#include "step/fetch/fetch.h"

struct fetch_room {
	const struct fetch_source *sources;
	size_t count;
	uint64_t made;       /* least bytes that are written to `out_dir` afterwards */
	const char *out_dir; /* is there */
};

/* fetch_room_check: ERR_SYSTEM where a source is to be downloaded, and the file system of the store
 * has no room for what is missing of it, or that of the output directory none for `made`; of one
 * file system, for both. Nothing is asked where nothing is to be downloaded. */
int fetch_room_check(const struct fetcher *by, const struct fetch_room *q,
		     struct err *e) MUST_CHECK;
