/* What the readers of wheels (toolkit_wheel.c) and of archives (toolkit_archive.c), and what makes
 * stubs (toolkit_stub.c), share with the tree (toolkit_tree.c). */
#pragma once
#include "step/world/toolkit_tree.h"

/* Some six times the largest toolkit there is. */
#define TOOLKIT_TREE_MAX_BYTES (UINT64_C(64) << 30)

struct toolkit_tree {
	const struct toolkit_rules *rules;
	const char *platform; /* "x86_64-linux" */
	const char *target;   /* "x86_64-linux", "sbsa-linux" */
	const char *dir;
	const struct run *run;
	uint64_t bytes; /* unpacked so far */
};

/* toolkit_tree_add: a new file in the tree for writing; -1 on error, also if one is there. */
int toolkit_tree_add(struct toolkit_tree *t, const char *path, struct err *e) MUST_CHECK;
/* toolkit_tree_done: gives it its mode and closes it. */
int toolkit_tree_done(int *fd, bool executable, const char *path, struct err *e) MUST_CHECK;
/* toolkit_tree_link: a symbolic link, whose target is a name in the same directory. */
int toolkit_tree_link(struct toolkit_tree *t, const char *path, const char *to, struct err *e) MUST_CHECK;
/* toolkit_tree_account: ERR_INTEGRITY once all files together are too large. */
int toolkit_tree_account(struct toolkit_tree *t, uint64_t bytes, struct err *e) MUST_CHECK;
int toolkit_wheel_unpack(struct toolkit_tree *t, const struct toolkit_file *f, struct err *e) MUST_CHECK;
int toolkit_archive_unpack(struct toolkit_tree *t, const struct toolkit_file *f, struct err *e) MUST_CHECK;
/* toolkit_stubs_make: the stubs of the rules, where nothing stands and their first header is there.
 * ERR_INTEGRITY for headers that declare nothing, or that cannot be read (driver_names). */
int toolkit_stubs_make(struct toolkit_tree *t, struct err *e) MUST_CHECK;
