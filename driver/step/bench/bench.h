/* Bench: the same workloads with the torch of two environments, in pairs of runs, each a fresh
 * process in the sandbox. profiles/bench/bench.py says which process is next, and makes the results
 * out of what they printed. It runs in a sandbox of its own, which has nothing of the wheels. */
#pragma once
#include "core/root/sandbox.h"

/* Where <profiles>/bench is inside. */
#define BENCH_SCRIPTS SANDBOX_TOP "/bench"

enum bench_side { BENCH_OURS, BENCH_OTHER, BENCH_SIDES };

struct bench_request {
	const struct sandbox *sandboxes[BENCH_SIDES]; /* that each torch is installed in */
	const char *python;                           /* of the environments, as a path inside */
	const struct sandbox *root;                   /* the root alone, with BENCH_SCRIPTS */
	const char *scripts_dir;                      /* <profiles>/bench */
	const char *runs_dir;                         /* a new directory, for what they print */
	json_t *asked;                                /* ASKED of bench.py */
	const struct run *run;
};

/* bench_check: whether bench.py would begin; it needs no environments. ERR_USAGE for a name of
 * --only that means no workload. */
int bench_check(const struct bench_request *q, struct err *e) MUST_CHECK;
/* bench_run: runs all; `document` (the results) and `refused` of bench.py, a new reference.
 * ERR_POLICY with the last output of a torch that does not import, or has no such device;
 * ERR_INTEGRITY for output that is not that of the workloads. */
int bench_run(const struct bench_request *q, json_t **ret, struct err *e) MUST_CHECK;
