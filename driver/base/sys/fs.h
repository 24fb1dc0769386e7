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

/* fs_open_file: a regular file for reading and its fstat; -1 on error, also for anything else. */
int fs_open_file(const char *path, struct stat *ret, struct err *e) MUST_CHECK;
/* fs_read: the whole regular file appended to `out`; ERR_INTEGRITY above `max` bytes. */
int fs_read(const char *path, uint64_t max, struct buf *out, struct err *e) MUST_CHECK;
/* fs_read_fd: the same from an open file; `name` is for the message. */
int fs_read_fd(int fd, const char *name, uint64_t max, struct buf *out, struct err *e) MUST_CHECK;
/* fs_map: a regular file in memory, read-only; data is NULL for an empty one. fs_unmap may be
 * called after a failure too. */
struct fs_mapping {
	const uint8_t *data;
	size_t size;
};
int fs_map(const char *path, struct fs_mapping *ret, struct err *e) MUST_CHECK;
void fs_unmap(struct fs_mapping *m);
#define AUTO_MAPPING CLEANUP(fs_unmap)
/* fs_write_atomic: all or nothing, durable (a temporary file, fsync, rename, fsync of the
 * directory). `mode` is less umask; a link at `path` is replaced. */
int fs_write_atomic(const char *path, const void *data, size_t len, mode_t mode, struct err *e) MUST_CHECK;
/* fs_can_write: whether fs_write_atomic can make this file, before there is anything to write. */
int fs_can_write(const char *path, struct err *e) MUST_CHECK;
/* fs_write_all: all of `len` bytes to a descriptor; `name` is for the message. */
int fs_write_all(int fd, const void *data, size_t len, const char *name, struct err *e) MUST_CHECK;
/* fs_write_at: the same at an offset; the descriptor's own position stays. */
int fs_write_at(int fd, const void *data, size_t len, uint64_t offset, const char *name, struct err *e) MUST_CHECK;
/* fs_read_at: bytes read at an offset, fewer than `len` only at the end of the file; -1 with
 * errno. */
ssize_t fs_read_at(int fd, void *to, size_t len, uint64_t offset);
/* fs_mkdirs: the directory and its parents (0755 less umask), unless they exist. */
int fs_mkdirs(const char *path, struct err *e) MUST_CHECK;
/* fs_remove_tree: a file or tree of any depth, links not followed, read-only directories too; a
 * missing one is fine. "/", "", and paths that end in "." or ".." are refused. */
int fs_remove_tree(const char *path, struct err *e) MUST_CHECK;
/* fs_remove_at: the same of a name in an open directory; `label` is for the message. */
int fs_remove_at(int dir, const char *name, const char *label, struct err *e) MUST_CHECK;
/* fs_sync_tree: fsync of every regular file and directory, `path` last. */
int fs_sync_tree(const char *path, struct err *e) MUST_CHECK;
int fs_sync_dir(const char *path, struct err *e) MUST_CHECK;
int fs_sync_file(const char *path, struct err *e) MUST_CHECK;
/* fs_rename: rename(2) and fsync of the target's directory. */
int fs_rename(const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_neighbour: the descriptor of a new file beside `path`, to be renamed to it when it is whole;
 * its name in the arena. It is locked while it is open. */
int fs_neighbour(const char *path, mode_t mode, struct arena *a, char **ret_name, struct err *e) MUST_CHECK;
/* fs_sweep: removes the neighbours in a directory that nobody has open: what kills left. */
int fs_sweep(const char *dir, struct err *e) MUST_CHECK;
/* fs_copy: one regular file, bytes and permission bits; `to` is replaced by rename at the end. */
int fs_copy(const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_copy_open: the same of an open file, which is closed; `from` is for messages. */
int fs_copy_open(int in, const struct stat *st, const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_copy_fd: the same into an open file, from its position on; `to` is for messages. */
int fs_copy_fd(const char *from, int out, const char *to, struct err *e) MUST_CHECK;
/* fs_copy_tree: a directory with all below it: files, directories and links (as links), with times
 * and permission bits; anything else is an error. `to` must not exist; on failure nothing of it
 * stays. At most 512 levels, as for fs_walk, fs_sync_tree and fs_tree_size. */
int fs_copy_tree(const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_list: names in a directory but "." and "..", sorted by bytes, added to `ret`. */
int fs_list(const char *path, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
/* fs_list_fd: the same of an open directory, which stays the caller's. */
int fs_list_fd(int fd, const char *label, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
/* fs_open_entries: the entries of an open directory, which stays the caller's; NULL with errno.
 * fs_next_entry: the next but "." and ".."; NULL with errno 0 at the end. */
DIR *fs_open_entries(int fd);
const struct dirent *fs_next_entry(DIR *d);
/* fs_walk: calls `fn` for everything below `top` but directories, with the path relative to top and
 * its lstat, in strcmp order of the paths. A non-zero return stops and is returned. */
typedef int (*fs_walk_fn)(const char *rel, const struct stat *st, void *user, struct err *e);
int fs_walk(const char *top, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
/* fs_walk_busy: the same of a tree that others change: what disappears meanwhile is left out. */
int fs_walk_busy(const char *top, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
/* fs_walk_fd: either of them below an open directory, which stays the caller's; `label` is for
 * messages. */
int fs_walk_fd(int fd, const char *label, bool busy, fs_walk_fn fn, void *user, struct err *e) MUST_CHECK;
/* fs_exists, fs_is_dir: links are followed; false also when it cannot be found out. */
bool fs_exists(const char *path);
bool fs_is_dir(const char *path);
/* fs_tree_size: bytes of all regular files below (st_size), of a tree that may be in use. */
int fs_tree_size(const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
/* fs_tree_size_most: the same, but what lies deeper or in directories that cannot be opened is left
 * out: whoever made the tree may have meant to stop whoever counts it. */
int fs_tree_size_most(const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
/* fs_free_bytes: free for an unprivileged writer on the file system of `path` or, if that is
 * missing, of its nearest parent. */
int fs_free_bytes(const char *path, uint64_t *ret, struct err *e) MUST_CHECK;
/* fs_temp_dir: makes a new directory `parent`/`prefix`XXXXXX (`parent` NULL: $TMPDIR, else /tmp);
 * its path in the arena. */
int fs_temp_dir(const char *parent, const char *prefix, struct arena *a, char **ret, struct err *e) MUST_CHECK;
