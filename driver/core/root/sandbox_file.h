/* A sandbox as a file, so that the one a build ran in can be entered later, whatever the options or
 * the tables are by then. */
#pragma once
#include <jansson.h>

#include "core/root/sandbox.h"

/* sandbox_to_json: all but the arena and the root (new reference). */
json_t *sandbox_to_json(const struct sandbox *s);
/* sandbox_from_json: `name` is for messages. ERR_INTEGRITY for what sandbox_to_json did not make.
 * The sandbox has no root, which running it does not need; it keeps a pointer to the arena. */
int sandbox_from_json(const json_t *j, const char *name, struct arena *a, struct sandbox *ret,
		      struct err *e) MUST_CHECK;
