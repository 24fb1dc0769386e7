/* The file system: whole files, directories, durable publication. Errors are ERR_SYSTEM with the
 * path in the message. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strlist.h"

/* fs_read: the whole regular file appended to `out`; more than `max` bytes is an error
 * (ERR_INTEGRITY). */
int fs_read(const char *path, uint64_t max, struct buf *out, struct err *e) MUST_CHECK;
/* fs_write_atomic: writes `path` through a temporary neighbour, fsync, rename, fsync of the
 * directory: all or nothing. `mode` is less umask; a link at `path` is replaced, not followed. */
int fs_write_atomic(const char *path, const void *data, size_t len, mode_t mode, struct err *e) MUST_CHECK;
/* fs_write_all: all of `len` bytes to a descriptor. `name` is for the message. */
int fs_write_all(int fd, const void *data, size_t len, const char *name, struct err *e) MUST_CHECK;
/* fs_write_at: the same at an offset; the descriptor's own place stays. */
int fs_write_at(int fd, const void *data, size_t len, uint64_t offset, const char *name, struct err *e) MUST_CHECK;
/* fs_read_at: up to `len` bytes at an offset, fewer only at the end of the file: how many, -1 with
 * errno. */
ssize_t fs_read_at(int fd, void *to, size_t len, uint64_t offset);
/* fs_mkdirs: the directory and its parents (0755 less umask); an existing directory is fine. */
int fs_mkdirs(const char *path, struct err *e) MUST_CHECK;
/* fs_remove_tree: removes a file or tree without following links; a missing one is fine.
 * Directories that lack write permission are made writable first. Any depth. "/", "", and paths
 * that end in "." or ".." are refused. */
int fs_remove_tree(const char *path, struct err *e) MUST_CHECK;
/* fs_sync_tree: fsync of every regular file and directory below and of `path` itself, children
 * first. */
int fs_sync_tree(const char *path, struct err *e) MUST_CHECK;
int fs_sync_dir(const char *path, struct err *e) MUST_CHECK;
int fs_sync_file(const char *path, struct err *e) MUST_CHECK;
/* fs_rename: rename(2) and fsync of the target's directory. */
int fs_rename(const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_neighbour: a new file in the directory of `path`, for reading and writing, to be renamed to
 * `path` when it is whole; its name in the arena. Gives the descriptor, -1 on error. While it is
 * open nobody sweeps the file away. fs_sweep: removes such files of a directory that nobody has
 * open any more: what kills left. A directory that is not there has none. */
int fs_neighbour(const char *path, mode_t mode, struct arena *a, char **ret_name, struct err *e) MUST_CHECK;
int fs_sweep(const char *dir, struct err *e) MUST_CHECK;
/* fs_copy: one regular file, bytes and permission bits (copy_file_range where it can); `to` is
 * replaced at the end, by rename. */
int fs_copy(const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_copy_fd: the same into an open file, from its place on. */
int fs_copy_fd(const char *from, int out, struct err *e) MUST_CHECK;
/* fs_copy_tree: a directory with all below it; symbolic links as links, times and permission bits
 * kept, nothing followed below `from`. `to` must not exist; its parent must. On failure nothing of
 * it stays. Devices, FIFOs and sockets are an error. At most 512 levels, as for fs_walk,
 * fs_sync_tree and fs_tree_size. */
int fs_copy_tree(const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_list: names in a directory but "." and "..", sorted by bytes, added to `ret`. */
int fs_list(const char *path, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
/* fs_walk: calls `fn` for everything below `top` that is not a directory, with the path relative to
 * top and its lstat, in the order strcmp gives the paths. Links below top are not followed. A
 * non-zero return stops and is returned. */
typedef int (*fs_walk_fn)(const char *rel, const struct stat *st, void *user, struct err *e);
int fs_walk(const char *top, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
/* fs_walk_busy: the same of a tree that others change meanwhile: what is gone when it is looked at
 * is left out. */
int fs_walk_busy(const char *top, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
/* fs_exists, fs_is_dir: links are followed; false too when it cannot be found out. */
bool fs_exists(const char *path);
bool fs_is_dir(const char *path);
/* fs_tree_size: bytes of all regular files below (st_size), of a tree that may be in use. */
int fs_tree_size(const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
/* fs_free_bytes: what an unprivileged writer may still write on the file system that holds `path`
 * (or will: a missing path counts as its nearest existing parent). */
int fs_free_bytes(const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
/* fs_temp_dir: makes a new directory `parent`/`prefix`XXXXXX (`parent` NULL: $TMPDIR, else /tmp); its
 * path in the arena. */
int fs_temp_dir(const char *parent, const char *prefix, struct arena *a, char **ret, struct err *e) MUST_CHECK;
