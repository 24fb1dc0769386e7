/* Relocate: makes an unpacked wheel independent of where it was built and where it is installed. */
#pragma once
#include "core/manylinux.h"
#include "core/root.h"

struct relocate_request {
	const char *tree;        /* the unpacked wheel; changed in place */
	const struct root *root; /* where libraries to vendor are found */
	const char *libs_dir;    /* directory in the tree that takes them: "torch/lib", "torchvision.libs" */
	struct strlist provided; /* NEEDED names that a package beside it provides (torch's own libraries): never vendored */
	struct strlist
		runtime_dirs;       /* directories below site-packages searched at run time: "torch/lib", "nvidia/cublas/lib"... in order */
	struct strlist never;       /* fnmatch patterns never vendored: "libcuda.so.*", "libnvidia-*" */
	struct strlist keep_names;  /* NEEDED names vendored without the digest in their name: "libgomp.so.1" */
	struct strlist build_paths; /* strings that no file may contain afterwards: SANDBOX_TOP */
	const struct manylinux_policy *policy;
};

struct relocate_library {    /* one vendored library */
	const char *needed;  /* the name it was asked by: "libopenblas.so.0" */
	const char *name;    /* the file it became in libs_dir: "libopenblas-1a2b3c4d.so.0" */
	const char *source;  /* path in the root */
	const char *package; /* "libopenblas0-pthread=0.3.29+ds-3", "" unknown */
	const char *sha256;  /* of the source file */
};

struct relocate_result {
	struct relocate_library *libraries;
	size_t count;
	size_t elf_files;
	size_t in_place; /* of them, RPATHs edited without a rewrite */
	size_t stripped;
};

/* relocate_tree: strips what is not stripped, vendors every NEEDED library that is neither inside, provided, nor allowed by the policy (with their own needs, transitively), renames those by the first 8 digits of their digest
 * (SONAME, NEEDED and version needs follow), and gives every ELF file a DT_RPATH of $ORIGIN-relative directories only: its own libs_dir, then the runtime_dirs, relative from where the file lies; none where it needs nothing of them.
 * Files nobody ships on purpose (static libraries, libtool files, __pycache__) are not removed here. ERR_POLICY names file and library for a NEEDED that cannot be found, and file and offset for a build path that stays. */
int relocate_tree(const struct relocate_request *q, const struct run *run, struct arena *a, struct relocate_result *ret,
		  struct err *e) MUST_CHECK;
