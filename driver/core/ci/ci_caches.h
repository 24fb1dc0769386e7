/* What a service keeps between the jobs of a matrix, and how much that may be. */
#pragma once
#include "core/ci/ci.h"

/* Parts of a job's store: what it compiled, and what it downloaded for its world and its sources;
 * each with the file that makes it a store. Caches are files named by their contents, so that two
 * may be unpacked over one another. */
#define CI_CACHE_PATHS                                                                             \
	{                                                                                          \
		CI_STORE "/compiled", CI_STORE "/format"                                           \
	}
#define CI_FILES_PATHS                                                                             \
	{                                                                                          \
		CI_STORE "/objects/source", CI_STORE "/format"                                     \
	}

/* ci_keep_files: names what each job keeps of its downloads: "" without a world, or where the
 * format's row keeps no such amount. Another lock of the world is another name. The jobs are in
 * their order. */
void ci_keep_files(struct ci_plan *p, const char *format, struct arena *a);

struct ci_kept {
	size_t compiled;         /* names of compiler caches */
	uint64_t compiled_bytes; /* that all of these may take */
	size_t worlds;           /* whose files are kept */
	uint64_t worlds_bytes;
};

/* ci_kept: of one run; the format has a row. */
struct ci_kept ci_kept(const struct ci_plan *p, const char *format);
