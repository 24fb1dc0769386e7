/* The store: content-addressed objects, each a directory published whole. See cache/FORMAT.md. */
#pragma once
#include "base/sys/lock.h"

/* Kinds of object. A source's key is the sha256 of its file; a wheel's is the output key. */
#define STORE_SOURCE "source"
#define STORE_WHEEL "wheel"
#define STORE_RECORD "build.json" /* of a wheel, beside it */
#define STORE_PYENV "pyenv"       /* Python requirements, key = digest of the locked list */

/* A root file system, with links, and rules of its own: cache/world.h. */
#define STORE_WORLD "world"

/* A build tree: its lock ("build-<compile key>") is held while it is in use. */
#define STORE_BUILD "build"

/* The shared compiler cache: ptbuild's own files, which no build is shown. */
#define STORE_COMPILED "compiled"

/* Threads may share a handle, each with its own arena. A kind is 1 to 32 lower-case letters, a key
 * 64 lower-case hexadecimal digits; ERR_CONFIG for anything else. */
struct store;

struct store_object {
	const char *kind;
	const char *key;
	const char *path; /* the object's directory */
	uint64_t bytes;
	int64_t used; /* seconds since the epoch of the last use */
};

/* store_open: makes `dir` and its layout if needed and removes what dead owners left in tmp/.
 * ERR_CONFIG for an unknown format or a directory of somebody else's files. */
int store_open(const char *dir, const struct run *run, struct store **ret, struct err *e) MUST_CHECK;
/* store_look: for who only reads. A store that this user cannot write, or on a read-only file
 * system, is taken as it is, whoever owns it; any other is opened as by store_open. ERR_CONFIG also
 * for a directory without a format file, where none can be written. */
int store_look(const char *dir, const struct run *run, struct store **ret, struct err *e) MUST_CHECK;
/* store_is_read_only: whether it was taken so. store_check_writable: ERR_SYSTEM if it was. */
bool store_is_read_only(const struct store *s);
int store_check_writable(const struct store *s, struct err *e) MUST_CHECK;
/* store_close: also removes the stages that were not published. NULL is fine. */
void store_close(struct store *s);
const char *store_dir(const struct store *s);
/* store_add_fallback: a fallback store, read after this one and those added before. It is never
 * written: its locks, stamps and times of use are kept here. A missing or empty directory is a
 * warning; ERR_CONFIG for one that is not a store, or of an unknown format. */
int store_add_fallback(struct store *s, const char *dir, struct err *e) MUST_CHECK;
/* store_fallbacks: the directories of the fallback stores; how many. */
size_t store_fallbacks(const struct store *s, const char *const **ret);
/* store_find: the object's directory in the arena, here or in a fallback store; NULL in *ret: none.
 * Marks it used. An object whose files look changed is hashed again; a damaged one is a warning and
 * counts as none, and the next publisher replaces it. */
int store_find(struct store *s, const char *kind, const char *key, struct arena *a, const char **ret,
	       struct err *e) MUST_CHECK;
/* A store that is read over a network: a function that gets one of its files, from any thread. */
enum store_got {
	STORE_GOT,        /* the file is there, with the digest that was asked for */
	STORE_GOT_ABSENT, /* there is no such file */
	STORE_GOT_BAD,    /* no answer, or a wrong one: `e` says what */
};

struct store_want {
	const char *path;   /* below the other store */
	const char *to;     /* the file to make */
	const char *sha256; /* NULL: any bytes */
	uint64_t max_bytes;
};

struct store_remote {
	/* -1: this machine failed or the user stopped it */
	int (*get)(void *user, const struct store_want *w, const struct run *run, enum store_got *ret, struct err *e);
	void *user;
};

void store_set_remote(struct store *s, const struct store_remote *remote);
/* store_pull: what store_find did not find, from the remote store into this one, every file checked
 * against its manifest, a source against its key; NULL in *ret: none. A remote that fails or gives
 * wrong bytes is a warning, and is not asked again. The caller holds the key's lock. */
int store_pull(struct store *s, const char *kind, const char *key, const struct run *run, struct arena *a,
	       const char **ret, struct err *e) MUST_CHECK;
/* store_stage: a new private directory below tmp/, for regular files and directories; removed by
 * the next open if the process dies. */
int store_stage(struct store *s, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_publish: writes the manifest into `stage` and renames it to its place, durably; *ret is the
 * object's directory. If the object is there already the stage is dropped. ERR_CONFIG for a stage
 * that is empty or holds links or devices, ERR_INTEGRITY for a source that is not one file with the
 * key's digest; on failure the stage stays. */
int store_publish(struct store *s, const char *kind, const char *key, const char *stage, struct arena *a,
		  const char **ret, struct err *e) MUST_CHECK;
/* store_drop_stage: removes a stage that will not be published. */
void store_drop_stage(struct store *s, const char *stage);
/* store_lock: the exclusive lock of a key, held while it is made. */
int store_lock(struct store *s, const char *kind, const char *key, const struct run *run, struct lock *ret,
	       struct err *e) MUST_CHECK;
/* store_build_dir: the directory of the build tree of a compile key, created. */
int store_build_dir(struct store *s, const char *compile_key, struct arena *a, const char **ret,
		    struct err *e) MUST_CHECK;
/* store_list: all objects, sorted by kind and key, the worlds among them. */
int store_list(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count,
	       struct err *e) MUST_CHECK;
/* store_verify: hashes an object against its manifest; ERR_INTEGRITY names the file and both
 * digests. */
int store_verify(const struct store_object *o, const struct run *run, struct err *e) MUST_CHECK;
/* store_check_wheel: ERR_INTEGRITY unless the record in a wheel's object is about this key, and
 * names a file there. By digests such an object can be whole. */
int store_check_wheel(const char *dir, const char *key, struct err *e) MUST_CHECK;
/* store_quarantine: moves a damaged object below quarantine/. */
int store_quarantine(struct store *s, const struct store_object *o, struct err *e) MUST_CHECK;
/* store_remove: moves what lies at o->path below tmp/ and deletes it there, so that nobody sees it
 * half gone; its stamp goes as well. */
int store_remove(struct store *s, const struct store_object *o, struct err *e) MUST_CHECK;
