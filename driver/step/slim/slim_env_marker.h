/* The marker of each slimmed distribution in an environment. */
#pragma once
#include "base/base.h"
#include "core/fatbin/fatbin.h"

struct fs_place; /* base/sys/fs_place.h */

/* slim_env_check: ERR_POLICY for a distribution that was slimmed for other GPUs, by its marker, or
 * by its version label where an older ptbuild left no marker. */
int slim_env_check(const struct fs_place *place, const char *info, const struct fatbin_wanted *w, struct arena *a,
		   struct err *e) MUST_CHECK;
