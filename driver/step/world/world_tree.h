/* The root of a world out of its files: Debian packages, wheels and archives, unpacked into one tree.
 * Nothing of them is run. */
#pragma once
#include "base/run.h"
#include "core/world/world.h"
#include "step/world/toolkit_rules.h"

/* world_tree_make: fills `dir`, an empty directory that nobody else writes.
 * - `files`: for each piece, for each entry of its lock, the path of the file, whose digest the
 *   caller has checked.
 * - The tree is the same, byte for byte, whoever makes it wherever: owner aside, modes are 0755 or
 *   0644, no setuid; times are those of the packages; no devices.
 * - Has dpkg's database (status, and info/<package>.list) as after an installation, the links and
 *   files of the parts' tables, and WORLD_STAMP.
 * - bin, sbin, lib and lib64 at the top are links to those in usr, whatever a package says.
 * - A toolkit's wheels and archives go to the part's prefix (toolkit_tree_make).
 * - ret_digest: sha256 of the manifest: a line for each file, link and directory, sorted.
 * - jobs threads unpack. ERR_INTEGRITY names package and entry: a path that two packages have with
 *   other bytes, names and links that leave the tree, what is not a package, one whose control file
 *   names another package or version than the lock. On failure `dir` is left half-filled. */
int world_tree_make(const struct world *w, const char *const *const *files, const struct toolkit_rules *toolkits,
		    const char *dir, unsigned jobs, const struct run *run, char ret_digest[65],
		    struct err *e) MUST_CHECK;
