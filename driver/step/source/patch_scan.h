/* The names in a patch, found as patch(1) finds them, so that no path is touched that was not
 * looked at. For patch.c only. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strlist.h"

/* patch_scan: the files (first component taken off, as -p1 does) that a unified patch names in any
 * header line, each once. ERR_INTEGRITY with the line number: an unsafe path, a hunk that is cut
 * short, a symbolic link, a binary patch, a file with hunks in two places, no change at all. `name`
 * is the patch's, for messages. */
int patch_scan(const char *name, const char *text, size_t len, struct arena *a, struct strlist *ret_files,
	       struct err *e) MUST_CHECK;
