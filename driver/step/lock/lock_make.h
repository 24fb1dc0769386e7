/* The lock of a part's Debian packages: what apt-get of this machine would install of the
 * archive. */
#pragma once
#include "core/world/world.h"

struct lock_request {
	const struct world_part *part;
	const char *platform, *archive;
	const struct strlist *addresses; /* of the archive; the first that answers counts */
	/* of a part that is not a base: what it lies on, whose packages are left out */
	const struct world_part *base;
	const struct world_lock *base_lock;
	const struct world_lock *before; /* the lock that is there; NULL */
	const char *keyring;             /* NULL: Debian's own of this machine */
};

/* lock_make: the lock as the archive is now; entries of other kinds are those of `before`. Where
 * nothing in it changes, it is `before` with all that it says. ERR_SYSTEM without apt-get or a
 * keyring; ERR_NETWORK for an archive that cannot be read; ERR_INTEGRITY for an index that apt
 * refuses (signature, age), of another suite, or older than that of `before`; ERR_CONFIG for
 * packages that cannot be had together, or that need others than the base's lock has. */
int lock_make(const struct lock_request *q, const struct run *run, struct arena *a, struct world_lock *ret,
	      struct err *e) MUST_CHECK;

struct lock_change {
	const char *kind, *name;
	const char *before, *after; /* versions; NULL: not there */
	uint64_t size;              /* of what is there after it; 0: nothing */
	bool same_version;          /* other bytes, place or architecture under one version */
};

struct lock_diff {
	struct lock_change *changes; /* sorted by kind and name */
	size_t count;
	size_t added, removed, changed;
	bool other_request; /* the part's table asks for something else */
};

/* lock_compare: `before` NULL: all is new. The strings are those of the locks. */
void lock_compare(const struct world_lock *before, const struct world_lock *after, struct arena *a,
		  struct lock_diff *ret);
