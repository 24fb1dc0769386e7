/* What a comparison shows. */
#pragma once
#include "base/show.h"
#include "step/bench/bench.h"

struct bench_shown {
	const struct bench_request *request;
	const struct bench_result *result;
	const char *names[BENCH_SIDES]; /* of the wheels' files */
};

/* bench_json: the document, a new reference. bench_rows show it: a table for each number of
 * threads. */
json_t *bench_json(const struct bench_shown *s);
extern const struct show bench_rows[];
