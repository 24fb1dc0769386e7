/* Shards: one wheel's compilations divided among several builds, which share the compiler cache. */
#pragma once
#include "step/pipeline/make.h"

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
