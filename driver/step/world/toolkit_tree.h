/* One CUDA toolkit out of many files: wheels of the Python index, or NVIDIA's redistributable
 * archives, in the layout of /usr/local/cuda. Nothing of them is run. */
#pragma once
#include "base/run.h"
#include "step/world/toolkit_rules.h"

struct toolkit_file {
	const char *path;    /* the file, whose digest the caller has checked */
	const char *name;    /* of the component: "nvidia-cuda-nvcc" */
	const char *version; /* "13.0.88" */
	const char *file;    /* its own name: ".whl" is a wheel, else a tar archive */
};

/* toolkit_tree_make: unpacks `files` into `dir`, an empty directory that nobody else writes.
 * - Modes are 0755 where the owner may execute, else 0644; links are made by the rules.
 * - Stubs are made by the rules, of the headers that came with the files.
 * - version.json has the versions of the components, and as that of "cuda" that of the component
 *   "cuda-toolkit", if there is one.
 * - ERR_INTEGRITY with file and entry for a path that two components have, one that the rules know
 *   no place for, unsafe names, links to other directories, special files, more than 64 GiB, and
 *   for headers that no stub can be made of.
 * - ERR_CONFIG for an unknown platform. On failure the directory is left half-filled. */
int toolkit_tree_make(const struct toolkit_rules *r, const struct toolkit_file *files, size_t count,
		      const char *platform, const char *dir, const struct run *run, struct err *e) MUST_CHECK;
