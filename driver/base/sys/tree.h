/* The tree that an archive is unpacked into. Paths are walked from the top with openat without
 * following links, so nothing is created outside. They are relative and normal ("a/b"), "" is the
 * top. Errors: ERR_INTEGRITY for what the entry wants, ERR_SYSTEM for what the machine refuses; the
 * caller adds the entry's name. Threads may fill one directory, each with a tree of its own. */
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
	struct tree_time *times; /* of directories, set at the end: new files change them */
	size_t time_count, time_cap;
};

/* tree_normal_name: an entry's name without "." and empty components; ERR_INTEGRITY for absolute
 * names, "..", control bytes and what is not UTF-8. tree_check_bytes: of a link's target, the last
 * two alone. */
int tree_normal_name(const char *name, struct buf *out, struct err *e) MUST_CHECK;
int tree_check_bytes(const char *name, struct err *e) MUST_CHECK;
/* tree_printable: for messages: bytes that are not printable ASCII become \xNN; long names are
 * cut. */
const char *tree_printable(const char *s, char *out, size_t size);
/* tree_open: `dir` is made if missing. tree_close: also after a failed tree_open. */
int tree_open(struct tree *t, const char *dir, struct err *e) MUST_CHECK;
void tree_close(struct tree *t);
/* tree_mkdir: the directory and its parents (0755); may exist. tree_finish sets its time. */
int tree_mkdir(struct tree *t, const char *path, struct timespec mtime, struct err *e) MUST_CHECK;
/* tree_create: a new empty file, replacing a regular one; the caller closes *ret_fd. */
int tree_create(struct tree *t, const char *path, mode_t mode, int *ret_fd, struct err *e) MUST_CHECK;
/* tree_discard: removes a file. */
void tree_discard(struct tree *t, const char *path);
int tree_symlink(struct tree *t, const char *path, const char *target, struct timespec mtime, struct err *e) MUST_CHECK;
/* tree_hardlink: to a regular file of the tree. */
int tree_hardlink(struct tree *t, const char *path, const char *target, struct err *e) MUST_CHECK;
/* tree_finish: sets the times of directories. */
int tree_finish(struct tree *t, struct err *e) MUST_CHECK;
