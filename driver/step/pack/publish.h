/* Publish: a verified wheel into the store, and from the store into the output directory. */
#pragma once
#include "base/arena.h"
#include "base/run.h"

/* publish_export: copies the object's wheel, <wheel>.metadata-rev and <variant>/build.json into
 * `out_dir` (made if needed), each atomically. A wheel with the same digest is left alone.
 * *ret_path is the wheel in out_dir. */
int publish_export(const char *object, const char *wheel, const char *sha256, unsigned metadata_rev,
		   const char *variant, const char *out_dir, struct arena *a, const char **ret_path,
		   struct err *e) MUST_CHECK;

struct earlier_request {
	const char *out_dir, *variant; /* build.json lies in out_dir/variant */
	const char *release, *wheel;   /* of what is put there now; the wheel is a file name */
};

/* earlier_keep: if the record there is of another release, it and its page become
 * build-<release>.json and .html, and the log says so; a warning where the wheel has the same name
 * and is replaced. A record that cannot be read is left for what is put there. */
int earlier_keep(const struct earlier_request *q, const struct run *run, struct arena *a, struct err *e) MUST_CHECK;
