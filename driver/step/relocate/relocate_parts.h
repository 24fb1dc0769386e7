/* The parts of the relocate step, for its own files only. */
#pragma once
#include "step/relocate/relocate.h"

struct relocate_file {    /* one dynamic ELF file of the tree, or one to be vendored */
	const char *rel;  /* in the tree */
	const char *path; /* on disk */
	const char *dir;  /* of rel, "" = the tree's top */
	struct elf_info info;
	struct kvlist renames;                 /* NEEDED names that change */
	struct strlist dirs;                   /* directories of the tree that hold what it needs */
	bool needs_provided;                   /* something comes from a package beside it */
	const struct relocate_library *vendor; /* NULL: it came with the wheel */
	const char *source_dir;                /* of a vendored one: where it lies in the root */
};

struct relocation {
	const struct relocate_request *q;
	const struct run *run;
	struct arena *a;
	struct relocate_file **files; /* vendored ones behind the tree's own */
	size_t count, cap;
	struct strlist library_dirs;    /* of the root */
	struct relocate_library **libs; /* vendored */
	size_t libs_count, libs_cap;
	struct kvlist removed; /* file names of dropped copies -> the name that stays */
	struct relocate_result result;
};

/* relocate_add: a file behind the others. */
void relocate_add(struct relocation *r, struct relocate_file *f);
/* relocate_copies: takes copies under longer names out of the list; relocate_drop_copies removes
 * their files. */
int relocate_copies(struct relocation *r, struct strlist *ret, struct err *e) MUST_CHECK;
int relocate_drop_copies(struct relocation *r, const struct strlist *copies, struct err *e) MUST_CHECK;
/* relocate_resolve: finds each NEEDED of each file; appends the libraries to vendor. Reads only. */
int relocate_resolve(struct relocation *r, struct err *e) MUST_CHECK;
/* relocate_rpath: the search path of a file, "" for none. */
char *relocate_rpath(const struct relocation *r, const struct relocate_file *f);
/* relocate_rewrite: the text files; relocate_scan: no build path anywhere. */
int relocate_rewrite(struct relocation *r, struct err *e) MUST_CHECK;
int relocate_scan(struct relocation *r, struct err *e) MUST_CHECK;
