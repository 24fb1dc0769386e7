/* One CUDA toolkit out of many files: wheels of the Python index, or NVIDIA's redistributable
 * archives, in the layout of /usr/local/cuda. Nothing of them is run. */
#pragma once
#include "base/run.h"
#include "base/strlist.h"

/* profiles/toolkit_tree.yaml: where the files of CUDA's components go. */

struct toolkit_target {
	const char *platform, *target;
};

struct toolkit_move {
	const char *from, *to;
};

struct toolkit_link {
	const char *path, *to, *why;
};

/* A library of the driver, for linkers: every function that the headers declare. */
struct toolkit_stub {
	const char *path, *soname, *why;
	const char **headers, **leave;
	unsigned headers_count, leave_count;
	uint16_t answer; /* what each function returns */
};

struct toolkit_rules {
	const char *sources;
	struct toolkit_target *platforms;
	const char **wheel_dirs, **drop;
	struct toolkit_move *moves;
	struct toolkit_link *links;
	struct toolkit_stub *stubs;
	unsigned platforms_count, wheel_dirs_count, drop_count, moves_count, links_count,
		stubs_count;
};

/* toolkit_rules_load: ERR_CONFIG with file:line. */
int toolkit_rules_load(const char *profiles_dir, struct arena *a, const struct toolkit_rules **ret,
		       struct err *e) MUST_CHECK;
/* toolkit_rules_map: where a path below a component's directory goes in the tree; NULL: it is
 * left out. */
const char *toolkit_rules_map(const struct toolkit_rules *r, const char *target,
			      const char *component, const char *path, struct arena *a);
/* toolkit_rules_fill: a path of the table with its '@' replaced. */
const char *toolkit_rules_fill(const char *path, const char *target, struct arena *a);

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
		      const char *platform, const char *dir, const struct run *run,
		      struct err *e) MUST_CHECK;

/* Which functions a header of CUDA's driver API declares. */

/* driver_names: adds the names behind the word CUDAAPI, those that a #define gives to one of them
 * ("cuMemAlloc" is "cuMemAlloc_v2"), and those with the suffixes _ptds and _ptsz, which
 * __CUDA_API_PTDS and __CUDA_API_PTSZ make. Conditions are not looked at: all branches count. A
 * name may be added more than once. The text may hold any bytes. ERR_INTEGRITY for a name of more
 * than 200 characters, and for more than 20000 names in `ret`. */
int driver_names(const char *text, size_t len, struct arena *a, struct strlist *ret,
		 struct err *e) MUST_CHECK;
