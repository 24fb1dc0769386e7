/* The pieces of toolkit_probe. */
#pragma once
#include "core/root/toolkit.h"

#define TOOLKIT_PLACES 16

struct toolkit_places {
	struct toolkit items[TOOLKIT_PLACES]; /* layout to mount_to are set */
	size_t count;
};

/* toolkit_places: where an nvcc is, the preferred first, each nvcc once; `home` (NULL: none) comes
 * before all. */
void toolkit_places(const struct root *r, const char *home, struct arena *a, struct toolkit_places *ret);
/* toolkit_include_dirs: directories of headers that exist, of the toolkit and of libraries
 * installed beside it, each once. Returns how many, at the start, are the toolkit's own. */
size_t toolkit_include_dirs(const struct root *r, const struct toolkit *k, struct arena *a, struct strlist *ret);
/* toolkit_library_dirs: where its shared libraries are, as the build sees them. */
void toolkit_library_dirs(const struct root *r, const struct toolkit *k, struct arena *a, struct strlist *ret);
