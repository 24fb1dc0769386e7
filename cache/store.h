/* The store: content-addressed objects, each a directory published whole. See cache/FORMAT.md. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/run.h"
#include "base/strlist.h"

/* Kinds of object. A source's key is the sha256 of its file; a wheel's is the output key. */
#define STORE_SOURCE "source"
#define STORE_WHEEL "wheel"
#define STORE_PYENV "pyenv" /* downloaded Python requirements, key = digest of the locked list */

/* Lock kind of a build tree ("build-<compile key>"): hold it while the tree is in use, garbage collection looks at it. */
#define STORE_BUILD "build"

/* Threads may share a handle, each with its own arena. A kind is 1 to 32 lower-case letters, a key 64 lower-case hexadecimal digits; anything else is ERR_CONFIG. */
struct store;

struct store_object {
	const char *kind;
	const char *key;
	const char *path; /* the object's directory */
	uint64_t bytes;
	int64_t used; /* seconds since the epoch of the last use */
};

/* store_open: makes `dir` and its layout if needed, checks the format version (ERR_CONFIG for one it does not know, also for a directory of somebody else's files), removes what dead owners left in tmp/.
 * A directory that cannot be written is ERR_SYSTEM. */
int store_open(const char *dir, const struct run *run, struct store **ret, struct err *e) MUST_CHECK;
/* store_close: also removes the stages that were not published. NULL is fine. */
void store_close(struct store *s);
const char *store_dir(const struct store *s);
/* store_find: the object's directory in the arena, or NULL in *ret when there is none. Marks it used. Costs a stat, nothing is re-hashed. */
int store_find(struct store *s, const char *kind, const char *key, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_stage: a new private directory below tmp/ to fill; dies with the process that made it (the next open removes it). Regular files and directories only may be put there. */
int store_stage(struct store *s, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_publish: writes the manifest (each file's path, size, sha256) into `stage`, fsyncs everything, renames it to its place, fsyncs the directory. If the object is already there the stage is dropped and that one stands.
 * *ret is the object's directory. A stage that is empty or holds links or devices is ERR_CONFIG; a source that is not one file whose digest is the key is ERR_INTEGRITY. On failure the stage stays, for the caller to drop. */
int store_publish(struct store *s, const char *kind, const char *key, const char *stage, struct arena *a, const char **ret,
		  struct err *e) MUST_CHECK;
/* store_drop_stage: removes a stage that will not be published. */
void store_drop_stage(struct store *s, const char *stage);
/* store_lock: the exclusive lock of one key ("<kind>-<key>"), held while it is made. */
int store_lock(struct store *s, const char *kind, const char *key, const struct run *run, struct lock *ret, struct err *e) MUST_CHECK;
/* store_build_dir: where the build tree of a compile key is kept ("<dir>/build/<key>"), created. */
int store_build_dir(struct store *s, const char *compile_key, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_list: all objects, sorted by kind and key. */
int store_list(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count, struct err *e) MUST_CHECK;
/* store_verify: re-hashes one object against its manifest: ERR_INTEGRITY names the file and both digests. */
int store_verify(struct store *s, const struct store_object *o, const struct run *run, struct err *e) MUST_CHECK;
/* store_quarantine: moves a wrong object out of the way (below quarantine/), so that it is made anew. */
int store_quarantine(struct store *s, const struct store_object *o, struct err *e) MUST_CHECK;
/* store_remove: deletes one object. */
int store_remove(struct store *s, const struct store_object *o, struct err *e) MUST_CHECK;
