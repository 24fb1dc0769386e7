/* The tree that an archive is unpacked into. Links on the way are not followed, so nothing is
 * created outside. Paths are relative and normal ("a/b"), "" is the top. Errors: ERR_INTEGRITY for
 * what the entry wants, ERR_SYSTEM for what the machine refuses; the caller adds the entry's name.
 * Threads may fill one directory, each with a tree of its own. */
#pragma once
#include <time.h>

#include "base/base.h"

struct tree_time {
	const char *path;
	struct timespec mtime;
};

struct tree {
	struct arena arena;
	int top;
	struct tree_time *times; /* of directories, set at the end: new files change them */
	size_t time_count, time_cap;
};

/* tree_open: `dir` is made if missing. tree_close: also after a failed tree_open. */
int tree_open(struct tree *t, const char *dir, struct err *e) MUST_CHECK;
void tree_close(struct tree *t);
/* tree_mkdir: the directory and its parents (0755); may exist. tree_finish sets its time. */
int tree_mkdir(struct tree *t, const char *path, struct timespec mtime, struct err *e) MUST_CHECK;
/* tree_create: a new empty file, replacing a regular one; the caller closes *ret_fd. */
int tree_create(const struct tree *t, const char *path, mode_t mode, int *ret_fd, struct err *e) MUST_CHECK;
/* tree_discard: removes a file. */
void tree_discard(const struct tree *t, const char *path);
int tree_symlink(const struct tree *t, const char *path, const char *target, struct timespec mtime,
		 struct err *e) MUST_CHECK;
/* tree_hardlink: to a regular file of the tree. */
int tree_hardlink(const struct tree *t, const char *path, const char *target, struct err *e) MUST_CHECK;
/* tree_finish: sets the times of directories. */
int tree_finish(struct tree *t, struct err *e) MUST_CHECK;
