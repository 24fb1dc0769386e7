/* Publish: a verified wheel into the store, and from the store into the output directory. */
#pragma once
#include "base/arena.h"
#include "base/err.h"

/* publish_export: copies the object's wheel, <wheel>.metadata-rev and <variant>/build.json into
 * `out_dir` (made if needed), each atomically. A wheel with the same digest is left alone.
 * *ret_path is the wheel in out_dir. */
int publish_export(const char *object, const char *wheel, const char *sha256, unsigned metadata_rev,
		   const char *variant, const char *out_dir, struct arena *a, const char **ret_path,
		   struct err *e) MUST_CHECK;
