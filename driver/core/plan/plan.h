/* The plan: the immutable result of resolving a variant. It has all that later steps need, so they
 * do not read the tables. */
#pragma once
#include "base/show.h"
#include "core/plan/buildenv.h"
#include "core/plan/runs_on.h"

struct term;      /* base/term.h */
struct toolchain; /* core/root/toolkit.h */

/* Versions in the keys. Raise one when the same inputs give other bytes. */
enum {
	PLAN_SCHEMA = 1, /* of the JSON object and the key texts */
	/* what the build step adds to the plan: its own flags, LDFLAGS, the order of commands */
	PLAN_BUILDER = 2,
	PLAN_PACKER = 4, /* relocation and packing: the bytes of a wheel from one build tree */
};

struct plan_patch {
	const char *name;   /* for people: "0001-fix.patch" */
	const char *path;   /* on the host; "" while it is inside a source archive */
	const char *sha256; /* "" likewise */
};

struct plan {
	const char *variant;
	const char *package;
	const char *distribution; /* "torch", "torchvision", "torchaudio" */
	const char *release;
	const char *version;     /* of the package, without the label */
	const char *local_label; /* "cu128.sm90.avx512" */
	const char *platform;
	const char *python;
	const char *cuda;   /* NULL */
	struct strlist gpu; /* capabilities: "9.0", "9.0a", "12.0+PTX" */
	const char *isa;    /* NULL for mps */
	const char *blas;   /* NULL where it does not apply (torchvision, torchaudio) */
	struct strlist cpu_flags;
	struct settings env; /* sorted by name */
	/* cache entries: those checked after configure, sorted by name */
	struct settings cmake;
	/* the subset of them that only the generated file can set */
	struct settings cache;
	const struct isa_row *isa_row; /* NULL for mps */
	/* the root's, NULL without CUDA or when the root was not asked */
	const struct toolkit *toolkit;
	/* the toolkit whose libraries its torch is loaded with: `toolkit`, or that of torch's own
	 * CUDA */
	const struct toolkit *torch_toolkit;
	const struct toolkit_row *torch_toolkit_row; /* NULL where that CUDA is in no table, too */
	const struct toolkit_row *toolkit_row;       /* NULL without CUDA */
	const struct blas_row *blas_row;             /* NULL where blas is */
	const struct release_row *release_row;
	const struct package_row *package_row;
	struct plan_patch *patches;
	size_t patches_count;
	/* the sources of each table that a value comes from */
	struct kvlist fact_sources;
	/* variants this one is built against (torch of the same variant) */
	struct strlist depends;
	/* Requires-Dist of the wheel, without torch and the nvidia-* packages */
	struct strlist requires;
	unsigned metadata_rev;
	struct strlist notes;      /* each correction of what was asked, and why */
	struct strlist asides;     /* those of them that only PLAN_REASONS shows to people */
	struct strlist advisories; /* published weaknesses of the package: "CVE-2025-3000" */
	const char *advised;       /* the nearest release without any; "" none, or none needed */
	bool captured;             /* from the root, not built: plan_captured below */
	/* runtime checks that a package taken from the root is known to fail, and why */
	struct kvlist defects;
	struct runs_on runs_on;
	/* what it is built against: "" none, "root", or "sha256:<wheel digest>" once known */
	const char *torch;
	const char *torch_version; /* full version to pin, "" while unknown */
	/* where the wheel's CUDA libraries come from: "packages" or "system"; "" without CUDA */
	const char *cuda_libraries;
	/* patterns of the libraries of the machine's driver; empty without CUDA */
	struct strlist driver_libraries;
	const char *sandbox; /* sandbox_text: part of the keys */
	bool elsewhere;      /* without a sandbox, at other paths than in it: part of the keys */
	/* "manylinux": the platform tag that the libraries allow; "linux": the plain one */
	const char *platform_tag;
	char compile_key[65];
	/* of what the bytes depend on: the output key's inputs without the metadata revision and
	 * the sandbox, which counts only where paths are others (elsewhere). Wheels with the same
	 * pack key differ only at the end of the archive, in .dist-info */
	char pack_key[65];
	char output_key[65];
	/* the text whose digest compile_key is: one "name: value" line per input, sorted */
	const char *compile_text;
	const char *output_text;
};

/* Digests of files, for plans that are made one after the other. */
struct plan_digests {
	struct arena *arena;
	struct kvlist files;
};

/* A variant that is asked for, and the release that it is of. */
struct selection {
	struct variant variant;
	const struct release_row *release;
	const char *note;       /* as plan_request.note */
	const char *torch_cuda; /* likewise */
};

struct plan_request {
	const struct variant *variant;
	const char *release; /* release name */
	struct plan_options options;
	const struct toolchain *toolchain; /* NULL: not probed; the key text then says so */
	const struct toolkits *toolkits;   /* of the root; NULL: not looked for */
	/* of the root that will be: glibc and the path of its python3; NULL: the toolchain's, or
	 * python3 in /usr/bin */
	const char *glibc, *python;
	bool own_root;     /* no world's: until `toolkits` is known its toolkit may be JetPack's */
	const char *torch; /* see plan.torch */
	const char *torch_version;
	/* of what has no GPU code: the CUDA that its torch is for all the same; NULL: none */
	const char *torch_cuda;
	enum sandbox_kind sandbox;
	bool elsewhere;               /* sandbox_elsewhere */
	unsigned without_protections; /* of run */
	/* packages of the root's world are not the pinned ones: the label says so */
	bool drift;
	const char *patches_dir;      /* <data>/patches */
	struct plan_digests *digests; /* NULL: none are kept */
	/* a note to put before the plan's own, such as what "native" stood for; NULL: none */
	const char *note;
};

/* plan_resolve: reads no files but the patches it lists. ERR_CONFIG for what no table has;
 * ERR_POLICY for two things that do not go together (a target and an nvcc, a Python and a release,
 * an ISA and a platform): the message names both, the hint the first combination that works. */
int plan_resolve(const struct tables *t, const struct plan_request *q, struct arena *a,
		 const struct plan **ret, struct err *e) MUST_CHECK;
/* plan_patches: the patches of p->package in this release, in the order of their series file, added
 * to `p`; patches_dir NULL: none. */
int plan_patches(const char *patches_dir, const char *release, struct arena *a, struct plan *p,
		 struct err *e) MUST_CHECK;
/* plan_unproven: ERR_CONFIG for a source whose digest neither a table nor the user gives: it can be
 * planned, not fetched. */
int plan_unproven(const struct plan *p, struct err *e) MUST_CHECK;
/* plan_cuda: the checks of plan_resolve, without making a plan: its errors, and the toolkit that it
 * would take, NULL without CUDA. */
int plan_cuda(const struct tables *t, const struct plan_request *q, struct arena *a,
	      const char **ret, struct err *e) MUST_CHECK;
/* plan_blas: the BLAS that plan_resolve would take: asked for, else the profile's, else the first
 * of the platform. NULL for packages that have none, and for what plan_resolve refuses. */
const struct blas_row *plan_blas(const struct tables *t, const struct plan_request *q);
/* What a plan for CUDA needs of the root's own toolkit. */
struct plan_need {
	const char *name; /* "nvcc", "cudnn" */
	const char *text; /* what is there; NULL: `why` says what is not, and what to do */
	struct err why;
};
/* plan_root_needs: all of them; that nvcc has the targets only where it has not. plan_nvcc_targets:
 * the GPUs as nvcc names them: "90a", "120". */
size_t plan_root_needs(const struct plan *p, const struct toolkits *l, struct arena *a,
		       struct plan_need **ret);
void plan_nvcc_targets(const struct plan *p, struct arena *a, struct strlist *ret);
/* plan_takes_target: whether the tables have the GPU target for a package of a release (which has
 * that package), with this toolkit; `cuda` NULL: with any. Jetsons are judged as on Arm, their
 * platform. */
bool plan_takes_target(const struct release_row *r, const char *package, const char *cuda,
		       const struct gpu_target *t);
/* plan_json: what `plan --json` prints (new reference). */
json_t *plan_json(const struct plan *p);
/* plan_json_explained: like plan_json, with a last key "explain": for each variable and entry its
 * value, the rule that set it, table:line, why, and the source of the fact. */
json_t *plan_json_explained(const struct plan *p);
enum plan_detail {
	PLAN_CHANGES, /* a screen: only the settings that differ from the release's defaults */
	PLAN_ALL,
	PLAN_REASONS, /* each value with its table:line and why */
};
/* plan_words: adds to the JSON what plan_rows show of it to people. */
void plan_words(json_t *doc, const struct plan *p, enum plan_detail detail);
extern const struct show plan_rows[];
/* plan_is_extension: of a package whose row comes from its own source. */
static inline bool plan_is_extension(const struct plan *p)
{
	return p->package_row && p->package_row->name;
}
/* plan_full_version: "2.9.1+cu128.sm90.avx512". */
char *plan_full_version(const struct plan *p, struct arena *a);

struct promise {
	const char *from;          /* for people: "its label 'cpu.avx2'" */
	bool binding;              /* false: nothing was promised, so findings are notes only */
	const char *platform;      /* "x86_64-linux", "" unknown */
	const struct isa_row *isa; /* NULL: the baseline of the platform */
	bool gpu_known;            /* gpu says something */
	struct strlist gpu;        /* capabilities as in plan.gpu; empty: no GPU code at all */
	const char *cuda;          /* "12.8", NULL: none; also of any "cu128" label */
	bool tegra;                /* the GPU code is made with JetPack's own toolkit */
};

/* promise_of_label: from a local version label of the form that profile_label makes:
 * "cu128.sm90.avx512", "cpu.avx2", with or without the stem of a profile file. Any other label, ""
 * too, gives a promise that is not binding. One that ends with targets, as 'ptbuild slim' writes
 * it ("cu128.sm90", "sm90"), still names the GPUs that the wheel must run on. */
void promise_of_label(const struct tables *t, const char *label, struct arena *a,
		      struct promise *ret);
void promise_of_plan(const struct plan *p, struct arena *a, struct promise *ret);
/* promise_of_profile: `cuda` NULL: any toolkit. */
void promise_of_profile(const struct profile *p, const char *cuda, const char *from,
			struct arena *a, struct promise *ret);

/* How two plans differ, and why. */

/* plan_compare: {"schema", "left", "right", "differences": [{"section", "name", "left": {"value",
 * "from", "rule", "why"} or null, "right": ...}]} (new reference), by section ("plan",
 * "environment", "cache entries", "sources", "patches", "notes", "keys"), and by name within a
 * section; none for equal plans. A cache entry set through a variable of its name is listed once,
 * as the variable. "from" is null where the plan's parts come from no table. plan_diff_rows show
 * it. */
json_t *plan_compare(const struct plan *left, const struct plan *right, struct arena *a);
extern const struct show plan_diff_rows[];

/* key_diff: adds a line to `ret` for each input that differs between two texts of plan_keys:
 * "toolchain gcc: 14.2.0 → 14.3.0", "env USE_MPI: ON → OFF"; "none" if a text lacks it. Digests are
 * shortened. The texts need not be well formed. */
void key_diff(const char *old, const char *new, struct arena *a, struct strlist *ret);

/* The plan of a torch that is taken from the root instead of built: what is known of it, and the
 * keys of its wheel. */

struct plan_captured_request {
	const struct root *root;
	const char *package; /* "python3-torch=2.6.0+dfsg-7" */
	const char *version; /* full: "2.6.0+debian" */
	const char *python, *platform;
	const char *digest; /* of its files */
	uint64_t epoch;
	enum sandbox_kind sandbox;
	unsigned without_protections;
	unsigned metadata_rev; /* 0 = 1 */
};

/* plan_captured: its instruction set is the platform's baseline; the notes say that ptbuild did not
 * compile it, and what is known to fail in it. `ret_tools`: what the record has in their place. */
int plan_captured(const struct tables *t, const struct plan_captured_request *q, struct arena *a,
		  const struct plan **ret, const struct toolchain **ret_tools,
		  struct err *e) MUST_CHECK;

/* A quilt series: which patches there are, in which order. */

/* series_read: the names in a series file, in order, without those in `skip` (may be NULL). "#"
 * begins a comment; "-p1" is the one option allowed. ERR_CONFIG with file and line for another
 * option, an unsafe name and a name listed twice; ERR_CONFIG too for a name in `skip` that is not
 * in the series. */
int series_read(const char *series, const struct strlist *skip, struct arena *a,
		struct strlist *ret, struct err *e) MUST_CHECK;
