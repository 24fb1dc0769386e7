/* A finished wheel with the GPU code of some GPUs alone. */
#pragma once
#include <jansson.h>

#include "core/fatbin/fatbin.h"
#include "step/pack/pack.h"

struct slim_target {
	const char *name;  /* "sm80+sm90" */
	const char *label; /* "sm80.sm90": behind the toolkit's */
	struct fatbin_wanted wanted;
};

struct slim_request {
	const char *wheel;         /* anybody's */
	const char *expect_sha256; /* of it; NULL: not compared */
	const struct slim_target *targets;
	size_t count;
	const char *cuda; /* "12.8"; NULL: what the wheel says of itself */
	/* NVIDIA's own wheels may be cut: the result is not for passing on */
	bool nvidia;
	const char *generator; /* "ptbuild 0.1.0" */
	unsigned threads;      /* 0 = processors */
	const char *out_dir;   /* where the wheels go (existing) */
};

struct slim_result { /* of a target */
	struct pack_result packed;
	uint64_t bytes_before, unpacked_before;
	char sha256_before[65];
	/* libraries with GPU code, and those with a list of targets */
	struct fatbin_file_cut *files;
	size_t files_count;
};

/* slim_wheel: a wheel for each target, with its label behind the version's own, or behind the
 * toolkit that the wheel says it is of. Libraries are inflated and looked at once, what does
 * not change is copied packed; METADATA, WHEEL, RECORD, marker and bill of materials are made
 * true, and a statement of provenance lies beside. *ret_any false: no library has GPU code, and
 * nothing is written. ERR_POLICY for NVIDIA's, for a wheel that was made for some GPUs already,
 * and for a GPU that nothing in it runs on; ERR_INTEGRITY for a damaged one. */
int slim_wheel(const struct slim_request *q, const struct run *run, struct arena *a, struct slim_result *ret,
	       bool *ret_any, struct err *e) MUST_CHECK;
/* slim_file_json: what was kept and dropped of a library; a new reference. */
json_t *slim_file_json(const struct fatbin_file_cut *f, struct arena *a);
