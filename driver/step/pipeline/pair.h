/* A pair: two wheels of torch, of which the other may come from the Python index. Both get what
 * they pin. */
#pragma once
#include "step/bench/bench.h"
#include "step/fetch/fetch.h"
#include "step/pipeline/pipeline.h"

struct pair_request {
	const struct pipeline_request *q; /* profiles_dir, root, kind, store */
	const struct fetch_options *fetch;
	const char *wheels[BENCH_SIDES]; /* the other NULL: the official one of the same version */
	struct strlist beside;           /* wheels installed beside both */
	const char *platform;            /* of this machine: "x86_64-linux" */
	/* but for sandboxes, python and scripts_dir, which are filled in */
	struct bench_request bench;
};

/* pair_check: whether the other wheel has the same distribution, version (but for the local
 * label), Python and ABI. ERR_POLICY, ERR_INTEGRITY for a name that is none. */
int pair_check(const char *ours, const char *other, struct err *e) MUST_CHECK;
/* pair_bench: installs, runs, removes. *ret_other: the path of the other wheel. */
int pair_bench(const struct pair_request *b, const struct run *run, struct arena *a, struct bench_result *ret,
	       const char **ret_other, struct err *e) MUST_CHECK;
