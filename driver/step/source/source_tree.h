/* A source that is looked at and not run: a folder, or an archive with one directory at its top. */
#pragma once
#include "step/source/source.h"

/* The files at its top that say something. */
enum source_file {
	SOURCE_PKG_INFO,
	SOURCE_PYPROJECT,
	SOURCE_SETUP_PY,
	SOURCE_GITMODULES,
	SOURCE_VERSION,
	SOURCE_FILES
};

struct source_tree {
	const char *path;
	struct arena *a;
	const char *text[SOURCE_FILES]; /* NULL: missing */
	size_t len[SOURCE_FILES];
	/* of an archive: the directories that a file is in, many of them more than once */
	struct strlist dirs;
	const char *gpu_code; /* the first file for nvcc; "": none */
	/* a C++ file, if all of them include CUDA's headers; "": they do not */
	const char *needs_cuda;
	/* "torchaudio" where a file shows it; "": no package of a release's */
	const char *package;
};

/* source_tree_read: ERR_INTEGRITY for a damaged archive. */
int source_tree_read(const char *path, const struct run *run, struct arena *a,
		     struct source_tree *ret, struct err *e) MUST_CHECK;
/* source_tree_warn: warns of git submodules that are empty. */
int source_tree_warn(const struct source_tree *s, const struct run *run, struct err *e) MUST_CHECK;
/* source_tree_is_member: whether a path is one of those files itself. */
bool source_tree_is_member(const char *path);
