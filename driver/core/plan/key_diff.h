/* Differences of two key texts: which inputs of a build have changed. */
#pragma once
#include "base/arena.h"
#include "base/strlist.h"

/* key_diff: adds a line to `ret` for each input that differs between two texts of plan_keys:
 * "toolchain gcc: 14.2.0 → 14.3.0", "env USE_MPI: ON → OFF"; "none" if a text lacks it. Digests are
 * shortened. The texts need not be well formed. */
void key_diff(const char *old, const char *new, struct arena *a, struct strlist *ret);
