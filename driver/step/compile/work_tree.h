/* Where a build tree is worked in. Without a sandbox that is the sandbox's own path on this machine
 * (core/root/sandbox.h), where one tree lies at a time; between builds it lies in the store,
 * or, where the store is on another file system, beside the place. */
#pragma once
#include "base/sys/lock.h"

struct work_tree {
	const char *dir;  /* where it is worked in */
	const char *rest; /* where it lies after work_tree_give_back */
	const char *home; /* the directory in the store, which stays while it is elsewhere */
	const char *top;  /* the place; NULL: it is worked in where it is */
	bool apart;       /* on another file system than the home */
	struct lock lock; /* of the place */
};

#define WORK_TREE_NONE ((struct work_tree){.lock = LOCK_NONE})
#define AUTO_WORK_TREE CLEANUP(work_tree_release)

/* work_tree_take: the tree of `home` into the place `top` (NULL: it is worked in at home). Waits
 * for who works there, as lock_acquire. A tree that a killed build left there goes to where it
 * rests; of a home that is gone it is removed. The caller holds the tree's own lock. ERR_POLICY:
 * the place cannot be had. */
int work_tree_take(const char *top, const char *home, const struct run *run, struct arena *a, struct work_tree *ret,
		   struct err *e) MUST_CHECK;
/* work_tree_give_back: the tree to where it rests, and the place to others. work_tree_remove: the
 * tree is removed instead, and its home. After either nothing is held, whatever was returned; what
 * could not be moved is moved by who takes the place next. */
int work_tree_give_back(struct work_tree *w, struct err *e) MUST_CHECK;
int work_tree_remove(struct work_tree *w, struct err *e) MUST_CHECK;
/* work_tree_release: gives up the place as it is, as a kill does. */
void work_tree_release(struct work_tree *w);
/* work_tree_settle: what a killed build left in the place goes to where it rests, unless somebody
 * works there. A failure is left to who takes the place next. */
void work_tree_settle(const char *top, const struct run *run);
