/* Worlds in the store: whole root file systems, with links, which no other object has. Each lies at
 * worlds/<key> as `root`, its `manifest`, and `world.json`, which is written last and whose time is
 * that of the last use. store_list, store_verify, store_remove and store_gc know them as objects of
 * the kind STORE_WORLD. */
#pragma once
#include "cache/store.h"

struct store_world {
	const char *key;
	const char *name, *platform; /* "debian13", "x86_64-linux" */
	const char *tree;            /* sha256 of the manifest */
	uint64_t bytes;              /* of all its files, so that a list need not look at each */
};

#define STORE_WORLD_ROOT "root"

/* store_world_find: the root of a published world, here or in a fallback store; NULL in *ret:
 * none. Marks it used. Its files are not looked at. */
int store_world_find(struct store *s, const char *key, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_world_use: the same for who uses it: one that looks other than when it was last checked is
 * checked against its manifest. `whole`: each path is looked at, for who runs something of it; else
 * the directories, which show all but what is written into a file in place. A damaged one is a
 * warning and counts as none, and store_world_publish moves it to the quarantine. */
int store_world_use(struct store *s, const char *key, bool whole, struct arena *a, const char **ret,
		    struct err *e) MUST_CHECK;
/* store_world_hold: a shared lock, with which garbage collection leaves a world alone. Waits for
 * who makes it. */
int store_world_hold(struct store *s, const char *key, const struct run *run, struct lock *ret,
		     struct err *e) MUST_CHECK;
/* store_world_publish: `stage` has the tree as `root`; *ret is it at its place. Its manifest is the
 * text whose sha256 is w->tree: lines as cache/FORMAT.md says. All is on the disk before the
 * directory is renamed to its place. If a world is there already the stage is dropped. */
int store_world_publish(struct store *s, const struct store_world *w, const struct buf *manifest, const char *stage,
			struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_world_verify: for store_verify: ERR_INTEGRITY says what is missing, changed or extra. */
int store_world_verify(const struct store_object *o, const struct run *run, struct err *e) MUST_CHECK;
