/* A world: the parts that a root is made of, each with its lock. "debian13", or with a toolkit and
 * a Python over the base: "debian13+cuda13_0", "debian13+python3_12". */
#pragma once
#include "core/world/lock.h"
#include "core/world/part.h"

/* A file of a world's root that names it: one line, "<name> <platform> <key>". */
#define WORLD_STAMP "etc/ptbuild-world"

struct world_piece {
	const struct world_part *part;
	struct world_lock lock;
};

struct world {
	const char *name; /* the parts' names with '+' between, as world_put_in_order has them */
	const char *platform;
	struct world_piece *pieces;
	size_t count;
	char key[65];      /* sha256 over the keys of all parts (world_lock_key) */
	uint64_t download; /* bytes of all its files */
	/* sha256 of toolkit_tree.yaml without comments, in the key of worlds with a toolkit */
	char toolkit_rules[65];
};

/* world_load: the parts of a name, in whichever order behind the base, with their tables and
 * locks. ERR_CONFIG for a name whose first part is not a base or whose others are bases, for one
 * part twice, a part that is not for the platform or has no lock for it, a lock that was made for
 * another request than the table's, and a part with packages of another suite than the base's. */
int world_load(const char *profiles, const char *name, const char *platform, struct arena *a, const struct world **ret,
	       struct err *e) MUST_CHECK;
/* world_put_in_order: sorts parts of different kinds as a world has them (the base, a Python, a
 * toolkit, a library) and gives the world's name. */
const char *world_put_in_order(struct world_piece *pieces, size_t count, struct arena *a);
/* world_with_locks: the same parts with other locks, one for each: another key. */
const struct world *world_with_locks(const struct world *w, const struct world_lock *locks, struct arena *a);
/* world_read_stamp: the stamp of the root at `dir`: 1; 0 if it is not made from a world. */
int world_read_stamp(const char *dir, struct arena *a, char **ret_name, char **ret_key, struct err *e) MUST_CHECK;
