/* Publish: a verified wheel into the store, and from the store into the output directory. */
#pragma once
#include "base/run.h"
#include "cache/store.h"

/* publish_export: copies the object's wheel into `out_dir` (made if needed), beside it
 * <wheel>.metadata-rev, and its record as <out_dir>/<variant>/build.json, each whole or not at all.
 * A wheel that is already there with the same digest is left alone. *ret_path is the wheel in
 * out_dir. */
int publish_export(const char *object, const char *wheel, const char *sha256, unsigned metadata_rev,
		   const char *variant, const char *out_dir, struct arena *a, const char **ret_path,
		   struct err *e) MUST_CHECK;
