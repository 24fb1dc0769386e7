/* The trial: a small extension that goes the way of a package, by the same functions, before a
 * build that takes hours. */
#pragma once
#include "step/pipeline/pipeline.h"

struct trial_request {
	const struct pipeline_request *q;
	const struct plan *plan; /* whose flags, back end, Python and root count */
	const struct toolchain *toolchain;
};

/* trial_passed: whether it was made and passed on the same of everything: plan, ptbuild, tables,
 * tools and the directories of the root with what a compiler needs. */
bool trial_passed(const struct trial_request *t, struct arena *a);
/* trial_run: builds profiles/trial with the plan's flags, relocates, packs, verifies, installs and
 * imports it, and remembers that it passed. What a compiler says is ERR_SYSTEM here, since the
 * source is known to be right; the hint names the log. ERR_NETWORK if the Python packages of the
 * build must be fetched and cannot. */
int trial_run(const struct trial_request *t, const struct run *run, struct arena *a, struct err *e) MUST_CHECK;
