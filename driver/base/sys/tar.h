/* Archives entry by entry, trusting nothing: tar (plain, gz, xz, bz2, zstd) and zip, by content.
 * While one is open its thread reads names as UTF-8. */
#pragma once
#include <time.h>

#include "base/sys/digest.h"

/* The tree that an archive is unpacked into. Links on the way are not followed, so nothing is
 * created outside. Paths are relative and normal ("a/b"), "" is the top. Errors: ERR_INTEGRITY for
 * what the entry wants, ERR_SYSTEM for what the machine refuses; the caller adds the entry's name.
 * Threads may fill one directory, each with a tree of its own. */

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
int tree_create(const struct tree *t, const char *path, mode_t mode, int *ret_fd,
		struct err *e) MUST_CHECK;
int tree_symlink(const struct tree *t, const char *path, const char *target, struct timespec mtime,
		 struct err *e) MUST_CHECK;
/* tree_hardlink: to a regular file of the tree. */
int tree_hardlink(const struct tree *t, const char *path, const char *target,
		  struct err *e) MUST_CHECK;
/* tree_finish: sets the times of directories. */
int tree_finish(struct tree *t, struct err *e) MUST_CHECK;

struct archive; /* of libarchive */
struct tar;

struct tar_limits {
	uint64_t max_bytes;   /* unpacked, holes included */
	unsigned max_ratio;   /* unpacked : packed, checked above 64 MiB; 0: none */
	unsigned max_entries; /* 0: none */
};

struct tar_entry {
	const char *name;   /* "a/b", "" for the top: without "." and empty parts */
	const char *hard;   /* what it is a hard link to, likewise; NULL: no hard link */
	const char *target; /* of a symbolic link */
	mode_t type;        /* S_IFREG, S_IFDIR, S_IFLNK; others are what no tree may have */
	bool executable;
	struct timespec mtime;
	uint64_t size; /* as its header says; 0: unknown */
};

/* tar_open: opens an archive. ERR_SYSTEM if the file cannot be read. tar_open_member: the same with
 * the bytes that `read` returns (archive_read_open(3)), which may not be zip; ratios are
 * unknown. */
int tar_open(const char *path, const struct tar_limits *l, const struct run *run, struct tar **ret,
	     struct err *e) MUST_CHECK;
int tar_open_member(ssize_t (*read)(struct archive *, void *, const void **), void *user,
		    const struct tar_limits *l, const struct run *run, struct tar **ret,
		    struct err *e) MUST_CHECK;
/* tar_next: 1, and the next entry, whose strings are valid until the next call; 0 at the end.
 * ERR_INTEGRITY for a damaged archive, absolute names, "..", names and targets with control bytes
 * or not UTF-8, and past the limits. */
int tar_next(struct tar *t, struct tar_entry *ret, struct err *e) MUST_CHECK;
/* tar_deny: -1, with the entry put in front of the error. */
int tar_deny(const struct tar *t, struct err *e);
/* tar_read: the bytes of the entry, appended to `out`; ERR_INTEGRITY above `max`. */
int tar_read(struct tar *t, uint64_t max, struct buf *out, struct err *e) MUST_CHECK;
/* tar_extract: the bytes of the entry as the file `path` of a tree, mode 0755 or 0644, with its
 * time; on failure nothing of it stays. With `hex`, their digest, and holes are ERR_INTEGRITY;
 * without, holes stay holes. */
int tar_extract(struct tar *t, const struct tar_entry *en, struct tree *tree, const char *path,
		char *hex, uint64_t *ret_size, struct err *e) MUST_CHECK;
/* tar_fail: -1 with what libarchive says: ERR_SYSTEM when bytes could not be read, else
 * ERR_INTEGRITY. */
int tar_fail(struct archive *a, struct err *e);
/* tar_close: NULL is fine. */
void tar_close(struct tar *t);

static inline void tar_cleanup(struct tar **t)
{
	tar_close(*t);
}
#define AUTO_TAR CLEANUP(tar_cleanup)
