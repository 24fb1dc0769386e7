/* The lock of a part's Debian packages: what apt-get of this machine would install of the
 * archive. */
#pragma once
#include "base/sys/json.h"
#include "core/wheel/wheel.h"
#include "core/world/world.h"

struct lock_request {
	const struct world_part *part;
	const char *platform, *archive;
	const struct strlist *addresses; /* of the archive; the first that answers counts */
	/* for a part that is not a base: its base, whose packages are left out */
	const struct world_part *base;
	const struct world_lock *base_lock;
	const struct world_lock *before; /* the lock that is there; NULL */
	const char *keyring;             /* NULL: Debian's own of this machine */
	const struct run *run;           /* where to log, and how the user stops it */
};

/* lock_make: the lock as the archive is now; entries of other kinds are those of `before`. Where
 * nothing in it changes, it is `before` with all that it says. ERR_SYSTEM without apt-get or a
 * keyring; ERR_NETWORK for an archive that cannot be read; ERR_INTEGRITY for an index that apt
 * refuses (signature, age), of another suite, or older than that of `before`; ERR_CONFIG for
 * packages that cannot be had together, or that need others than the base's lock has. */
int lock_make(const struct lock_request *q, struct arena *a, struct world_lock *ret,
	      struct err *e) MUST_CHECK;

/* lock_compare: {"other_request", "added", "removed", "changed", "changes"}, a new reference;
 * `before` NULL: all is new. A change, by kind and name, has the versions "before" and "after"
 * (null: not there), "bytes" of what is there after it, and "same_version": other bytes, place or
 * architecture under one version. other_request: the part's table asks for something else.
 * lock_differs: whether there is any of it. */
json_t *lock_compare(const struct world_lock *before, const struct world_lock *after,
		     struct arena *a);
bool lock_differs(const json_t *diff);

/* The entries of a lock that are not Debian packages: wheels as an index lists them, and archives
 * of NVIDIA's redistributable components as their manifest has them. */

/* lock_wheel: chooses from the wheels listed for a distribution the one of "name==version" on the
 * platform for a Python and an ABI, in the form of tags ("cp313" and "cp313", "py3" and "none"); of
 * several the one that runs with the oldest glibc. ERR_NETWORK if none matches, for two with the
 * same glibc, or for one without digest and size. */
int lock_wheel(const char *asked, const char *python, const char *abi, const char *platform,
	       const struct wheel_listed *files, size_t count, struct arena *a,
	       struct world_entry *ret, struct err *e) MUST_CHECK;
/* lock_redist: the archives of components in a manifest (redistrib_12.8.1.json) that came from
 * `url`, beside which they lie; ret has one entry for each. ERR_NETWORK for a manifest that cannot
 * be read, lacks a component or has none of it for the platform. */
int lock_redist(const char *text, size_t len, const char *url, const char *const *components,
		size_t count, const char *platform, struct arena *a, struct world_entry **ret,
		struct err *e) MUST_CHECK;
/* lock_replace: the entries of one kind by others. */
void lock_replace(struct world_lock *l, enum world_kind kind, const struct world_entry *entries,
		  size_t count, struct arena *a);
