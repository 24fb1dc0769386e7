/* What a comparison shows. */
#pragma once
#include "base/buf.h"
#include "step/bench/bench.h"

struct bench_shown {
	const struct bench_request *request;
	const struct bench_result *result;
	const char *names[BENCH_SIDES]; /* of the wheels' files */
};

/* bench_text: a table for each number of threads, and what was not compared. */
void bench_text(const struct bench_shown *s, struct buf *out);
/* bench_json: the document; a new reference. */
json_t *bench_json(const struct bench_shown *s);

/* The parts of it, in the arena. bench_quantity: "2.459 ms", "223.8 MiB", "-". bench_why: it was
 * not compared; "" if it was. bench_threads: "2 threads". bench_asked: pairs, seconds, device.
 * bench_torch: version and code. */
char *bench_quantity(const struct bench_workload *w, const struct bench_measured *m, struct arena *a);
char *bench_why(const struct bench_workload *w, struct arena *a);
char *bench_threads(const struct bench_set *s, struct arena *a);
char *bench_asked(const struct bench_shown *s, struct arena *a);
char *bench_torch(const struct bench_shown *s, enum bench_side side, struct arena *a);
/* bench_widest: the larger spread of the two sides, "12%"; "-" for one run. bench_states: a word
 * for each bench_state. */
char *bench_widest(const struct bench_workload *w, struct arena *a);
extern const char *const bench_states[];
