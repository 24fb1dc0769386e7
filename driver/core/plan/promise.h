/* Promises: what a wheel says of the machines that run it, by its version label, by its plan, or by
 * what the user compares it with. */
#pragma once
#include "core/plan/plan.h"

struct promise {
	const char *from; /* for people: "its label 'cpu.avx2'" */
	/* false: nobody promised anything; what is found is only worth a note */
	bool binding;
	const char *platform;      /* "x86_64-linux", "" unknown */
	const struct isa_row *isa; /* NULL: the baseline of the platform */
	bool gpu_known;            /* gpu and cuda say something */
	struct strlist gpu;        /* capabilities as in plan.gpu; empty: no GPU code at all */
	const char *cuda;          /* "12.8", NULL without CUDA */
};

/* promise_of_label: what a local version label says that profile_label could have made:
 * "cu128.sm90.avx512", "cpu.avx2", also with the stem of a profile file behind it. Another label,
 * and "", bind to nothing. */
void promise_of_label(const struct tables *t, const char *label, struct arena *a, struct promise *ret);
void promise_of_plan(const struct plan *p, struct arena *a, struct promise *ret);
/* promise_of_profile: `cuda` NULL: any toolkit. */
void promise_of_profile(const struct profile *p, const char *cuda, const char *from, struct arena *a,
			struct promise *ret);
