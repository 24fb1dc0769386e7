/* Any bytes as what a process of workloads printed: what is taken has a name, and a value or a reason, and can be
 * judged. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "step/bench/bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail_unless(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct bench_said said = {.arena = &a};
	for (size_t at = 0; at < size;) {
		const uint8_t *end = memchr(data + at, '\n', size - at);
		size_t len = end ? (size_t)(end - (data + at)) : size - at;
		bench_said_line(&said, (const char *)data + at, len);
		at += len + 1;
	}
	bench_said_close(&said, "it ended");
	fail_unless(!said.open && said.words_len < sizeof(said.words) && strlen(said.words) == said.words_len);
	for (size_t i = 0; i < said.count; i++) {
		const struct bench_answer *x = &said.answers[i];
		fail_unless(bench_said_find(&said, x->name) == x && strlen(x->name) <= BENCH_NAME_MAX);
		fail_unless(x->why || (isfinite(x->value) && x->value > 0 && x->unit));
	}
	const struct bench_said *runs[BENCH_SIDES] = {&said, &said};
	json_t *set = bench_judge(runs, 1, 1, NULL, &a), *mean = json_object_get(set, "geometric_mean");
	fail_unless(json_array_size(json_object_get(set, "workloads")) == said.count);
	fail_unless(json_is_null(mean) || isfinite(json_real_value(mean)));
	fail_unless(json_integer_value(json_object_get(set, "differing")) == 0);
	json_decref(set);
	return 0;
}
