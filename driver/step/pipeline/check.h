/* Reproducibility: what was built is built once more, elsewhere and otherwise, and the two wheels
 * are compared. */
#pragma once
#include "step/pipeline/pipeline.h"
#include "step/verify/compare.h"

struct pipeline_checked {
	const char *variant;
	struct comparison result;
	/* the other wheel, kept beside the first's details; NULL when they are the same */
	const char *second;
	const char *settings; /* what was done otherwise: "3 jobs, umask 077, ..." */
	double seconds;
};

/* pipeline_check: each of the items that q->targets asked for, built anew in a store of its own
 * beside q's (another path, an empty compiler cache; sources and Python requirements are taken
 * over), with another number of jobs, umask, time zone and locale of this process, and at another
 * time. torchvision and torchaudio are built against the same torch wheel. Differences are no error
 * here. */
int pipeline_check(const struct pipeline_request *q, const struct pipeline_item *items, size_t count,
		   const struct run *run, struct arena *a, struct pipeline_checked **ret, size_t *ret_count,
		   struct err *e) MUST_CHECK;
