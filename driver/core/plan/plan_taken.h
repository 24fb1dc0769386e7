/* The plan of a torch that is taken from the root instead of built: what is known of it, and the
 * keys of its wheel. */
#pragma once
#include "core/plan/plan.h"

struct plan_taken_request {
	const struct root *root;
	const char *package; /* "python3-torch=2.6.0+dfsg-7" */
	const char *version; /* full: "2.6.0+debian" */
	const char *python, *platform;
	const char *digest; /* of its files */
	uint64_t epoch;
	enum sandbox_kind sandbox;
	unsigned without_walls;
	unsigned metadata_rev; /* 0 = 1 */
};

/* plan_taken: its instruction set is the platform's baseline; the notes say that ptbuild did not
 * compile it, and what is known to fail in it. `ret_tools`: what the record has in their place. */
int plan_taken(const struct tables *t, const struct plan_taken_request *q, struct arena *a, const struct plan **ret,
	       const struct toolchain **ret_tools, struct err *e) MUST_CHECK;
