/* What changed since a variant was built last, said when its build starts from nothing. */
#pragma once
#include "cache/store.h"
#include "core/plan/plan.h"

/* changed_say: where the latest build of the plan's variant, a tree that was kept or a wheel in the
 * store, had another compile key, says through the log which inputs are not what they were.
 * `build_dir`: the new tree. Says nothing where nothing is known of an earlier one, and whatever
 * goes wrong here stops no build. */
void changed_say(struct store *s, const struct plan *p, const char *build_dir, const struct run *run);
