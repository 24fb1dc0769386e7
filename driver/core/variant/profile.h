/* Profiles: a GPU target and an ISA, with BLAS and toggles. Composed names need no file; a user's
 * YAML file may inherit one. */
#pragma once
#include "core/tables/tables.h"

enum gpu_kind { GPU_CPU, GPU_CUDA, GPU_MPS };

struct gpu_target { /* one entry of the SM list */
	const struct gpu_row *row;
	const char *suffix; /* "", "a", "f" */
	bool ptx;           /* "+ptx" */
};

struct profile {
	/* canonical: "sm90-avx512", "sm80+sm90-avx2", "cpu-avx2", "darwin-mps"; a user file: its
	 * stem */
	const char *name;
	enum gpu_kind gpu;
	struct gpu_target *targets; /* GPU_CUDA only, in ascending order, no duplicates */
	unsigned targets_count;
	const struct isa_row *isa;   /* NULL for darwin-mps */
	const struct blas_row *blas; /* NULL: the default of the platform */
	struct strlist extra_cflags;
	/* the user's overrides; `why` names the file, `line` the line */
	struct table_setting *toggles;
	unsigned toggles_count;
	const char *file;     /* the user's file, "" when composed */
	const char *platform; /* "x86_64-linux", "aarch64-linux", "aarch64-darwin" */
};

/* profile_parse: a composed name ("sm90-avx512", "sm80+sm90a+ptx-avx2", "cpu-armv8.2",
 * "darwin-mps"). ERR_CONFIG names the part that is wrong and the nearest that exists. */
int profile_parse(const struct tables *t, const char *name, struct arena *a, struct profile *ret,
		  struct err *e) MUST_CHECK;
/* profile_load: a composed name, or the path of a YAML file (has a '/' or ends in .yaml), or a stem
 * of a file in <profiles>/examples. Keys of a file: inherit, gpu (list of SM strings), isa, blas,
 * cflags, toggles (name: value). Errors are file:line. */
int profile_load(const struct tables *t, const char *name_or_path, struct arena *a, struct profile *ret,
		 struct err *e) MUST_CHECK;
/* profile_is_planned_only: whether ptbuild makes plans of it and no builds. */
bool profile_is_planned_only(const struct profile *p);
/* profile_label: the local version label: "cu128.sm90.avx512" with a toolkit ("12.8"), "cpu.avx2",
 * "mps" without (NULL). PEP 440: letters and digits with dots between, so armv8_2 gives "armv8.2";
 * a file adds its stem. */
char *profile_label(const struct profile *p, const char *cuda, struct arena *a);
/* profile_label_toolkit: "12.8" as labels have it: "cu128". */
char *profile_label_toolkit(const char *version, struct arena *a);

/* The parts of a profile that its composed name and its YAML file share. */
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
