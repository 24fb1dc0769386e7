/* The pieces of toolkit_probe. */
#pragma once
#include "core/root/toolkit.h"

#define TOOLKIT_PLACES 16

struct toolkit_place {
	enum toolkit_layout layout;
	const char *where;                 /* inside the root */
	const char *home, *nvcc;           /* as the build sees them */
	const char *file;                  /* nvcc inside the root, all links resolved */
	const char *mount_from, *mount_to; /* as in struct toolkit */
};

struct toolkit_places {
	struct toolkit_place items[TOOLKIT_PLACES];
	size_t count;
};

/* toolkit_places: where an nvcc is, in the order in which they are preferred; each nvcc once. */
void toolkit_places(const struct root *r, const char *home, struct arena *a, struct toolkit_places *ret);
/* toolkit_include_dirs: where the headers of a place and of what lies beside it are; only
 * directories that exist, each once, the toolkit's own first. Returns how many are its own. */
size_t toolkit_include_dirs(const struct root *r, const struct toolkit_place *p, struct arena *a, struct strlist *ret);
/* toolkit_library_dirs: where its shared libraries are, as the build sees them. */
void toolkit_library_dirs(const struct root *r, const struct toolkit_place *p, struct arena *a, struct strlist *ret);
