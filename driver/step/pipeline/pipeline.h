/* Pipeline: the only place that knows the order of the steps: plan, fetch, unpack, patch, build,
 * relocate, pack, verify, publish. */
#pragma once
#include "cache/store.h"
#include "core/machine/detect.h"
#include "core/plan/plan.h"
#include "step/fetch/fetch.h"

struct world; /* core/world/world.h */

struct pipeline_target {
	struct variant variant;
	const char *release;
	const char *note; /* as plan_request.note */
};

/* A variant that could not be made, in the arena. */
struct pipeline_failure {
	const char *variant;
	const char *release;
	struct err why;
};

struct pipeline_failures {
	struct pipeline_failure *items;
	size_t count;
};

/* What the user may ask of the steps; parsed straight from the command line, as plan_options. */
struct pipeline_options {
	const char *ccache_remote; /* address of the compiler cache's remote storage; NULL: none */
	const char *ccache_size;   /* what the compiler cache may grow to; NULL: the usual size */
	uint64_t ccache_bytes;     /* the same; 0: the usual size */
	/* "NAME[:READ...]", as ccache_domain_parse takes it; NULL: the usual one */
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
	const struct pipeline_target *targets; /* what to build, any order: torch goes first */
	size_t count;
	struct plan_options plan; /* without a torch named, the variant's own is built first */
	struct pipeline_options options;
	const char *cuda_home; /* a toolkit that is looked at first; NULL: none named */
	const struct root *root;
	const struct world *world; /* that the root is of; NULL: none */
	struct strlist drift;      /* of the world, as world_result */
	enum sandbox_kind kind;
	struct store *store;
	const char *out_dir;
	unsigned jobs;              /* 0: from processors and memory */
	struct fetch_options fetch; /* of sources and wheels */
	/* what `ptbuild shell` must be told to find the same store; NULL: nothing */
	const char *shell_options;
	/* take wheels from the store, repacked if need be, but build none; the command line that
	 * would build them, NULL: the caller says it */
	bool repack_only;
	const char *build_line;
	/* of the one wheel asked for only this part is compiled, into the compiler cache; a wheel
	 * that the store has already is taken */
	struct pipeline_shard shard;
	/* NULL: the first failure ends it. Else a variant that fails is added here, and only what
	 * is built against it fails with it; an interruption ends it all the same */
	struct pipeline_failures *failures;
};

struct pipeline_item {
	const struct plan *plan;
	/* the name of the target, which says no toolkit where the plan chose it; NULL if taken */
	const char *asked;
	bool hit;               /* came from the store */
	const char *wheel;      /* path in out_dir */
	const char *object;     /* directory in the store */
	json_t *record;         /* build.json: what was made and how; owned by the item */
	struct runs_on runs_on; /* of the finished wheel */
	struct fit fit;         /* whether this machine is one of those */
	/* what a shard did, instead of all that but the plan; owned by the item */
	json_t *shard;
};

/* pipeline_take: the torch that is installed in the root as a wheel, or takes that from the store;
 * of the request only what names no variant counts. Errors of take_find, and as for a build. */
int pipeline_take(const struct pipeline_request *q, const struct run *run, struct arena *a, struct pipeline_item **ret,
		  size_t *ret_count, struct err *e) MUST_CHECK;
/* pipeline_build: makes every variant (and the torch they need), or takes them from the store, and
 * puts the wheels into out_dir. Stops at the first failure, or goes on (see failures); what was
 * finished before stays. */
int pipeline_build(const struct pipeline_request *q, const struct run *run, struct arena *a, struct pipeline_item **ret,
		   size_t *ret_count, struct err *e) MUST_CHECK;
/* pipeline_find: the item of a target (its variant and release) and a metadata revision (0 = 1);
 * NULL if none. */
const struct pipeline_item *pipeline_find(const struct pipeline_item *items, size_t count,
					  const struct pipeline_target *t, unsigned rev);
/* pipeline_free: releases what the items own beyond the arena. */
void pipeline_free(struct pipeline_item *items, size_t count);
