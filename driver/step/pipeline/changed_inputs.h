/* What changed since a variant was last built, told when its build starts from nothing. */
#pragma once
#include "cache/store.h"
#include "core/plan/plan.h"

/* log_changed_inputs: where the latest build of the plan's variant (a kept tree, or a wheel in the
 * store) had another compile key, logs which inputs changed since. `build_dir`: the new tree.
 * Silent when no earlier build is known; an error here stops no build. */
void log_changed_inputs(struct store *s, const struct plan *p, const char *build_dir, const struct run *run);

/* log_packed_otherwise: where a lower store has a wheel of the plan's compile key that a ptbuild
 * with other tables or libraries packed, logs what they differ in. */
void log_packed_otherwise(struct store *s, const struct plan *p, const struct run *run);
