/* What differs between two locks of a part. */
#pragma once
#include <stdbool.h>

#include "core/world/lock.h"

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
