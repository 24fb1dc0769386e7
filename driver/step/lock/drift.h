/* Drift: packages that the archive no longer has in the version of the lock. */
#pragma once
#include "core/archive/index.h"
#include "core/world/lock.h"

struct drift_change {
	const char *name;
	const char *locked, *present; /* versions */
};

struct drift {
	struct drift_change *changes; /* in the order of the lock */
	size_t count;
};

/* drift_resolve: the lock with the suite's present version for each entry that is `gone` (one for
 * each entry; only Debian packages may be), by the signed index, and what changed. Neither is a
 * part's tree digest then known. ERR_NETWORK for a package that the suite has not at all, or has in
 * a version older than the lock's, or that needs what the lock lacks: each error names the
 * command that makes a new lock. */
int drift_resolve(const struct world_lock *l, const bool *gone, const struct archive_index *index, struct arena *a,
		  struct world_lock *ret, struct drift *ret_drift, struct err *e) MUST_CHECK;
/* drift_refuse: ERR_NETWORK that names the packages that are gone. */
int drift_refuse(const struct world_lock *l, const bool *gone, struct err *e);
