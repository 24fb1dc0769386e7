/* Patch: a series of patches through patch(1), fuzz 0. */
#pragma once
#include "base/arena.h"
#include "base/run.h"
#include "base/strlist.h"

/* patch_series_read: names in a quilt series file (comments and empty lines skipped, "-p1" options
 * allowed and refused otherwise), in order, but those in `skip`. A name in `skip` that the series
 * does not have is ERR_CONFIG. Unsafe names and names listed twice are refused (ERR_CONFIG with
 * file and line). */
int patch_series_read(const char *series, const struct strlist *skip, struct arena *a, struct strlist *ret,
		      struct err *e) MUST_CHECK;
/* patch_apply: one unified patch (git's renames, modes, new and deleted files too) to the tree,
 * -p1, no fuzz, no backup files; dry run first, so that a patch that fails changes nothing.
 * ERR_INTEGRITY names patch, file and hunk. Refused before anything runs: paths that leave the
 * tree, also through links in it; symbolic links, made or changed; one file changed in two places
 * of a patch (a dry run cannot foretell that). */
int patch_apply(const char *tree, const char *patch, const struct run *run, struct err *e) MUST_CHECK;
