/* The parts of a profile that its composed name and its YAML file share. */
#pragma once
#include "core/variant/profile.h"

/* profile_set_gpu: "cpu", "mps", or a list "sm80+sm90a+ptx"; sets gpu, targets and, for mps, clears
 * the instruction set. */
int profile_set_gpu(const struct tables *t, const char *text, struct arena *a, struct profile *p,
		    struct err *e) MUST_CHECK;
/* profile_set_isa: by name or alias. */
int profile_set_isa(const struct tables *t, const char *text, struct arena *a, struct profile *p,
		    struct err *e) MUST_CHECK;
/* profile_composed_name: "sm80+sm90-avx2" from gpu, targets and isa. */
char *profile_composed_name(const struct profile *p, struct arena *a) __attribute__((returns_nonnull));
/* profile_settle_platform: sets `platform` from the GPU target and the instruction set. */
void profile_settle_platform(struct profile *p);
/* How far files that inherit each other have got. */
struct inherit {
	unsigned depth;
	bool circle; /* there is no end to it: that is the error */
};
/* profile_file_load: reads a YAML file. */
int profile_file_load(const struct tables *t, const char *path, struct inherit *inherit, struct arena *a,
		      struct profile *ret, struct err *e) MUST_CHECK;
/* profile_by_name: as profile_load, from inside a file. */
int profile_by_name(const struct tables *t, const char *name, struct inherit *inherit, struct arena *a,
		    struct profile *ret, struct err *e) MUST_CHECK;
/* profile_gpu_name: the GPU half of a composed name: "cpu", "mps", "sm80+sm90a+ptx". */
char *profile_gpu_name(const struct profile *p, struct arena *a);
