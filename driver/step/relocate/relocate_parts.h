/* What the files of relocate share. */
#pragma once
#include "step/relocate/relocate.h"

struct relocate_tool {
	const struct relocate_request *q;
	const char *path, *fresh; /* the library, and the new file without its symbol table */
	const struct buf *names;  /* of symbols that stay, one a line; empty: none does */
};

/* relocate_strip_file: by strip, or objcopy where names stay: those of the root, in the sandbox, if
 * q->root_tools and it has them, else those of this machine. On failure there may be a `fresh`. */
int relocate_strip_file(const struct relocate_tool *t, const struct run *run, struct arena *a,
			struct err *e) MUST_CHECK;
