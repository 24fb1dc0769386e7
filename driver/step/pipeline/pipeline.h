/* Pipeline: the only place that knows the order of the steps: plan, fetch, unpack, patch, build,
 * relocate, pack, verify, publish. */
#pragma once
#include "cache/store.h"
#include "core/machine/detect.h"
#include "core/plan/plan.h"
#include "step/bench/bench.h"
#include "step/fetch/fetch.h"
#include "step/test/test.h"
#include "step/verify/verify.h"

struct world; /* core/world/world.h */

/* A variant that could not be made, in the arena. */
struct pipeline_failure {
	const char *variant;
	const char *release;
	struct err why;
};

struct pipeline_failures {
	struct pipeline_failure *items;
	size_t count, cap;
};

/* What the user may ask of the steps; parsed straight from the command line, as plan_options. */
struct pipeline_options {
	const char *ccache_remote; /* address of the compiler cache's remote storage; NULL: none */
	const char *ccache_size;   /* what the compiler cache may grow to; NULL: the usual size */
	uint64_t ccache_bytes;     /* the same; 0: the usual size */
	/* "NAME[:READ...]", for ccache_domain_parse; NULL: the usual one */
	const char *ccache_domain;
	/* file of an Ed25519 private key for the provenance; NULL: unsigned */
	const char *sign_key;
	bool keep_tree; /* keep the build tree after its wheel is in the store */
};

/* One of several builds of a wheel, each of which compiles a part into the compiler cache. */
struct pipeline_shard {
	unsigned index, count; /* this one (from 1) of so many; count 0: none */
	bool last;             /* the whole is built, from what the others have compiled */
};

struct pipeline_request {
	const struct tables *tables;
	const char *profiles_dir; /* tables, checks/, requirements/ */
	const char *patches_dir;
	const struct selection *targets; /* what to build, any order: torch goes first */
	size_t count;
	struct plan_options plan; /* without a torch named, the variant's own is built first */
	struct pipeline_options options;
	const char *cuda_home; /* a toolkit that is looked at first; NULL: none named */
	const struct root *root;
	const struct world *world; /* that the root is of; NULL: none */
	struct strlist drift;      /* of the world, as world_result */
	enum sandbox_kind kind;
	struct store *store;
	struct store *world_store; /* of the root's world; NULL: `store` */
	const char *out_dir;
	unsigned jobs;              /* 0: from processors and memory */
	struct fetch_options fetch; /* of sources and wheels */
	/* options for `ptbuild shell` to find the same store; NULL: none */
	const char *shell_options;
	/* take wheels from the store, repacked if need be, but build none; the command line that
	 * would build them, NULL: the caller says it */
	bool repack_only;
	const char *build_line;
	/* of the one wheel asked for only this part is compiled, into the compiler cache; a wheel
	 * that the store has already is taken */
	struct pipeline_shard shard;
	const struct run *run; /* where to log, and how the user stops it */
};

struct pipeline_item {
	const struct plan *plan;
	/* the name of the target, without a toolkit that the plan chose; NULL if captured */
	const char *asked;
	bool hit;               /* came from the store */
	const char *wheel;      /* path in out_dir */
	const char *object;     /* directory in the store */
	json_t *record;         /* build.json: what was made and how; owned by the item */
	struct runs_on runs_on; /* of the finished wheel */
	struct fit fit;         /* whether this machine is one of those */
	/* what a shard did, instead of all that but the plan; owned by the item */
	json_t *shard;
	json_t *check; /* see pipeline_check; owned by the item, NULL for none */
};

/* Results of several requests: each adds its items, also if it then fails. */
struct pipeline_results {
	struct pipeline_item *items;
	size_t count, cap;
	size_t asked; /* how many targets */
	/* the first failure ends it; else a variant that fails is added to those, and only what is
	 * built against it fails with it. An interruption ends it all the same */
	bool goes_on;
	struct pipeline_failures failed;
};

/* pipeline_failed: adds a target that could not be made. */
void pipeline_failed(struct pipeline_failures *f, const struct selection *t, const struct err *why,
		     struct arena *a);
/* pipeline_capture: makes a wheel of the torch that is installed in the root, or finds it in the
 * store; uses only members of the request that name no variant. Errors of capture_find, and
 * those of a build. */
int pipeline_capture(const struct pipeline_request *q, struct arena *a,
		     struct pipeline_results *results, struct err *e) MUST_CHECK;
/* pipeline_build: makes every variant (and the torch they need), or finds it in the store, and
 * writes the wheels into out_dir. */
int pipeline_build(const struct pipeline_request *q, struct arena *a,
		   struct pipeline_results *results, struct err *e) MUST_CHECK;
/* pipeline_find: the item of a target (its variant and release) and a metadata revision (0 = 1);
 * NULL if none. */
const struct pipeline_item *pipeline_find(const struct pipeline_item *items, size_t count,
					  const struct selection *t, unsigned rev);
/* pipeline_free: releases what the items own beyond the arena. */
void pipeline_free(struct pipeline_results *results);

/* pipeline_check: is it reproducible? Builds each of the results' items, from `from` on, that
 * q->targets asked for again in a store of its own beside q's (another path, an empty compiler
 * cache; sources and Python packages are copied), with another number of jobs, umask, time zone and
 * locale, at another time. torchvision and torchaudio are built against the same torch wheel.
 * Differences are not an error: the item has the document of compare_wheels, with the settings, the
 * seconds, and the second wheel, which is kept below the output directory, or null when both are
 * the same. */
int pipeline_check(const struct pipeline_request *q, size_t from, struct arena *a,
		   struct pipeline_results *results, struct err *e) MUST_CHECK;

/* A pair: two wheels of torch, of which the other may come from the Python index. Both get what
 * they pin. */

struct pair_request {
	const struct pipeline_request *q; /* profiles_dir, root, kind, store, fetch */
	const char *wheels[BENCH_SIDES];  /* the other NULL: the official one of the same version */
	struct strlist beside;            /* wheels installed beside both */
	const char *platform;             /* of this machine: "x86_64-linux" */
	json_t *asked;                    /* ASKED of bench.py; scripts and files are added */
	const struct run *run;            /* where to log, and how the user stops it */
};

/* pair_check: whether the other wheel has the same distribution, version (but for the local label),
 * Python and ABI. ERR_POLICY if not, ERR_INTEGRITY for an invalid name. */
int pair_check(const char *ours, const char *other, struct err *e) MUST_CHECK;
/* pair_bench: installs, runs, removes. Errors and results as of bench_run. */
int pair_bench(const struct pair_request *b, struct arena *a, json_t **ret,
	       struct err *e) MUST_CHECK;

/* A package's own tests, from its pinned source, against a finished wheel. */

struct pipeline_test_request {
	const struct pipeline_request *q; /* tables, directories, root, sandbox, store, jobs */
	const char *package;
	const char *release;
	const char *wheel;         /* NULL: what the root's Python has */
	const char *torch_wheel;   /* for torchvision and torchaudio; NULL: the root's */
	const struct isa_row *isa; /* that the wheel declares; NULL: none, or not known */
	const char *level;
	unsigned shard, shards;
	bool again;            /* drop what was run before */
	const struct run *run; /* where to log, and how the user stops it */
};

/* pipeline_test: the results so far and those of what was left to run, judged (see test_judge; new
 * reference). They are kept in a tree of the store (kind "build") of their own. */
int pipeline_test(const struct pipeline_test_request *t, struct arena *a, json_t **ret,
		  struct err *e) MUST_CHECK;
