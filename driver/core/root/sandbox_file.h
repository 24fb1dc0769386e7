/* A sandbox as JSON, so that a build's can be entered later, whatever options and tables are
 * then. */
#pragma once
#include <jansson.h>

#include "core/root/sandbox.h"

/* sandbox_to_json: all but the arena and the root (new reference). */
json_t *sandbox_to_json(const struct sandbox *s);
/* sandbox_from_json: ERR_INTEGRITY, naming `name`, for what sandbox_to_json did not make. The
 * sandbox has no root, since running it needs none; it keeps a pointer to the arena. */
int sandbox_from_json(const json_t *j, const char *name, struct arena *a, struct sandbox *ret,
		      struct err *e) MUST_CHECK;
