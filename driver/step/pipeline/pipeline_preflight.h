/* What the preflight asks of other steps, for doctor and for a build. */
#pragma once
#include "step/fetch/fetch.h"
#include "step/pipeline/pipeline.h"
#include "step/preflight/preflight.h"

/* Callbacks of a preflight_request whose `user` is a pipeline_request. pipeline_trial: what it
 * lacks offline is a warning where all is looked at. */
int pipeline_installs(void *user, struct preflight *d, struct strlist *ret, struct err *e) MUST_CHECK;
int pipeline_trial(void *user, struct preflight *d, struct err *e) MUST_CHECK;
/* pipeline_reach: asks the places of what the store (NULL: none) lacks of the plan's sources and of
 * a world that is not made. `others`: another store may have the wheel, so sources only warn. */
int pipeline_reach(struct preflight *d, struct store *store, const struct fetch_options *o, bool others,
		   struct err *e) MUST_CHECK;
/* pipeline_preflight: of a build in its root: ERR_SYSTEM or ERR_POLICY with all that is missing or
 * does not fit, and what to do about it. `toolkits` NULL where nothing is built for CUDA. */
int pipeline_preflight(const struct pipeline_request *q, const struct plan *p, const struct toolchain *toolchain,
		       const struct toolkits *toolkits, const struct run *run, struct arena *a,
		       struct err *e) MUST_CHECK;

struct trial_request {
	const struct pipeline_request *q;
	const struct plan *plan; /* whose flags, back end, Python and root count */
	const struct toolchain *toolchain;
};
