/* Patch: one patch through patch(1), fuzz 0. */
#pragma once
#include "base/run.h"
#include "base/strlist.h"

/* patch_apply: applies one unified patch, with git's extensions, -p1 and no fuzz; a dry run first,
 * so that a patch that fails changes nothing. ERR_INTEGRITY names patch, file and hunk. Refused:
 * paths that leave the tree, also through links in it; symbolic links; one file in two places of a
 * patch, which a dry run cannot judge. */
int patch_apply(const char *tree, const char *patch, const struct run *run, struct err *e) MUST_CHECK;
/* patch_scan: the files that the header lines of a unified patch name, each once, as with -p1.
 * `name` is for messages. ERR_INTEGRITY with the line for an unsafe path, a truncated hunk, a
 * symbolic link, a binary patch, a file with hunks in two places, or no change at all. */
int patch_scan(const char *name, const char *text, size_t len, struct arena *a, struct strlist *ret_files,
	       struct err *e) MUST_CHECK;
/* patch_scan_file: the same of a file, by its name alone in messages. */
int patch_scan_file(const char *path, struct arena *a, struct strlist *ret_files, struct err *e) MUST_CHECK;
