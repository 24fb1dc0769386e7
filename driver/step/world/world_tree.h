/* The root of a world out of its files: Debian packages, wheels and archives, unpacked into one
 * tree. Nothing of them is run but the Python, which compiles its modules in the sandbox. */
#pragma once
#include "core/world/world.h"
#include "step/world/toolkit_tree.h"

struct world_tree_request {
	const struct world *world;
	/* for each piece, for each entry of its lock, the file, whose digest was checked */
	const char *const *const *files;
	const struct toolkit_rules *toolkits; /* may be NULL without one */
	const char *dir;                      /* an empty directory that nobody else writes */
	unsigned jobs;                        /* threads; 0 = 1 */
	/* an empty directory of ptbuild's own, for what the world's Python compiles; NULL: that
	 * stays uncompiled */
	const char *compiled;
	/* how the world's programs run here if it is for another platform; NULL: not at all */
	const struct emulation *emulation;
	const struct run *run; /* where to log, and how the user stops it */
};

struct world_tree {
	/* A line for each path, sorted by it, with tabs between: "dir path", "link target path",
	 * or "file 755|644 size sha256 path". */
	struct buf manifest;
	char digest[65]; /* of the manifest */
	uint64_t bytes;  /* of all files */
	/* for each part: digest of the lines that it adds, whatever its base: its lock's `tree` */
	char (*parts)[65];
};

/* world_tree_make: fills `dir`.
 * - The tree is the same, byte for byte, on every machine: owner aside, modes are 0755 or 0644, no
 *   setuid, no devices; times are those of the packages, and the newest of them for generated
 *   files.
 * - Python's modules are compiled if the world's programs run here and in a sandbox; the
 *   compiled files are in the manifest and in no part.
 * - Has dpkg's database (status, and info/<package>.list) as after an installation, the links and
 *   files of the parts' tables, and WORLD_STAMP.
 * - bin, sbin, lib and lib64 at the top are links to those in usr, whatever a package says.
 *   Absolute links stay: they are from the world's own root.
 * - A toolkit's wheels and archives go to the part's prefix (toolkit_tree_make), and so does a
 *   Python's archive: what is below its python/install, or python. A base's wheels go to their
 *   install paths.
 * - ERR_INTEGRITY names package and entry: a path that two packages have with other bytes, unless
 *   one of them replaces the other, names and links that leave the tree, what is not a package,
 *   one whose control file names another package or version than the lock. ERR_CONFIG for a link
 *   or file of a table that exists already. On failure `dir` is left half-filled.
 * - The caller releases ret->manifest; ret->parts is in the arena. */
int world_tree_make(const struct world_tree_request *q, struct arena *a, struct world_tree *ret,
		    struct err *e) MUST_CHECK;
