/* Patch: one patch through patch(1), fuzz 0. */
#pragma once
#include "base/arena.h"
#include "base/run.h"

/* patch_apply: one unified patch (git's renames, modes, new and deleted files too) to the tree,
 * -p1, no fuzz, no backup files; dry run first, so that a patch that fails changes nothing.
 * ERR_INTEGRITY names patch, file and hunk. Refused before anything runs: paths that leave the
 * tree, also through links in it; symbolic links, made or changed; one file changed in two places
 * of a patch (a dry run cannot foretell that). */
int patch_apply(const char *tree, const char *patch, const struct run *run, struct err *e) MUST_CHECK;
