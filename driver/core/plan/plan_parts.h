/* The pieces of plan_resolve. */
#pragma once
#include "core/plan/buildenv.h"
#include "core/plan/plan.h"

struct plan_context {
	const struct tables *tables;
	const struct plan_request *request;
	struct arena *arena;
	const struct release_row *release;
	const struct package_row *package;
	const struct toolkit_row *toolkit; /* NULL without CUDA */
	/* the root's toolkit of that version; NULL without CUDA, or when the root was not asked */
	const struct toolkit *probed;
	const struct blas_row *blas; /* NULL where it does not apply */
	const char *blas_origin;     /* NULL: the default */
	struct variant variant;      /* as asked, with the toolkit filled in */
	struct strlist notes;
};

/* plan_check: fills release, package, toolkit, blas and variant of a context whose other fields are
 * set; refuses what cannot work. */
int plan_check(struct plan_context *c, struct err *e) MUST_CHECK;
/* plan_check_cuda: the toolkit, and whether its nvcc, the release and PyTorch know every target. */
int plan_check_cuda(struct plan_context *c, struct err *e) MUST_CHECK;
/* plan_check_toolkit: whether the root's toolkit has what the plan asks of it: the targets, a
 * compiler it accepts. Fills `probed`. */
int plan_check_toolkit(struct plan_context *c, struct err *e) MUST_CHECK;
/* plan_check_parts: whether every library that the environment asks for lies beside the root's
 * nvcc. */
int plan_check_parts(const struct plan_context *c, const struct buildenv *env, struct err *e) MUST_CHECK;
/* plan_patches: the release's own patches, in the order of their series file. */
int plan_patches(const struct plan_context *c, struct plan *p, struct err *e) MUST_CHECK;
/* plan_notes: the corrections and warnings that apply, in a fixed order. */
void plan_notes(struct plan_context *c, const struct buildenv *env);
/* plan_keys: compile_text, output_text and their digests, of an otherwise finished plan. */
int plan_keys(const struct plan_context *c, struct plan *p, struct err *e) MUST_CHECK;
