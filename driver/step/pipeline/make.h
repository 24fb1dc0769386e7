/* One variant made from its plan: the steps in their order, each timed. */
#pragma once
#include "cache/store.h"
#include "core/plan/cuda_libraries.h"
#include "core/root/toolkit.h"
#include "core/wheel/wheel.h"
#include "step/capture/capture.h"
#include "step/ccache/ccache_relay.h"
#include "step/fetch/fetch.h"
#include "step/pack/pack.h"
#include "step/pipeline/cost.h"
#include "step/pipeline/pipeline.h"
#include "step/preflight/preflight.h"
#include "step/python/pyenv.h"
#include "step/relocate/relocate.h"
#include "step/verify/verify.h"
#include "step/watch/watch.h"

/* The torch that torchvision and torchaudio are built against: the root's own, or a wheel, always
 * by digest. */

struct torch_source {
	/* "root" (the root's fingerprint covers it) or "sha256:<digest of the wheel>" */
	const char *identity;
	const char *version; /* full: "2.6.0+cpu.avx2" */
	/* host path; NULL for the root's, and for an official one that was not fetched */
	const char *wheel;
	/* the root's torch/lib as a path inside the root; NULL for a wheel */
	const char *lib_dir;
	const struct official_wheel *official; /* NULL: it is not pinned */
};

struct torch_official {
	const char *profiles;
	const char *base; /* the version where the word has none */
	const char *python, *platform;
	const char *cuda; /* NULL: any */
};
/* torch_find_official: 1 and the pinned wheel, which nobody fetched yet; 0 for another word. Errors
 * of official_find.
 * torch_official_of: the same for what a plan builds; 0 without a word, and for torch itself. */
int torch_find_official(const char *word, const struct torch_official *q, struct arena *a,
			struct torch_source *ret, struct err *e) MUST_CHECK;
int torch_official_of(const char *word, const struct tables *t, const struct plan *p,
		      struct arena *a, struct torch_source *ret, struct err *e) MUST_CHECK;

/* torch_recall: returns an earlier answer of torch_from_root for a world of the store (`answers`:
 * the directory in which sandbox_capture keeps it; NULL: none). */
bool torch_recall(const struct root *root, enum sandbox_kind kind, const char *answers,
		  struct arena *a, struct torch_source *ret);
/* torch_from_root: ERR_POLICY if the root's Python has no torch. */
int torch_from_root(const struct root *root, enum sandbox_kind kind, const char *answers,
		    const struct run *run, struct arena *a, struct torch_source *ret,
		    struct err *e) MUST_CHECK;
/* torch_from_wheel: checks that it is a torch wheel for this Python. */
int torch_from_wheel(const char *path, const char *python, struct arena *a,
		     struct torch_source *ret, struct err *e) MUST_CHECK;
/* torch_unpack: a wheel's files below `dir` (made once, kept by a marker); *ret is NULL for the
 * root's torch. */
int torch_unpack(const struct torch_source *t, const char *dir, const struct run *run,
		 struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* torch_provides: the NEEDED names that torch's own libraries answer to, and their paths.
 * `unpacked`: from torch_unpack. */
int torch_provides(const struct torch_source *t, const struct root *root, const char *unpacked,
		   struct arena *a, struct strlist *ret, struct strlist *ret_files,
		   struct err *e) MUST_CHECK;

/* Compiled objects across builds. A build writes into a compiler cache of its own, in its build
 * directory, and reads the store's through a socket; what it made enters the store's when it is
 * finished and verified. */

#define COMPILED_FRONT "ccache" /* in the build directory */

struct compiled {
	struct ccache_relay *remote; /* NULL: the build reads nothing */
	/* where its socket is, a stage of the store, to be shown to the build; NULL likewise */
	const char *dir;
	/* once it was stopped: what came from fallback stores and the server, and whether that
	 * failed */
	uint64_t remote_hits;
	bool server_failed;
};

/* One variant being made: what its steps hand to each other and to the record. */
struct make {
	const struct pipeline_request *q;
	const struct run *run;
	struct arena *arena;
	const struct plan *plan;
	const struct toolchain *toolchain;
	const struct torch_source *torch; /* NULL for torch itself */
	const struct captured *captured;  /* the root's torch; NULL: it is built */
	const char *build_dir;            /* of the compile key, where it is worked in */
	const char *rest_dir;             /* where people find it afterwards; NULL: there */
	struct compiled compiled;
	const char *stage; /* directory of the store that becomes the object */
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
	struct fetch_source *sources; /* known once they are fetched */
	struct pyenv pyenv;
	/* what the back end of an extension wants and the environment lacks: the build stopped */
	struct strlist asks;
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

/* make_run: runs all steps, in the order of their table. Afterwards the stage holds the wheel,
 * verified. A shard ends with the build. */
int make_run(struct make *m, struct err *e) MUST_CHECK;
/* make_wheel: the end of that, from a prepared tree on: Python environment, build to verify. */
int make_wheel(struct make *m, struct err *e) MUST_CHECK;
/* make_fetch: the sources into the store. */
int make_fetch(struct make *m, struct fetch_source **ret, struct err *e) MUST_CHECK;
/* make_source: fetches the sources, and unpacks and patches them below `src`, which must not exist.
 * Uses only package, package_row and patches of the plan. */
int make_source(struct make *m, const char *src, struct err *e) MUST_CHECK;
/* write_sbom: bill of materials and licences of vendored libraries, into the relocated tree. */
int write_sbom(struct make *m, const char *tree, struct err *e) MUST_CHECK;
/* collect_units: the units of the build into m->units, also of one that failed, and what they say
 * of this machine's speed into the store. The watch must have been stopped. */
void collect_units(struct make *m);
/* write_record: into the stage: build.json (inputs with digests, keys, toolchain, times and peaks,
 * compiler cache, verification) and build.html, which shows it. */
int write_record(const struct make *m, struct err *e) MUST_CHECK;

/* shard_record: what a shard compiled, from where, and what it took: "shard" of "shards", "units"
 * of "of", "common", hits and misses of the compiler cache, "seconds" and "cpu_seconds". */
json_t *shard_record(const struct make *m);
/* shard_check: whether this plan can be built in shards here: by its back end (ERR_POLICY), and
 * because there is a compiler cache, which alone keeps what a shard compiles (ERR_SYSTEM). */
int shard_check(const struct plan *p, const struct toolchain *t, struct err *e) MUST_CHECK;

/* compiled_start: serves the domains that the request reads, if the root's ccache can read them. */
int compiled_start(struct make *m, struct err *e) MUST_CHECK;
/* compiled_stop: ends that and logs what it did. */
void compiled_stop(struct make *m);
/* compiled_keep: what the build compiled into the request's domain of the store, and to the server
 * if there is one that may be written. The build must be over; of a shard it is a domain of its
 * own, as nobody verified it. Entries that the domain has stay as they are. The size limit holds
 * afterwards. */
int compiled_keep(const struct make *m, struct err *e) MUST_CHECK;
/* compiled_publish: like compiled_keep, for a verified build, once compiled_stop was called;
 * removes the objects that its shards had kept. A failure is a warning. Skips a server that
 * failed. */
void compiled_publish(const struct make *m);

/* Inputs that changed since a variant was last built, logged when its build starts from scratch. */

/* log_changed_inputs: where the latest build of the plan's variant (a kept tree, or a wheel in the
 * store) had another compile key, logs which inputs changed since. `build_dir`: the new tree.
 * Silent when no earlier build is known; an error here stops no build. */
void log_changed_inputs(struct store *s, const struct plan *p, const char *build_dir,
			const struct run *run);
/* plan_of_tree: returns the plan; for a tree whose sources were changed by hand, with a note and
 * keys of its own, so that no other build uses its wheel as the plan's. */
const struct plan *plan_of_tree(const struct plan *p, const char *build_dir, const struct run *run,
				struct arena *a);

/* log_packed_otherwise: where a lower store has a wheel of the plan's compile key that a ptbuild
 * with other tables or libraries packed, logs what they differ in. */
void log_packed_otherwise(struct store *s, const struct plan *p, const struct run *run);

/* A new metadata revision of a wheel in the store is made from that wheel, not built. */

/* pipeline_can_repack: whether the store has a wheel with the plan's pack key, whatever its
 * metadata revision; `by_name`: whether it may, as it has one of the variant, which is known before
 * the root is. pipeline_no_repack: the error where it has none. */
int pipeline_can_repack(struct store *store, const struct plan *p, bool by_name, struct arena *a,
			bool *ret, struct err *e) MUST_CHECK;
int pipeline_no_repack(const char *variant, const char *build_line, struct err *e) MUST_CHECK;
/* pipeline_repack: finds a wheel with the plan's pack key and publishes it, repacked, under the
 * plan's output key; *ret is the object, NULL if no wheel has it. The contents were verified when
 * they were packed; they are copied only if the wheel still has the digest in its record. The
 * caller holds the lock of the output key. */
int pipeline_repack(const struct make *m, const char **ret, struct err *e) MUST_CHECK;

/* What the preflight asks of other steps, for doctor and for a build. */

/* pipeline_needs_cuda: whether a build or its torch is for CUDA. */
bool pipeline_needs_cuda(const struct pipeline_request *q) __attribute__((pure));
/* pipeline_other_store: returns the store of the world that --root names by its path; NULL: this
 * one or a fallback. */
const char *pipeline_other_store(const struct store *store, const struct root *root,
				 struct arena *a);
/* pipeline_lock: gives an extension of the tables the lock of what its build needs, if it needs one
 * (requirements_lock).
 * pipeline_lock_more: after a build that stopped as its back end `asks` for more: a lock that has
 * that as well. Leaves the error of the build where the lock is the user's. */
int pipeline_lock(const struct pipeline_request *q, const struct plan *p, const struct run *run,
		  struct arena *a, const struct tables **tables, struct err *e) MUST_CHECK;
int pipeline_lock_more(const struct pipeline_request *q, const struct plan *p,
		       const struct strlist *asks, const struct run *run, struct arena *a,
		       const struct tables **tables, struct err *e) MUST_CHECK;
/* Callbacks of a preflight_request whose `user` is a pipeline_request. pipeline_trial: what it
 * lacks offline is a warning where all is looked at. */
int pipeline_installs(void *user, struct preflight *d, struct strlist *ret,
		      struct err *e) MUST_CHECK;
int pipeline_trial(void *user, struct preflight *d, struct err *e) MUST_CHECK;
/* pipeline_reach: asks the places of what the store (NULL: none) lacks of the plan's sources, of an
 * official torch (the word of --torch, or NULL) and of a world that is not made. `others`: another
 * store may have the wheel, so sources only warn. */
int pipeline_reach(struct preflight *d, struct store *store, const struct fetch_options *o,
		   const char *torch, bool others, struct err *e) MUST_CHECK;
/* pipeline_preflight: of a build in its root: ERR_SYSTEM or ERR_POLICY with all that is missing or
 * does not fit, and what to do about it. `toolkits` NULL where nothing is built for CUDA. */
int pipeline_preflight(const struct make *m, const struct toolkits *toolkits,
		       struct err *e) MUST_CHECK;

/* A wheel that is looked for in the stores. */
struct wheel_lookup {
	struct store *store;
	const struct run *run;
	struct arena *arena; /* of what is found */
	const struct plan *plan;
	bool locked;       /* its key */
	const char *found; /* its object; NULL: none */
};

/* wheel_look_up: where this store has none, the lock of its key is taken and kept. */
int wheel_look_up(struct wheel_lookup *x, struct lock *key, struct err *e) MUST_CHECK;
