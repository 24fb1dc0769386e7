/* Wheel variants (PEP 825, 850: drafts): an index from which installers choose by the machine. */
#pragma once
#include "core/tables/tables.h"
#include "step/index/index.h"

#define VARIANTS_DIR "variants" /* below the directory of wheels */

/* Makes, in the directory `to`, the variant of a wheel that ptbuild packed; gives its file name. */
typedef int index_variant_fn(const char *wheel, const char *label, const char *json, const char *to,
			     const struct run *run, struct arena *a, const char **ret, struct err *e);

struct index_variants {
	struct index_result index; /* of VARIANTS_DIR */
	/* files made and copied; what is left out, with the reason, for people */
	struct strlist made, plain, left;
};

/* index_variants: in VARIANTS_DIR each wheel of `q->dir` that has a profile's label, made with
 * `make`, with what the label promises as properties; wheels without a label as they are, for
 * installers that know no variants; and the index of them all. Yanked wheels, those whose label no
 * property says, and those that require one of these are left out. Wheels there that come from none
 * of `dir` are removed. As index_write, and ERR_USAGE where there is no variant. */
int index_variants(const struct index_request *q, const struct tables *t, index_variant_fn *make, const struct run *run,
		   struct arena *a, struct index_variants *ret, struct err *e) MUST_CHECK;
