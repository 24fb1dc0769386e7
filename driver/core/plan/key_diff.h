/* Key texts compared: which inputs of a build are not what they were. */
#pragma once
#include "base/arena.h"
#include "base/strlist.h"

/* key_diff: what differs between two texts of plan_keys, a line each, added to `ret` (pure):
 * "toolchain gcc: 14.2.0 → 14.3.0", "env USE_MPI: ON → OFF"; "none" stands for a line that only one
 * of them has. Digests are shortened. Any bytes will do. */
void key_diff(const char *old, const char *new, struct arena *a, struct strlist *ret);
