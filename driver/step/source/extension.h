/* What the source of an extension says of itself, read and not run: a folder, or an sdist. */
#pragma once
#include "core/tables/tables.h"

/* extension_read: a row for it: name and version of PKG-INFO, pyproject.toml or the literals of
 * setup.py; what its build requires but torch; the ranges of torch and Python that it takes;
 * whether it has CUDAExtension alone. No source is in it yet.
 * ERR_USAGE where name or version is not said, with what to write; ERR_INTEGRITY for a damaged
 * archive or file. */
int extension_read(const char *path, const struct run *run, struct arena *a, struct package_row *ret,
		   struct err *e) MUST_CHECK;
/* extension_requirement: "Torch[x] (>=2.1) ; extra == 'a'" as "Torch>=2.1": the name, then the
 * range; NULL where an extra asks for it. */
char *extension_requirement(const char *text, struct arena *a);
