/* The names in a patch, found as patch(1) finds them, so that all paths are checked. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strlist.h"

/* patch_scan: the files that the header lines of a unified patch name, each once, as with -p1.
 * `name` is for messages. ERR_INTEGRITY with the line for an unsafe path, a truncated hunk, a
 * symbolic link, a binary patch, a file with hunks in two places, or no change at all. */
int patch_scan(const char *name, const char *text, size_t len, struct arena *a, struct strlist *ret_files,
	       struct err *e) MUST_CHECK;
