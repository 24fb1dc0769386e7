/* Variants: the exact name of one build, as the recipe projects spelled it. */
#pragma once
#include "core/tables/tables.h"

/* Profiles: a GPU target and an ISA, with BLAS and toggles. Composed names need no file; a user's
 * YAML file may inherit one. */

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
int profile_load(const struct tables *t, const char *name_or_path, struct arena *a,
		 struct profile *ret, struct err *e) MUST_CHECK;
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
char *profile_composed_name(const struct profile *p, struct arena *a)
	__attribute__((returns_nonnull));
/* profile_settle_platform: sets `platform` from the GPU target and the instruction set. */
void profile_settle_platform(struct profile *p);
/* How far files that inherit each other have got. */
struct inherit {
	unsigned depth;
	bool circle; /* there is no end to it: that is the error */
};
/* profile_file_load: reads a YAML file. */
int profile_file_load(const struct tables *t, const char *path, struct inherit *inherit,
		      struct arena *a, struct profile *ret, struct err *e) MUST_CHECK;
/* profile_by_name: like profile_load, for a name inside a file. */
int profile_by_name(const struct tables *t, const char *name, struct inherit *inherit,
		    struct arena *a, struct profile *ret, struct err *e) MUST_CHECK;
/* profile_gpu_name: the GPU half of a composed name: "cpu", "mps", "sm80+sm90a+ptx". */
char *profile_gpu_name(const struct profile *p, struct arena *a);

struct variant {
	const char *package; /* "pytorch", "torchvision", "torchaudio" */
	const char *python;  /* "3.13" */
	const char *cuda;    /* "12.8", NULL without CUDA */
	struct profile profile;
};

/* The grammar (docs/profiles.md has it for users):
 *   variant = package "-python" digits "-" [ "cuda" N "_" N "-" ] profile
 *           | "python" digits "Packages." package "-" [ "cuda" N "_" N "-" ] profile
 *   profile = ( "cpu" | target { "+" target } ) "-" isa | "darwin-mps"
 *           | the stem of a file in <profiles>/examples
 *   target  = "sm" digits [ "a" | "f" ] [ "+ptx" ]
 * The first form has the toolkit if and only if the profile has GPU targets; the second, older
 * one may leave it open.
 * variant_parse: "pytorch-python313-cuda12_8-sm90-avx512", "torchvision-python313-cpu-avx2",
 * "pytorch-python311-darwin-mps". ERR_CONFIG says which part is wrong. */
int variant_parse(const struct tables *t, const char *name, struct arena *a, struct variant *ret,
		  struct err *e) MUST_CHECK;
/* variant_name: the canonical name; variant_parse of it gives the same variant. Targets are
 * sorted, aliases of instruction sets replaced; only a toolkit that is open leaves the older
 * form as it is. */
char *variant_name(const struct variant *v, struct arena *a);
/* variant_toolkit_word: "12.8" as names have it: "cuda12_8". */
char *variant_toolkit_word(const char *version, struct arena *a);
/* variant_spell: a variant's name from its parts; cuda may be NULL. */
char *variant_spell(const char *package, const char *python, const char *cuda, const char *profile,
		    struct arena *a);
/* variant_looks_like: whether a word begins like a variant: a package and "-python". */
bool variant_looks_like(const char *word);

/* Matrices: named sets of variants. A file of a few rows below profiles/matrices/ describes all
 * their combinations. */

struct matrix_row; /* of a file */

struct matrix {
	const char *name; /* "build-pytorch/pytorch-2.10-python313"; a user's file: its path */
	const char *note; /* one line, for people */
	const struct release_row *release;
	const char *file;
	const struct matrix_row *rows;
	unsigned rows_count;
	struct strlist only;       /* globs; a variant must match one of them. Empty: all */
	struct strlist except;     /* globs; a variant must match none of them */
	const struct matrix *base; /* what this one is a view of; NULL */
};

/* matrix_names: the names of all matrices below <profiles>/matrices, sorted. */
int matrix_names(const struct tables *t, struct arena *a, struct strlist *ret,
		 struct err *e) MUST_CHECK;
/* matrix_load: by name, or the path of a YAML file. ERR_CONFIG with the nearest name, or with
 * file:line for a mistake in the file: an unknown release, Python, toolkit, GPU target or
 * instruction set, a row that contradicts itself (a toolkit for cpu), a view of itself. */
int matrix_load(const struct tables *t, const char *name, struct arena *a,
		const struct matrix **ret, struct err *e) MUST_CHECK;

/* A walk over the variants of a matrix in the order of its rows; zero-initialised at the start. */
struct matrix_walk {
	unsigned row;
	unsigned long cell;
};
/* matrix_next: the canonical name of the next variant, in the arena; NULL at the end. */
const char *matrix_next(const struct matrix *m, struct matrix_walk *w, struct arena *a);

/* The file of 'ptbuild bundle': what has to fit together, a row for each part. */

enum set_kind {
	BUNDLE_PROFILE,
	BUNDLE_PYTHON,
	BUNDLE_CUDA,
	BUNDLE_TORCH,
	BUNDLE_COMPANION,
	BUNDLE_EXTENSION,
	BUNDLE_PART /* a wheel of an application, which no file has */
};

/* What the torch of a set is. */
enum set_torch { BUNDLE_OFFICIAL, BUNDLE_SLIM, BUNDLE_ROOT, BUNDLE_WHEEL, BUNDLE_RELEASE };

struct bundle_row {
	enum set_kind kind;
	const char *text;  /* as written */
	const char *value; /* a path that is there, seen from the file's directory; else the text */
	const char *place; /* "bundle.yaml:3:8" */
};

struct bundle_file {
	const char *name; /* of the file, without .yaml */
	struct bundle_row *rows;
	size_t count;
	enum set_torch torch;
	const char *version; /* of BUNDLE_OFFICIAL and BUNDLE_SLIM; NULL: the release's */
};

/* bundle_file_load: profile, python, cuda and torch, lists of companions and extensions. ERR_CONFIG
 * with file and line as yaml_load, and for a set of torch alone. */
int bundle_file_load(const char *path, struct arena *a, struct bundle_file *ret,
		     struct err *e) MUST_CHECK;
/* bundle_row_text: "bundle.yaml:3:8 (torch: official)". */
char *bundle_row_text(const struct bundle_row *r, struct arena *a) __attribute__((returns_nonnull));
