/* The marker of each slimmed distribution in an environment. */
#pragma once
#include "base/base.h"
#include "core/fatbin/fatbin.h"

struct slim_package; /* step/slim/slim_env.h */

/* slim_env_check: ERR_POLICY for a distribution that was slimmed for other GPUs, by its marker, or
 * by its version label where an older ptbuild left no marker. */
int slim_env_check(const char *place, const char *info, const struct fatbin_wanted *w, struct arena *a,
		   struct err *e) MUST_CHECK;
/* slim_env_mark: writes the marker unless it is there, and gives it a row in p->rows. *ret_changed
 * is set where RECORD must be written. Call it before the first library changes: a kill then
 * leaves what tells a second run which GPUs were meant. */
int slim_env_mark(struct slim_package *p, const struct fatbin_wanted *w, struct arena *a, bool *ret_changed,
		  struct err *e) MUST_CHECK;
