/* All objects of a store hashed again, several at once. */
#pragma once
#include "cache/store.h"

enum store_fate { STORE_WRONG_KEPT, STORE_WRONG_MOVED, STORE_WRONG_BUSY };

struct store_check { /* a damaged or unreadable object */
	struct store_object object;
	struct err why; /* ERR_INTEGRITY: it is damaged; else it could not be read */
	enum store_fate fate;
};

struct store_checks {
	struct store_check *items; /* the wrong ones, in the order of store_list */
	size_t wrong;
	size_t checked;
	uint64_t bytes;
};

/* store_verify_all: hashes all objects of this store in `threads` threads. With `move` the damaged
 * ones go to the quarantine, unless somebody holds their lock. Objects that go away meanwhile are
 * left out. -1 only when the check as a whole fails. */
int store_verify_all(struct store *s, bool move, unsigned threads, const struct run *run, struct arena *a,
		     struct store_checks *ret, struct err *e) MUST_CHECK;
