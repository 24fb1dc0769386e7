/* How two plans differ, and why. */
#pragma once
#include "core/plan/plan.h"

/* plan_compare: {"schema", "left", "right", "differences": [{"section", "name", "left": {"value",
 * "from", "rule", "why"} or null, "right": ...}]} (new reference), by section ("plan",
 * "environment", "cache entries", "sources", "patches", "notes", "keys"), and by name within a
 * section; none for equal plans. A cache entry set through a variable of its name is listed once,
 * as the variable. "from" is null where the plan's parts come from no table. plan_diff_rows show
 * it. */
json_t *plan_compare(const struct plan *left, const struct plan *right, struct arena *a);
extern const struct show plan_diff_rows[];

/* key_diff: adds a line to `ret` for each input that differs between two texts of plan_keys:
 * "toolchain gcc: 14.2.0 → 14.3.0", "env USE_MPI: ON → OFF"; "none" if a text lacks it. Digests are
 * shortened. The texts need not be well formed. */
void key_diff(const char *old, const char *new, struct arena *a, struct strlist *ret);
