/* Making the lock of a part: what its packages need, from the archive's own index. */
#pragma once
#include "core/archive/index.h"
#include "core/world/lock.h"

struct lock_request {
	const char *part, *platform;
	const char *asked;           /* sha256 of what the part's table asks for */
	const char *archive, *suite; /* of its Debian packages */
	const struct strlist *components;
	const struct strlist *packages; /* asked for */
	bool essential;                 /* and what the suite marks so: of a base */
	/* of a toolkit: the base that it lies on and what that asks for, whose packages are left
	 * out; NULL: none */
	const struct world_lock *base;
	const struct strlist *base_packages;
	const struct world_lock *before; /* the lock that is there; NULL */
	const char *keyring;             /* as archive_suite */
};

/* lock_make: the lock as the archive is now; entries of other kinds are those of `before`. Where
 * nothing in it changes, it is `before` with all that it says. ERR_CONFIG for a toolkit whose
 * packages need others than the base's lock has; else what archive_index_read and resolve say. */
int lock_make(const struct lock_request *q, const struct archive_get *get, const struct run *run, struct arena *a,
	      struct world_lock *ret, struct err *e) MUST_CHECK;
