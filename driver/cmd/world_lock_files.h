/* "ptbuild world lock" for what no Debian archive has. */
#pragma once
#include "cmd/cmd.h"
#include "core/world/lock.h"
#include "core/world/part.h"

/* world_lock_files: the wheels and the archives that a part asks for, as the Python index and
 * NVIDIA's manifest have them now, in the place of those in the lock; for the lock's platform. What
 * a python asks for is pinned by hand and stays: ERR_CONFIG where it is missing. */
int world_lock_files(struct cmd_context *c, const struct world_part *p, struct world_lock *l, struct err *e) MUST_CHECK;
