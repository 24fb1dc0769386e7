/* Index: a static simple repository (PEP 503, 592, 629, 658, 691, 700, 714) over a directory of
 * wheels, for pip and uv. */
#pragma once
#include "base/run.h"
#include "base/strlist.h"

#define INDEX_ALL "simple" /* the sub-directory that has every wheel */

struct index_request {
	const char *dir; /* holds the wheels, and gets the index */
	/* where the wheels of `dir` are served, NULL: beside the index, by relative links */
	const char *base_url;
};

struct index_result {
	size_t wheels, projects, yanked;
	/* of the sub-directories: INDEX_ALL and one per profile ("cpu-avx2", by the versions' local
	 * labels) */
	struct strlist names;
};

/* index_write: below `dir`, for each profile and for all wheels: <name>/index.html and index.json,
 * <name>/<project>/index.html and index.json; and <wheel>.metadata beside each wheel. A wheel is
 * yanked while a file <wheel>.yanked lies beside it; its first line is the reason. The same wheels
 * give the same bytes. Each sub-directory is exchanged whole, so a reader sees the old one or the
 * new one; profiles without wheels go. Nothing changes when a wheel cannot be read: ERR_INTEGRITY
 * names it. ERR_POLICY for a directory of that name that is no index. Two at once wait for each
 * other. */
int index_write(const struct index_request *q, const struct run *run, struct arena *a, struct index_result *ret,
		struct err *e) MUST_CHECK;
