/* Patch: one patch through patch(1), fuzz 0. */
#pragma once
#include "base/cleanup.h"
#include "base/run.h"

/* patch_apply: applies one unified patch, with git's extensions, -p1 and no fuzz; a dry run first,
 * so that a patch that fails changes nothing. ERR_INTEGRITY names patch, file and hunk. Refused:
 * paths that leave the tree, also through links in it; symbolic links; one file in two places of a
 * patch, which a dry run cannot judge. */
int patch_apply(const char *tree, const char *patch, const struct run *run, struct err *e) MUST_CHECK;
