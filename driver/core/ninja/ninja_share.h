/* Divides the compilations of a CMake build.ninja among several builds of the same tree. */
#pragma once
#include "base/base.h"

struct ninja_share_options {
	unsigned index, count; /* this share (from 1) of so many */
	/* what a compiled output takes; 0: not known. Every share must get the same answers. */
	double (*seconds)(const char *output, void *user);
	void *user;
};

struct ninja_share {
	struct strlist outputs; /* of this share, the longest first */
	double seconds;         /* of these */
	double all_seconds;     /* of all shares */
	size_t units;           /* that are divided */
	/* that every share compiles, because other units cannot be compiled without them:
	 * precompiled headers, generators of sources */
	size_t common;
};

/* ninja_share: what "all" compiles (without such a target: every compilation), divided by time. The
 * shares of one text are disjoint, and together they are all. The order of the statements does not
 * count. Errors as ninja_text's. */
int ninja_share(const char *text, size_t len, const char *name, const struct ninja_share_options *o, struct arena *a,
		struct ninja_share *ret, struct err *e) MUST_CHECK;

/* ninja_share_text: appends a ninja file with all of `manifest` and a target NINJA_SHARE for these
 * outputs, which may be more than a command line holds. */
#define NINJA_SHARE "ptbuild_share"
void ninja_share_text(const char *manifest, const struct strlist *outputs, struct buf *out);
