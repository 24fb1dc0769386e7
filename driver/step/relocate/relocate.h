/* Relocate: makes an unpacked wheel independent of where it was built and where it is installed. */
#pragma once
#include "core/code/isa_rules.h"
#include "core/root/root.h"
#include "core/wheel/manylinux.h"

struct relocate_request {
	const char *tree;        /* the unpacked wheel; changed in place */
	const struct root *root; /* where libraries to vendor are found */
	/* directory in the tree that takes them: "torch/lib", "torchvision.libs" */
	const char *libs_dir;
	struct strlist
		/* fnmatch patterns of NEEDED names that a package beside it provides (torch's own
		 * libraries): never vendored */
		provided;
	struct strlist
		/* directories below site-packages searched at run time: "torch/lib",
		 * "nvidia/cublas/lib"... in order */
		runtime_dirs;
	/* fnmatch patterns never vendored, from the machine itself: "libcuda.so.*",
	 * "libnvidia-*" */
	struct strlist never;
	/* NEEDED names vendored without the digest in their name: "libgomp.so.1" */
	struct strlist keep_names;
	/* strings that no file may contain afterwards: SANDBOX_TOP, and without a sandbox the build
	 * tree */
	struct strlist build_paths;
	/* from -> to, in list order, in text files only (no NUL; .cmake .pc .txt .py .h): paths of
	 * the build */
	struct kvlist rewrite;
	const struct manylinux_policy *policy;
	const struct isa_rules *code; /* NULL: symbol tables go as a whole */
	const struct isa_row *isa;    /* what the wheel promises; NULL: the baseline */
};

struct relocate_library {    /* one vendored library */
	const char *needed;  /* the name it was asked by: "libopenblas.so.0" */
	const char *name;    /* the file it became in libs_dir: "libopenblas-1a2b3c4d.so.0" */
	const char *source;  /* path in the root, links resolved */
	const char *package; /* "libopenblas0-pthread=0.3.29+ds-3", "" unknown */
	const char *sha256;  /* of the source file */
};

struct relocate_result {
	/* in the order they were met: files sorted by path, then the libraries' own needs */
	struct relocate_library *libraries;
	size_t count;
	size_t elf_files; /* of the tree afterwards, vendored ones included */
	size_t in_place;  /* of them, RPATHs edited without a rewrite */
	size_t stripped;
	size_t removed;   /* copies of a library under a longer name */
	size_t rewritten; /* text files */
};

/* relocate_tree: in this order
 * - decides everything that can fail for want of a library, before anything is changed;
 * - removes copies: a file that is byte for byte the library whose SONAME is the first part of its
 *   name ("libc10.so.2.6.0" beside "libc10.so.2.6") goes when no library asks for it; .cmake and
 *   .pc files then name the one that stays. Shorter names ("libc10.so") stay: a Python file may
 *   load them;
 * - strips what has a static symbol table (before anything moves in the file), the dynamic symbols
 *   stay, and with `code` the names of functions that use more than `isa` promises and of the
 *   source files they come from: without them nobody could tell kernels that are called behind a
 *   look at the processor from mistakes;
 * - vendors every NEEDED library that is neither inside, provided, `never`, nor allowed by the
 *   policy (with their own needs, transitively), looked for in the absolute RPATHs of who asks,
 *   then in the root's library directories, always resolved inside the root; renames those by the
 *   first 8 digits of their digest (SONAME, NEEDED and version needs follow);
 * - gives every ELF file a DT_RPATH of $ORIGIN-relative directories only: libs_dir and the other
 *   directories of the tree that hold what it needs, then, where it needs something provided, the
 *   runtime_dirs, each relative from where the file lies; no RPATH where it needs nothing of them;
 * - rewrites text files, then looks through every file for build paths.
 * Files nobody ships on purpose (static libraries, libtool files, __pycache__) are not removed
 * here. ERR_POLICY names file and library for a NEEDED that cannot be found, and file and offset of
 * the first build path that stays, with how many there are. */
int relocate_tree(const struct relocate_request *q, const struct run *run, struct arena *a, struct relocate_result *ret,
		  struct err *e) MUST_CHECK;
