/* Records of the same variant that an earlier build left in the output directory. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/run.h"

struct earlier_request {
	const char *out_dir, *variant; /* build.json lies in out_dir/variant */
	const char *release, *wheel;   /* of what is put there now; the wheel is a file name */
};

/* earlier_keep: if the record there is of another release, it and its page become
 * build-<release>.json and .html, and the log says so; a warning where the wheel has the same name
 * and is replaced. A record that cannot be read is left for what is put there. */
int earlier_keep(const struct earlier_request *q, const struct run *run, struct arena *a, struct err *e) MUST_CHECK;
