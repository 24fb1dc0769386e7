/* "ptbuild world make --copy": the root of a world as a directory of the user's own. */
#pragma once
#include "base/arena.h"
#include "base/run.h"

/* world_copy_place: ERR_USAGE where no copy may be: `to`, an absolute path, is the store or lies in
 * it, or a link in it leads nowhere. Neither needs to be there. */
int world_copy_place(const char *to, const char *store_dir, struct arena *a, struct err *e) MUST_CHECK;
/* world_copy_look: *ret_there says whether `to` is a copy of this world already, whatever was
 * changed in it since; `key` NULL: with any key. ERR_USAGE for anything else that stands there, a
 * copy with another key too: it is the user's, and is never replaced. */
int world_copy_look(const char *to, const char *name, const char *key, struct arena *a, bool *ret_there,
		    struct err *e) MUST_CHECK;

struct world_copied {
	bool there; /* before this call: it stays as it is */
	/* of the world's files, those that are gone from it or have another kind, size, mode or
	 * time in seconds; contents are not read, and new files count for nothing */
	size_t differ;
	const char *first; /* of these, relative; NULL: none */
};

/* world_copy: copies the root at `from` to `to`, an absolute path whose parents are made; nothing
 * of it is shared with `from`. It appears whole or not at all: it grows as <to>.ptbuild-part, which
 * the next call removes after a kill. Errors as for world_copy_look, else ERR_SYSTEM. */
int world_copy(const char *from, const char *to, const char *name, const char *key, const struct run *run,
	       struct arena *a, struct world_copied *ret, struct err *e) MUST_CHECK;
