/* Reproducibility: each wheel is built a second time under other conditions, and the two are
 * compared. */
#pragma once
#include "step/pipeline/pipeline.h"
#include "step/verify/compare.h"

struct pipeline_checked {
	const char *variant;
	struct comparison result;
	/* the second wheel, kept below the output directory; NULL when both are the same */
	const char *second;
	const char *settings; /* the other conditions: "3 jobs, umask 077, ..." */
	double seconds;
};

/* pipeline_check: builds each of the items that q->targets asked for again in a store of its own
 * beside q's (another path, an empty compiler cache; sources and Python packages are copied), with
 * another number of jobs, umask, time zone and locale, at another time. torchvision and torchaudio
 * are built against the same torch wheel. Differences are not an error. */
int pipeline_check(const struct pipeline_request *q, const struct pipeline_item *items, size_t count,
		   const struct run *run, struct arena *a, struct pipeline_checked **ret, size_t *ret_count,
		   struct err *e) MUST_CHECK;
