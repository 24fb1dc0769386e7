/* Promises: which machines a wheel says it runs on, by its version label, its plan, or a profile
 * that the user names. */
#pragma once
#include "core/plan/plan.h"

struct promise {
	const char *from; /* for people: "its label 'cpu.avx2'" */
	/* false: nothing was promised, so findings are notes only */
	bool binding;
	const char *platform;      /* "x86_64-linux", "" unknown */
	const struct isa_row *isa; /* NULL: the baseline of the platform */
	bool gpu_known;            /* gpu says something */
	struct strlist gpu;        /* capabilities as in plan.gpu; empty: no GPU code at all */
	/* "12.8", NULL without CUDA; also of a label that promises nothing: "cu128" */
	const char *cuda;
};

/* promise_of_label: from a local version label of the form that profile_label makes:
 * "cu128.sm90.avx512", "cpu.avx2", with or without the stem of a profile file. Any other label, ""
 * too, gives a promise that is not binding. */
void promise_of_label(const struct tables *t, const char *label, struct arena *a, struct promise *ret);
void promise_of_plan(const struct plan *p, struct arena *a, struct promise *ret);
/* promise_of_profile: `cuda` NULL: any toolkit. */
void promise_of_profile(const struct profile *p, const char *cuda, const char *from, struct arena *a,
			struct promise *ret);
