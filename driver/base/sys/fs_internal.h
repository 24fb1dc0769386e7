/* What the files of base/sys that open directories share. */
#pragma once

#include "base/sys/fs.h"

/* fs_full: the whole path, printable. fs_fail: -1, from errno: "cannot WHAT 'path'". */
const char *fs_full(const char *top, const char *rel, struct arena *a);
int fs_fail(const char *what, const char *top, const char *rel, struct err *e);
#define FS_EXACT S_ISVTX /* whatever the umask */
/* fs_open_below: the directory at `rel` ("" is `dir`); `mode` (0: none) makes what is missing.
 * fs_open_dir: the same by the path of `top`. fs_open_parent: the one that `rel` is in, by the name
 * path_base(rel). -1 with errno, ELOOP for a link on the way. */
int fs_open_below(int dir, const char *rel, mode_t mode);
int fs_open_dir(const char *top, const char *rel, mode_t mode);
int fs_open_parent(const char *top, const char *rel, mode_t mode);
/* fs_open_entries: the entries of an open directory, which stays the caller's; NULL with errno.
 * fs_next_entry: the next but "." and ".."; NULL with errno 0 at the end. */
DIR *fs_open_entries(int fd);
const struct dirent *fs_next_entry(DIR *d);
