/* Build trees that were kept: their variants, and the sandboxes they were built in. */
#pragma once
#include "core/root/sandbox.h"

struct plan;

struct build_tree {
	const char *dir; /* <store>/build/<key> */
	const char *key; /* the compile key */
	const char *variant;
	int64_t used; /* ns since the epoch: when it was last built in */
};

/* build_tree_save: writes variant and sandbox into the tree `dir`. */
int build_tree_save(const char *dir, const struct plan *p, const struct sandbox *s, struct err *e) MUST_CHECK;
/* build_tree_list: the trees below `builds` (<store>/build) with such a file, the latest first. A
 * missing directory has none. */
int build_tree_list(const char *builds, struct arena *a, struct build_tree **ret, size_t *ret_count,
		    struct err *e) MUST_CHECK;
/* build_tree_enter: runs argv (NULL: a shell) in the tree's sandbox with the caller's terminal and
 * streams. A command's status other than 0 is ERR_BUILD; a shell's is ignored. */
int build_tree_enter(const struct build_tree *t, const char *const *argv, const struct run *run,
		     struct err *e) MUST_CHECK;
