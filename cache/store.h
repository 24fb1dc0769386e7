/* The store: content-addressed objects, each a directory published whole. See cache/FORMAT.md. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/run.h"
#include "base/strlist.h"
#include "base/sys/lock.h"

/* Kinds of object. A source's key is the sha256 of its file; a wheel's is the output key. */
#define STORE_SOURCE "source"
#define STORE_WHEEL "wheel"
#define STORE_PYENV "pyenv" /* downloaded Python requirements, key = digest of the locked list */

/* Lock kind of a build tree ("build-<compile key>"): hold it while the tree is in use, garbage
 * collection looks at it. */
#define STORE_BUILD "build"

/* Threads may share a handle, each with its own arena. A kind is 1 to 32 lower-case letters, a key
 * 64 lower-case hexadecimal digits; anything else is ERR_CONFIG. */
struct store;

struct store_object {
	const char *kind;
	const char *key;
	const char *path; /* the object's directory */
	uint64_t bytes;
	int64_t used; /* seconds since the epoch of the last use */
};

/* store_open: makes `dir` and its layout if needed, checks the format version (ERR_CONFIG for one
 * it does not know, also for a directory of somebody else's files), removes what dead owners left
 * in tmp/. A directory that cannot be written is ERR_SYSTEM. */
int store_open(const char *dir, const struct run *run, struct store **ret, struct err *e) MUST_CHECK;
/* store_close: also removes the stages that were not published. NULL is fine. */
void store_close(struct store *s);
const char *store_dir(const struct store *s);
/* store_add_lower: a store below this one, looked at after it and after those added before. It is
 * only read: locks, stamps and times of use are kept in this one. A directory that is missing or
 * empty is a warning; ERR_CONFIG for one that is no store or of a format this program does not
 * know. */
int store_add_lower(struct store *s, const char *dir, struct err *e) MUST_CHECK;
/* store_lowers: their directories; how many. */
size_t store_lowers(const struct store *s, const char *const **ret);
/* store_find: the object's directory in the arena, of this store or one below, or NULL in *ret when
 * there is none. Marks it used. An object whose files look other than when they were last hashed is
 * hashed again: one that is damaged is a warning and as good as none, the next one to publish it
 * replaces it. */
int store_find(struct store *s, const char *kind, const char *key, struct arena *a, const char **ret,
	       struct err *e) MUST_CHECK;
/* A store that is read over a network: a function that gets one file of it. Threads may call it at
 * once. */
enum store_got {
	STORE_GOT,        /* the file is there, with the digest that was asked for */
	STORE_GOT_ABSENT, /* the other side has none of that name */
	STORE_GOT_BAD,    /* no answer, or a wrong one: `e` says what */
};

struct store_want {
	const char *path;   /* below the other store */
	const char *to;     /* the file to make */
	const char *sha256; /* NULL: any bytes */
	uint64_t max_bytes;
};

struct store_remote {
	/* -1: this machine's fault or the user's wish, which ends the run */
	int (*get)(void *user, const struct store_want *w, const struct run *run, enum store_got *ret, struct err *e);
	void *user;
};

void store_set_remote(struct store *s, const struct store_remote *remote);
/* store_pull: what store_find did not find, from the remote store, if there is one: into this
 * store, every file checked against the list that the remote gives, the source against its key.
 * *ret NULL: it has none. A remote that fails or gives wrong bytes is a warning, and is not asked
 * again in this run. Whoever calls holds the key's lock. */
int store_pull(struct store *s, const char *kind, const char *key, const struct run *run, struct arena *a,
	       const char **ret, struct err *e) MUST_CHECK;
/* store_stage: a new private directory below tmp/ to fill; dies with the process that made it (the
 * next open removes it). Regular files and directories only may be put there. */
int store_stage(struct store *s, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_publish: writes the manifest (each file's path, size, sha256) into `stage`, fsyncs
 * everything, renames it to its place, fsyncs the directory. If the object is already there the
 * stage is dropped and that one stands. *ret is the object's directory. A stage that is empty or
 * holds links or devices is ERR_CONFIG; a source that is not one file whose digest is the key is
 * ERR_INTEGRITY. On failure the stage stays, for the caller to drop. */
int store_publish(struct store *s, const char *kind, const char *key, const char *stage, struct arena *a,
		  const char **ret, struct err *e) MUST_CHECK;
/* store_drop_stage: removes a stage that will not be published. */
void store_drop_stage(struct store *s, const char *stage);
/* store_lock: the exclusive lock of one key ("<kind>-<key>"), held while it is made. */
int store_lock(struct store *s, const char *kind, const char *key, const struct run *run, struct lock *ret,
	       struct err *e) MUST_CHECK;
/* store_build_dir: where the build tree of a compile key is kept ("<dir>/build/<key>"), created. */
int store_build_dir(struct store *s, const char *compile_key, struct arena *a, const char **ret,
		    struct err *e) MUST_CHECK;
/* store_list: all objects, sorted by kind and key. */
int store_list(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count,
	       struct err *e) MUST_CHECK;
/* store_verify: re-hashes one object against its manifest: ERR_INTEGRITY names the file and both
 * digests. */
int store_verify(struct store *s, const struct store_object *o, const struct run *run, struct err *e) MUST_CHECK;
/* store_quarantine: moves a wrong object out of the way (below quarantine/), so that it is made
 * anew. */
int store_quarantine(struct store *s, const struct store_object *o, struct err *e) MUST_CHECK;
/* store_remove: deletes one object. */
int store_remove(struct store *s, const struct store_object *o, struct err *e) MUST_CHECK;
