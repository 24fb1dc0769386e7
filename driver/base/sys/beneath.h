/* Files in places that a build can write: whatever stands there, only regular files and directories
 * at or below the given directory are read, written or removed. `top` is a directory that the build
 * cannot replace; `rel` a path below it without "." and "..", "" for `top` itself. No link on the
 * way is followed, also not one that is put there meanwhile: the kernel resolves the path so
 * (openat2), or each part is opened by itself. ERR_INTEGRITY says what is there instead. */
#pragma once
#include "base/sys/fs.h"

/* beneath_open: a regular file for reading and its fstat; -1 on error. */
int beneath_open(const char *top, const char *rel, struct stat *ret, struct err *e) MUST_CHECK;
/* beneath_read: the whole file appended to `out`; ERR_INTEGRITY above `max` bytes, before any of
 * them is read. */
int beneath_read(const char *top, const char *rel, uint64_t max, struct buf *out, struct err *e) MUST_CHECK;
/* beneath_copy: the file to the path `to`, by fs_copy. */
int beneath_copy(const char *top, const char *rel, const char *to, struct err *e) MUST_CHECK;
/* beneath_stat: lstat; -1 with errno, ELOOP for a link on the way. */
int beneath_stat(const char *top, const char *rel, struct stat *ret) MUST_CHECK;
/* beneath_exists: false only where there is nothing: of a link, or what is no file, the other
 * functions then say what it is. */
bool beneath_exists(const char *top, const char *rel);
/* beneath_list, beneath_walk, beneath_walk_busy: as fs_list, fs_walk, fs_walk_busy. */
int beneath_list(const char *top, const char *rel, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
int beneath_walk(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
int beneath_walk_busy(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
/* beneath_mkdirs: the directory and its parents, unless they exist. */
int beneath_mkdirs(const char *top, const char *rel, struct err *e) MUST_CHECK;
/* beneath_write: all or nothing, durable; replaces what stands there, also a link. With `mode` less
 * umask, or with owner, mode and times of `like` when that is not NULL. */
int beneath_write(const char *top, const char *rel, const void *data, size_t len, mode_t mode, const struct stat *like,
		  struct err *e) MUST_CHECK;
/* beneath_append: a regular file for writing at its end, made if missing; one that has other names
 * is refused. -1 on error. */
int beneath_append(const char *top, const char *rel, struct err *e) MUST_CHECK;
/* beneath_truncate: one that has other names is refused. */
int beneath_truncate(const char *top, const char *rel, uint64_t len, struct err *e) MUST_CHECK;
/* beneath_remove: as fs_remove_tree; never `top` itself. */
int beneath_remove(const char *top, const char *rel, struct err *e) MUST_CHECK;
/* beneath_move: rename(2) of anything, which takes the place of a file or an empty directory; -1
 * with errno, EXDEV between file systems or mounts. */
int beneath_move(const char *top, const char *rel, const char *to_top, const char *to_rel) MUST_CHECK;
/* beneath_resolve: `path` (absolute, or from `top` on) with all links but the last followed, as a
 * path below `top`; NULL where it leads out of it or nowhere. It is for asking: whatever opens the
 * result follows nothing. */
char *beneath_resolve(const char *top, const char *path, struct arena *a);
