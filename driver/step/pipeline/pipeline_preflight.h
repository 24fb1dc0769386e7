/* What is found out before a build begins: whether this machine, its root and its tables can make
 * it. */
#pragma once
#include "step/pipeline/pipeline.h"

/* What the preflight is about. */
struct pipeline_preflight {
	const struct pipeline_request *q;
	const struct plan *plan;
	const struct toolchain *toolchain;
	const struct toolkits *toolkits; /* NULL where nothing is built for CUDA */
};

/* pipeline_preflight: ERR_SYSTEM or ERR_POLICY with all that is missing or does not fit, and what
 * to do about it. */
int pipeline_preflight(const struct pipeline_preflight *f, const struct run *run, struct arena *a,
		       struct err *e) MUST_CHECK;
