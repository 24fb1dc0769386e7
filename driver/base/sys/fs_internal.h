/* What the files of base/sys that open directories share. */
#pragma once

#include "base/sys/fs.h"

/* fs_full: the whole path, printable. fs_fail: -1, from errno: "cannot WHAT 'path'". */
const char *fs_full(const char *top, const char *rel, struct arena *a);
int fs_fail(const char *what, const char *top, const char *rel, struct err *e);
#define FS_EXACT S_ISVTX /* whatever the umask */
/* fs_open_below: opens the directory at `rel` ("" is `dir`); `mode` (0: none) creates missing ones.
 * fs_open_dir: the same by the path of `top`. fs_open_parent: opens the directory of `rel`, in
 * which its name is path_base(rel). All return -1 with errno, ELOOP for a link on the way. */
int fs_open_below(int dir, const char *rel, mode_t mode);
int fs_open_dir(const char *top, const char *rel, mode_t mode);
int fs_open_parent(const char *top, const char *rel, mode_t mode);
/* fs_file_at: a regular file, opened only when it looks like one, in the open directory `parent`
 * that `rel` is in (TRUSTED: not used); `flags` of open(2). */
int fs_file_at(int parent, const char *top, const char *rel, int flags, struct stat *ret,
	       struct err *e) MUST_CHECK;
/* fs_neighbour_at: fs_neighbour in an open directory; the name alone; -1 with errno. fs_sweep_at:
 * fs_sweep of one; `label` is for the message. */
enum { FS_NEIGHBOUR_LEN = 26 };
int fs_neighbour_at(int dir, mode_t mode, char name[FS_NEIGHBOUR_LEN]);
int fs_sweep_at(int dir, const char *label, struct err *e) MUST_CHECK;
/* fs_copy_bytes: from one open file's position to another's; the names are for the message. */
int fs_copy_bytes(int in, int out, const char *from, const char *to, struct err *e) MUST_CHECK;
/* fs_open_entries: the entries of an open directory, which stays the caller's; NULL with errno.
 * fs_next_entry: the next but "." and ".."; NULL with errno 0 at the end. */
DIR *fs_open_entries(int fd);
const struct dirent *fs_next_entry(DIR *d);
