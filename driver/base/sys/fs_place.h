/* A directory in which others may write at any time, held by its descriptor.
 *
 * It stays the one that was looked at, whatever its path leads to later. `rel` is below it, without
 * "." and ".."; no link on the way or at the end is followed, and only regular files are read and
 * written: ERR_INTEGRITY. Each file is opened once, and what is known of it is known of its
 * descriptor. Other errors are ERR_SYSTEM. */
#pragma once

#include "base/sys/fs.h"

struct fs_place {
	int fd;
	const char *path; /* for messages alone */
};

enum fs_links {
	FS_LINKS_ROOT,   /* absolute links and ".." end at the directory, as with chroot(2) */
	FS_LINKS_WITHIN, /* a link that leads out of it is refused */
};

/* fs_place_open: the directory that a trusted path names; links are followed. */
int fs_place_open(const char *path, struct arena *a, struct fs_place *ret,
		  struct err *e) MUST_CHECK;
/* fs_place_below: opens the directory `rel` of `top`, through links that stay inside. The caller
 * closes *ret with fs_place_close; its path has no links and is in the arena. If nothing is there,
 * *ret_found is false and *ret is not set. ERR_POLICY if a link leads out, if there are too many,
 * or (FS_LINKS_ROOT) if the target of one is missing. */
int fs_place_below(const struct fs_place *top, const char *rel, enum fs_links links,
		   struct arena *a, struct fs_place *ret, bool *ret_found,
		   struct err *e) MUST_CHECK;
void fs_place_close(struct fs_place *p);

/* fs_place_file: a regular file for reading and its fstat; -1 on error. fs_place_stat:
 * fstatat(2) that follows no link; -1 with errno, ELOOP for a link on the way. fs_place_has:
 * whether something is there, a link too. */
int fs_place_file(const struct fs_place *p, const char *rel, struct stat *ret,
		  struct err *e) MUST_CHECK;
int fs_place_stat(const struct fs_place *p, const char *rel, struct stat *ret) MUST_CHECK;
bool fs_place_has(const struct fs_place *p, const char *rel);
/* fs_place_read: like fs_read. */
int fs_place_read(const struct fs_place *p, const char *rel, uint64_t max, struct buf *out,
		  struct err *e) MUST_CHECK;
/* fs_place_map: like fs_map, with the fstat of the mapped file. Copies a file that another user may
 * change meanwhile first, so that the checked bytes are the ones used; the copy has no name. */
int fs_place_map(const struct fs_place *p, const char *rel, struct fs_mapping *ret,
		 struct stat *ret_stat, struct err *e) MUST_CHECK;
/* fs_place_list: like fs_list. fs_place_walk: like fs_walk_busy. fs_place_sweep: like fs_sweep.
 * fs_place_remove: like fs_remove. */
int fs_place_list(const struct fs_place *p, const char *rel, struct arena *a, struct strlist *ret,
		  struct err *e) MUST_CHECK;
int fs_place_walk(const struct fs_place *p, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
int fs_place_sweep(const struct fs_place *p, const char *rel, struct err *e) MUST_CHECK;
int fs_place_remove(const struct fs_place *p, const char *rel, struct err *e) MUST_CHECK;

/* A file that replaces another once it is complete. */
struct fs_fresh {
	int fd;  /* for reading and writing; only its owner may */
	int dir; /* that it is in */
	char name[32];
	const char *to; /* of the path; the caller's */
};

/* fs_fresh_open: beside `rel`, locked and swept like fs_neighbour. */
int fs_fresh_open(const struct fs_place *p, const char *rel, struct fs_fresh *ret,
		  struct err *e) MUST_CHECK;
/* fs_fresh_commit: owner and permission bits of `like`, never setuid, setgid or sticky; synced,
 * renamed, and the directory synced. Where root alone may give a file away, others keep it. */
int fs_fresh_commit(struct fs_fresh *f, const struct stat *like, struct err *e) MUST_CHECK;
/* fs_fresh_close: removes it unless it was committed. */
void fs_fresh_close(struct fs_fresh *f);
#define AUTO_FRESH CLEANUP(fs_fresh_close)
/* fs_place_link: `to` becomes another name of `from`, the file `same` in the same directory. *ret
 * false where the file system has no such links or refuses: nothing changed. */
int fs_place_link(const struct fs_place *p, const char *from, const char *to,
		  const struct stat *same, bool *ret, struct err *e) MUST_CHECK;
/* fs_place_write: the three in one. */
int fs_place_write(const struct fs_place *p, const char *rel, const void *data, size_t len,
		   const struct stat *like, struct err *e) MUST_CHECK;
