/* pyproject.toml: what it says of a project, without running anything of it. */
#pragma once
#include "base/base.h"

struct pyproject {
	const char *name, *version;  /* of [project]; "" where it does not say */
	const char *requires_python; /* ">=3.9"; "" = any */
	struct strlist requires;     /* of [build-system] */
	struct strlist dependencies;
	bool build_system; /* there is that table */
};

/* pyproject_read: only these keys count; the rest is read over. ERR_INTEGRITY names file and line
 * of what is no TOML. */
int pyproject_read(const char *text, size_t len, const char *what, struct arena *a, struct pyproject *ret,
		   struct err *e) MUST_CHECK;
