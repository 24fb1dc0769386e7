/* The pieces of plan_resolve. */
#pragma once
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
	const struct blas_row *blas;              /* NULL where it does not apply */
	const char *blas_origin;                  /* NULL: the default */
	struct variant variant;                   /* as asked, with the toolkit filled in */
	struct strlist notes, asides, advisories; /* as in the plan */
	const char *advised;
};

/* plan_check: fills release, package, toolkit, blas and variant from the fields that are set, and
 * refuses what cannot work (errors of plan_resolve). */
int plan_check(struct plan_context *c, struct err *e) MUST_CHECK;
/* The checks of the rows of plan_needs.c; a row may use what earlier ones filled. */
typedef int plan_rule(struct plan_context *c, struct err *e);
plan_rule need_release, need_package, need_sources, need_python, need_platform, need_compiler;
plan_rule need_no_cuda, need_toolkits, need_known_toolkit, need_nvcc_targets, need_release_toolkit,
	need_torch_targets, need_targets_together, need_extension_targets, need_sbsa_targets;
plan_rule need_known_blas, need_blas, need_blas_platform;
plan_rule need_gpu_profile, need_extension_torch, need_extension_python, need_companion_torch;
/* plan_check_gpu_options: checks that the user's settings are for the profile's kind of GPU: the
 * label, the toolkit and the verification of the wheel follow the profile. */
int plan_check_gpu_options(const struct plan_context *c, const struct buildenv *env,
			   struct err *e) MUST_CHECK;
/* plan_releases_with: names of the releases that have the package, for this Python and this toolkit
 * (either may be NULL). */
char *plan_releases_with(const struct plan_context *c, const char *python, const char *cuda);
/* plan_other_blas: the BLAS of the torch, where it is not the first of the platform: wheels of two
 * must not have one name. NULL: it is the first. */
const struct blas_row *plan_other_blas(const struct plan_context *c);
/* plan_usual_libraries: "packages" or "system": where a build has CUDA's libraries from, unless an
 * option names it. */
const char *plan_usual_libraries(const struct plan_context *c);
/* plan_label: "cu128.sm90.avx512", another BLAS than the platform's first, what the user gave up,
 * set or patched, CUDA libraries of the other source, and drift: wheels that differ in that must
 * not have one name. */
int plan_label(struct plan_context *c, const struct buildenv_request *request, const char **ret,
	       struct err *e) MUST_CHECK;
/* plan_label_of_source: the label with a word of the digest of the user's own source, if the row
 * has one. It is no word of plan_label's: the other packages of the release have their own
 * sources. */
const char *plan_label_of_source(const struct package_row *row, const char *label, struct arena *a);
/* plan_label_with_torch: plan_label_of_source, and of what is built against a torch: where neither
 * the package's version nor `label`, which is the torch's own, says which one, its last word does
 * (label_torch_word). `torch_version`: full, "" while it is not known. */
const char *plan_label_with_torch(const struct plan_context *c, const char *label,
				  const char *torch_version);
/* plan_notes: the corrections and warnings that apply, in a fixed order. */
void plan_notes(struct plan_context *c, const struct buildenv *env);
/* plan_keys: compile_text, output_text and their digests, of an otherwise finished plan. */
int plan_keys(const struct plan_context *c, struct plan *p, struct err *e) MUST_CHECK;
