/* One variant made from its plan: the steps in their order, each timed. */
#pragma once
#include "core/plan/cuda_libraries.h"
#include "step/pack/pack.h"
#include "step/pipeline/pipeline.h"
#include "step/pipeline/progress.h"
#include "step/pipeline/torch.h"
#include "step/python/pyenv.h"
#include "step/relocate/relocate.h"
#include "step/take/take.h"
#include "step/verify/verify.h"
#include "step/verify/verify_run.h"
#include "step/watch/report.h"

/* One variant being made: what its steps hand to each other and to the record. */
struct make {
	const struct pipeline_request *q;
	const struct run *run;
	struct arena *arena;
	const struct plan *plan;
	const struct toolchain *toolchain;
	const struct torch_source *torch; /* NULL for torch itself */
	const struct taken *taken;        /* the root's torch; NULL: it is built */
	const char *build_dir;            /* of the compile key, where it is worked in */
	const char *rest_dir;             /* where people find it afterwards; NULL: there */
	/* where the socket of the compiler cache's remote storage is; NULL: none */
	const char *ccache_remote_dir;
	uint64_t remote_hits; /* that the compiler cache got from fallback stores and the server */
	const char *stage;    /* directory of the store that becomes the object */
	/* of the runtime check; NULL: the profiles' own */
	const char *checks_dir;
	bool no_ccache;             /* the compiler itself is run */
	struct build_shard *shard;  /* NULL: a whole wheel is made */
	const char *torch_dir;      /* unpacked torch, NULL for the root's */
	struct strlist provided;    /* names that torch's libraries answer to */
	struct strlist torch_files; /* and where they lie */
	const struct manylinux_policy *policy;
	struct cuda_needs cuda; /* known once the build's wheel is unpacked */
	const struct isa_rules *code;
	struct pyenv pyenv;
	struct build_result build;
	struct relocate_result relocated;
	struct strlist licenses; /* of what was vendored, below dist-info/licenses */
	struct pack_result packed;
	struct verify_report verified;
	struct verify_run_result used;
	struct watch *watch; /* NULL: nobody looks, and then there is no progress */
	struct progress *progress;
	struct watch_result watched;   /* once the watch has been stopped */
	const struct weights *weights; /* what the units take; NULL: nobody asks */
	struct report_units units;
};

/* make_run: fetch to verify. Afterwards the stage holds the wheel, verified. A shard ends with the
 * build. */
int make_run(struct make *m, struct err *e) MUST_CHECK;
/* make_wheel: the end of that, from a prepared tree on: Python environment, build to verify. */
int make_wheel(struct make *m, struct err *e) MUST_CHECK;
/* make_fetch: the sources into the store. */
int make_fetch(struct make *m, struct fetch_source **ret, struct err *e) MUST_CHECK;
/* make_source: fetches the sources, and unpacks and patches them below `src`, which must not exist.
 * Of the plan only package, package_row and patches count. */
int make_source(struct make *m, const char *src, struct err *e) MUST_CHECK;
/* add_build_paths: adds what no file of the wheel may hold: the sandbox's paths, and without a
 * sandbox the build tree's. */
void add_build_paths(const struct make *m, struct strlist *ret);
/* write_sbom: bill of materials and licences of vendored libraries, into the relocated tree. */
int write_sbom(struct make *m, const char *tree, const char *libs_dir, struct err *e) MUST_CHECK;
/* collect_units: the units of the build into m->units, also of one that failed, and what they say
 * of this machine's speed into the store. The watch must have been stopped. */
void collect_units(struct make *m);
/* write_record: into the stage: build.json (inputs with digests, keys, toolchain, times and peaks,
 * compiler cache, verification) and build.html, which shows it. */
int write_record(const struct make *m, struct err *e) MUST_CHECK;

/* shard_check: whether this plan can be built in shards here: by its back end (ERR_POLICY), and
 * because there is a compiler cache, which alone keeps what a shard compiles (ERR_SYSTEM). */
int shard_check(const struct plan *p, const struct toolchain *t, struct err *e) MUST_CHECK;
/* shard_tree_key: the key of the tree that a build of the request is made in: the compile key, or
 * of a shard another one, so that shards can run on one machine at once. */
const char *shard_tree_key(const struct pipeline_request *q, const struct plan *p, struct arena *a)
	__attribute__((returns_nonnull));
/* shard_new: the shard that the request is for, NULL for none; in the arena of `m`. */
struct build_shard *shard_new(const struct make *m);
/* shard_record: what it compiled, from where, and what it took: "shard" of "shards", "units" of
 * "of", "common", hits and misses of the compiler cache, "seconds" and "cpu_seconds". */
json_t *shard_record(const struct make *m);
