/* The tree that an archive is unpacked into. Every path is walked from the top by openat without
 * following links, so nothing can be made outside, whatever the names say. For unpack.c only. Paths
 * are relative, normal ("a/b", no "." or "..") and "" is the top. Errors are ERR_INTEGRITY for what
 * the entry wants, ERR_SYSTEM for what the machine refuses; messages begin with what is wrong,
 * without the entry. */
#pragma once
#include <sys/types.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define TREE_MAX_DEPTH 100
#define TREE_MAX_PATH 3000

struct tree_level {
	int fd;
	size_t end; /* of its path in `path` */
};

struct tree_time {
	const char *path;
	struct timespec mtime;
};

struct tree {
	struct arena arena;
	int top;
	struct buf path; /* of the directory that is open deepest */
	struct tree_level levels[TREE_MAX_DEPTH];
	size_t depth;
	/* of directories, set at the end, since making files in them changes them */
	struct tree_time *times;
	size_t time_count;
	size_t time_cap;
};

/* tree_open: `dir` is made if it is missing. tree_close: frees; also after a failed tree_open, if
 * the tree was zero before. */
int tree_open(struct tree *t, const char *dir, struct err *e) MUST_CHECK;
void tree_close(struct tree *t);
/* tree_mkdir: the directory and its parents (0755); one that is there is fine. Its time is set by
 * tree_finish. */
int tree_mkdir(struct tree *t, const char *path, struct timespec mtime, struct err *e) MUST_CHECK;
/* tree_create: a new empty file (0644, or 0755), in place of a regular file of that name; *ret_fd
 * is the caller's. */
int tree_create(struct tree *t, const char *path, mode_t mode, int *ret_fd, struct err *e) MUST_CHECK;
/* tree_discard: takes a file away again. */
void tree_discard(struct tree *t, const char *path);
int tree_symlink(struct tree *t, const char *path, const char *target, struct timespec mtime, struct err *e) MUST_CHECK;
/* tree_hardlink: to a regular file that is in the tree already. */
int tree_hardlink(struct tree *t, const char *path, const char *target, struct err *e) MUST_CHECK;
/* tree_finish: the times of the directories. */
int tree_finish(struct tree *t, struct err *e) MUST_CHECK;
