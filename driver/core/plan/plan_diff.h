/* How two plans differ, and why. */
#pragma once
#include "core/plan/plan.h"

/* One side of a difference. */
struct plan_side {
	const char *value; /* NULL: this plan has none */
	const char *from;  /* "gpu.yaml:42", "" where the plan's parts come from no table */
	const char *rule;
	const char *why;
};

struct plan_difference {
	/* "plan", "environment", "cache entries", "sources", "patches", "notes", "keys" */
	const char *section;
	const char *name;
	struct plan_side left, right;
};

struct plan_diff {
	struct plan_difference *items;
	size_t count;
	size_t cap;
};

/* plan_compare: the differences by section, and by name within a section; none for equal plans. A
 * cache entry set through a variable of its name is listed once, as the variable. */
void plan_compare(const struct plan *left, const struct plan *right, struct arena *a, struct plan_diff *ret);
/* plan_diff_json: {"schema", "left", "right", "differences": [{"section", "name", "left": {"value",
 * "from", "rule", "why"} or null, "right": ...}]} (new reference). plan_diff_rows
 * show it. */
json_t *plan_diff_json(const struct plan *left, const struct plan *right, const struct plan_diff *d);
extern const struct show plan_diff_rows[];

/* key_diff: adds a line to `ret` for each input that differs between two texts of plan_keys:
 * "toolchain gcc: 14.2.0 → 14.3.0", "env USE_MPI: ON → OFF"; "none" if a text lacks it. Digests are
 * shortened. The texts need not be well formed. */
void key_diff(const char *old, const char *new, struct arena *a, struct strlist *ret);
