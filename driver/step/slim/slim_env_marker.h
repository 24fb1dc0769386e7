/* The marker of each slimmed distribution in an environment. */
#pragma once
#include "base/base.h"
#include "core/fatbin/fatbin.h"

struct fs_place; /* base/sys/fs_place.h */

/* slim_env_check: ERR_POLICY if distributions at the places were slimmed for other GPUs, by their
 * markers, or by their version labels where an older ptbuild left no marker; the hint names all. */
int slim_env_check(struct fs_place *const *places, size_t count, const struct fatbin_wanted *w,
		   struct arena *a, struct err *e) MUST_CHECK;
