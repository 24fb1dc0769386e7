/* Relocate: makes an unpacked wheel independent of where it was built and is installed. */
#pragma once
#include "core/code/code.h"
#include "core/root/root.h"
#include "core/wheel/wheel.h"

struct relocate_request {
	const char *tree;        /* the unpacked wheel; changed in place */
	const struct root *root; /* where libraries to vendor are found */
	const char *libs_dir;    /* where they go in the tree: "torch/lib", "torchvision.libs" */
	/* fnmatch patterns of NEEDED names not to vendor: of another package (torch's own),
	 * or of the machine ("libcuda.so.*") */
	struct strlist provided, never;
	struct strlist runtime_dirs; /* below site-packages, searched in order: "torch/lib" */
	/* libraries of the root that belong to no package of it are taken, too */
	bool any_library;
	/* strip and objcopy are the root's, in bubblewrap, if it has them, and so are of one
	 * version for everyone and know its platform; else this machine's */
	bool root_tools;
	struct strlist keep_names; /* vendored under their own name: "libgomp.so.1" */
	struct kvlist rewrite;     /* from -> to, in text files only, in this order */
	const struct manylinux_policy *policy;
	const struct isa_rules *code; /* NULL: symbol tables are removed whole */
	const struct isa_row *isa;    /* what the wheel may require; NULL: the baseline */
	const struct run *run;        /* where to log, and how the user stops it */
};

struct relocate_result {
	struct wheel_vendored *libraries; /* in the order found: by file, then their own needs */
	size_t count;
	size_t elf_files; /* vendored ones included */
	size_t in_place;  /* RPATHs edited without a rewrite */
	size_t stripped;
	size_t removed;   /* copies of a library under a longer name */
	size_t rewritten; /* text files */
};

/* relocate_tree, in this order:
 * - finds every library, before anything is changed;
 * - removes copies: a file equal to the library whose SONAME begins its name ("libc10.so.2.6.0" and
 *   "libc10.so.2.6") unless a library needs it; .cmake and .pc files then name the one that stays.
 *   Shorter names ("libc10.so") stay: Python may load them;
 * - strips static symbol tables; with `code` it keeps the names of functions that use more than
 *   `isa` allows and of their source files, to distinguish kernels after a run-time check from
 *   mistakes;
 * - vendors every NEEDED library (and its own needs) that is not in the tree, provided, `never` or
 *   allowed by the policy, from the absolute RPATHs of the file that needs it, then the root's
 *   library directories, inside the root. The first 8 digits of the digest go into the name;
 * - gives every ELF file a DT_RPATH of $ORIGIN-relative directories: libs_dir and others that hold
 *   what it needs, then the runtime_dirs if it needs something provided; none if it needs nothing;
 * - rewrites text files (.cmake .pc .txt .py .h).
 * ERR_POLICY names file and library for a NEEDED that is missing, or that belongs to no package of
 * the root (if the root has no package list: that is outside its library directories). */
int relocate_tree(const struct relocate_request *q, struct arena *a, struct relocate_result *ret,
		  struct err *e) MUST_CHECK;
