/* All objects of a store hashed again, several at once. */
#pragma once
#include "cache/store.h"

enum store_fate { STORE_WRONG_KEPT, STORE_WRONG_MOVED, STORE_WRONG_BUSY };

struct store_check { /* an object that is not what it was, or cannot be read */
	struct store_object object;
	struct err why; /* ERR_INTEGRITY, else it could not be told */
	enum store_fate fate;
};

struct store_checks {
	struct store_check *items; /* the wrong ones, in the order of store_list */
	size_t wrong;
	size_t checked;
	uint64_t bytes;
};

/* store_verify_all: with `move`, what is wrong goes to the quarantine, unless somebody holds its
 * lock. Objects that go away meanwhile are left out. Stores below are not looked at. -1 only when
 * the check as a whole fails. */
int store_verify_all(struct store *s, bool move, unsigned threads, const struct run *run, struct arena *a,
		     struct store_checks *ret, struct err *e) MUST_CHECK;
