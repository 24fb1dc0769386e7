/* The file system: whole files, directories, durable writes.
 *
 * A file is named by a directory and a path below it. `top` is a directory that no build can
 * replace; `rel` is below it, without "." and ".." ("" is `top` itself). Whatever a build left
 * there, no link is followed, also none that is put there meanwhile, and only regular files and
 * directories are read, written or removed: ERR_INTEGRITY says what is there instead.
 *
 * Where no build can write, `top` is TRUSTED and `rel` any path: links are followed. Functions that
 * take one path take a trusted one. Other errors are ERR_SYSTEM with the path in the message. */
#pragma once

#include "base/base.h"

extern const char fs_trusted[];
#define TRUSTED fs_trusted

/* fs_open: a regular file for reading and its fstat; -1 on error. */
int fs_open(const char *top, const char *rel, struct stat *ret, struct err *e) MUST_CHECK;
/* fs_read: the whole file appended to `out`; ERR_INTEGRITY above `max` bytes. */
int fs_read(const char *top, const char *rel, uint64_t max, struct buf *out,
	    struct err *e) MUST_CHECK;
/* fs_read_fd: like fs_read, from an open file; `name` is for the message. */
int fs_read_fd(int fd, const char *name, uint64_t max, struct buf *out, struct err *e) MUST_CHECK;
/* fs_map: a regular file in memory, read-only; data is NULL for an empty one. fs_unmap may be
 * called after a failure too. */
struct fs_mapping {
	const uint8_t *data;
	size_t size;
};
int fs_map(const char *path, struct fs_mapping *ret, struct err *e) MUST_CHECK;
/* fs_map_fd: like fs_map, of an open file; `name` is for the message. */
int fs_map_fd(int fd, const char *name, struct fs_mapping *ret, struct err *e) MUST_CHECK;
void fs_unmap(struct fs_mapping *m);
#define AUTO_MAPPING CLEANUP(fs_unmap)
/* fs_stat: lstat(2), of a trusted path stat(2); -1 with errno, ELOOP for a link on the way. */
int fs_stat(const char *top, const char *rel, struct stat *ret) MUST_CHECK;
/* fs_exists: false only where there is nothing (of a trusted path also where one may not look), so
 * that the other functions say what a link, another thing or a broken disk is. fs_is_file and
 * fs_is_dir: true only for what was seen; a marker is asked so. */
bool fs_exists(const char *top, const char *rel);
bool fs_is_file(const char *top, const char *rel);
bool fs_is_dir(const char *top, const char *rel);

/* fs_write: all or nothing, durable (a temporary file, fsync, rename, fsync of the directory).
 * `mode` is less umask; a link at the end of the path is replaced. */
int fs_write(const char *top, const char *rel, const void *data, size_t len, mode_t mode,
	     struct err *e) MUST_CHECK;
/* fs_rewrite: like fs_write, with owner, mode and times of `like`. */
int fs_rewrite(const char *top, const char *rel, const void *data, size_t len,
	       const struct stat *like, struct err *e) MUST_CHECK;
/* fs_can_write: whether fs_write can make this file, before there is anything to write. */
int fs_can_write(const char *path, struct err *e) MUST_CHECK;
/* fs_create: a new file for writing, with the directories above it; -1 on error, also where
 * something is. */
int fs_create(const char *top, const char *rel, mode_t mode, struct err *e) MUST_CHECK;
/* fs_append: a regular file for writing at its end, made if missing; -1 on error. A file that has
 * other names is refused. */
int fs_append(const char *top, const char *rel, struct err *e) MUST_CHECK;
/* fs_write_all: all of `len` bytes to a descriptor; `name` is for the message. fs_write_at: at an
 * offset; the descriptor's own position stays. */
int fs_write_all(int fd, const void *data, size_t len, const char *name, struct err *e) MUST_CHECK;
int fs_write_at(int fd, const void *data, size_t len, uint64_t offset, const char *name,
		struct err *e) MUST_CHECK;
/* fs_disk_place: -1; puts the absolute path of `where`, to which was written, in front of the error
 * of a full disk, and leaves others as they are. */
int fs_disk_place(const char *where, struct err *e);
/* fs_close: closes a file that was written, and says what only then turns out, as a used up quota
 * on a network file system; *fd becomes -1. */
int fs_close(int *fd, const char *name, struct err *e) MUST_CHECK;
/* fs_read_at: bytes read at an offset, fewer than `len` only at the end of the file; -1 with
 * errno. */
ssize_t fs_read_at(int fd, void *to, size_t len, uint64_t offset);
/* fs_neighbour: the descriptor of a new file beside `path`, to be renamed to it when it is whole,
 * or with S_IFDIR of a directory for what is made meanwhile; its name in the arena. It is locked
 * while it is open. */
int fs_neighbour(const char *path, mode_t mode, struct arena *a, char **ret_name,
		 struct err *e) MUST_CHECK;
/* fs_sweep: removes the neighbours in a directory that nobody has open: what kills left. */
int fs_sweep(const char *top, const char *rel, struct err *e) MUST_CHECK;
/* fs_copy: a regular file, bytes and permission bits, to the trusted path `to`, which is replaced
 * by rename at the end. */
int fs_copy(const char *top, const char *rel, const char *to, struct err *e) MUST_CHECK;
/* fs_copy_fd: like fs_copy, into an open file, from its position on; `to` is for messages. */
int fs_copy_fd(const char *top, const char *rel, int out, const char *to, struct err *e) MUST_CHECK;

/* fs_standing: the lowest directory of an absolute path that is there. fs_drop_empty: removes the
 * directories of a path (NULL: none) below `top`, the last one first, until one is not empty. */
const char *fs_standing(const char *dir, struct arena *a);
void fs_drop_empty(const char *dir, const char *top);
/* fs_mkdirs: the directory and its parents (0755 less umask), unless they exist.
 * `top` itself must exist. */
int fs_mkdirs(const char *top, const char *rel, struct err *e) MUST_CHECK;
/* fs_remove: a file or tree of any depth, links not followed, read-only directories too; a missing
 * one is fine. `top` itself, "/", "", and paths that end in "." or ".." are refused. */
int fs_remove(const char *top, const char *rel, struct err *e) MUST_CHECK;
/* fs_remove_at: like fs_remove, of a name in an open directory; `label` is for the message. */
int fs_remove_at(int dir, const char *name, const char *label, struct err *e) MUST_CHECK;
/* fs_rename: rename(2) and fsync of the target's directory. */
int fs_rename(const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_rename_new: like fs_rename, but replaces nothing: *ret is false if `to` exists. */
int fs_rename_new(const char *from, const char *to, bool *ret, struct err *e) MUST_CHECK;
/* fs_move: rename(2) of anything; replaces a file or an empty directory. Returns -1 with errno,
 * EXDEV between file systems or mounts. */
int fs_move(const char *top, const char *rel, const char *to_top, const char *to_rel) MUST_CHECK;
/* fs_list: names in a directory but "." and "..", sorted by bytes, added to `ret`. */
int fs_list(const char *top, const char *rel, struct arena *a, struct strlist *ret,
	    struct err *e) MUST_CHECK;
/* fs_walk: calls `fn` for everything below but directories, with the path relative to it and its
 * lstat, in strcmp order of the paths. A non-zero return stops and is returned. */
typedef int (*fs_walk_fn)(const char *rel, const struct stat *st, void *user, struct err *e);
int fs_walk(const char *top, const char *rel, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
/* fs_list_tree: the paths that fs_walk calls for, added to `ret`. */
int fs_list_tree(const char *top, const char *rel, struct arena *a, struct strlist *ret,
		 struct err *e) MUST_CHECK;
/* fs_walk_busy: like fs_walk, for a tree that others change: leaves out what disappears
 * meanwhile. */
int fs_walk_busy(const char *top, const char *rel, fs_walk_fn fn, void *user,
		 struct err *e) MUST_CHECK;
/* fs_copy_tree: a directory with all below it: files, directories and links (as links), with times
 * and permission bits; anything else is an error. `to` must not exist; on failure nothing of it
 * stays. At most 512 levels, as for fs_walk, fs_sync_tree and fs_tree_size. */
int fs_copy_tree(const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_sync_tree: fsync of every regular file and directory, `path` last. */
int fs_sync_tree(const char *path, struct err *e) MUST_CHECK;
int fs_sync_dir(const char *path, struct err *e) MUST_CHECK;
int fs_sync_file(const char *path, struct err *e) MUST_CHECK;
/* fs_tree_size: bytes of all regular files below (st_size), of a tree that may be in use. */
int fs_tree_size(const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
/* fs_tree_size_most: like fs_tree_size, but leaves out what is deeper or in directories that cannot
 * be opened: the tree may have been made to stop the count. */
int fs_tree_size_most(const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
/* fs_free_bytes: free for an unprivileged writer on the file system of `path` or, if that is
 * missing, of its nearest parent. */
int fs_free_bytes(const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
/* fs_temp_dir: makes a new directory `parent`/`prefix`XXXXXX (`parent` NULL: $TMPDIR, else /tmp);
 * its path in the arena. */
int fs_temp_dir(const char *parent, const char *prefix, struct arena *a, char **ret,
		struct err *e) MUST_CHECK;
