/* The store: content-addressed objects, each a directory published whole. See cache/FORMAT.md. */
#pragma once
#include "base/sys/file_lock.h"

/* Kinds of object. A source's key is the sha256 of its file; a wheel's is the output key. */
#define STORE_SOURCE "source"
#define STORE_WHEEL "wheel"
#define STORE_RECORD "build.json" /* of a wheel, beside it */
#define STORE_PYENV "pyenv"       /* Python requirements, key = digest of the locked list */

/* A root file system, with links, and rules of its own: see below. */
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
int store_open(const char *dir, const struct run *run, struct store **ret,
	       struct err *e) MUST_CHECK;
/* store_look: opens a store for reading only. Opens a store that this user cannot write, or that is
 * on a read-only file system, as it is, with any owner; any other like store_open. ERR_CONFIG also
 * for a directory without a format file, if none can be written. */
int store_look(const char *dir, const struct run *run, struct store **ret,
	       struct err *e) MUST_CHECK;
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
int store_find(struct store *s, const char *kind, const char *key, struct arena *a,
	       const char **ret, struct err *e) MUST_CHECK;
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

/* -1: this machine failed or the user stopped it. */
typedef int store_get_fn(const char *url, const struct store_want *w, const struct run *run,
			 enum store_got *ret, struct err *e);
void store_set_remote(struct store *s, store_get_fn *get, const char *url);
bool store_has_remote(const struct store *s);
/* store_pull: what store_find did not find, from the remote store into this one, every file checked
 * against its manifest, a source against its key; NULL in *ret: none. A remote that fails or gives
 * wrong bytes is a warning, and is not asked again. The caller holds the key's lock. */
int store_pull(struct store *s, const char *kind, const char *key, const struct run *run,
	       struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_stage: a new private directory below tmp/, for regular files and directories; removed by
 * the next open if the process dies. */
int store_stage(struct store *s, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_publish: writes the manifest into `stage` and renames it to its place, durably; *ret is the
 * object's directory. If the object is there already the stage is dropped. ERR_CONFIG for a stage
 * that is empty or holds links or devices, ERR_INTEGRITY for a source that is not one file with the
 * key's digest; on failure the stage stays. */
int store_publish(struct store *s, const char *kind, const char *key, const char *stage,
		  struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_drop_stage: removes a stage that will not be published. */
void store_drop_stage(struct store *s, const char *stage);
/* store_lock: the exclusive lock of a key, held while it is made. */
int store_lock(struct store *s, const char *kind, const char *key, const struct run *run,
	       struct lock *ret, struct err *e) MUST_CHECK;
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
/* store_remove: moves o->path below tmp/ and deletes it there, so that nobody sees half of it; also
 * deletes its stamp. */
int store_remove(struct store *s, const struct store_object *o, struct err *e) MUST_CHECK;

/* The contents of a store by kind, and what may be removed: least recently used first. */

/* Kinds beside those of objects. */
#define GC_PARTIAL "partial"       /* broken downloads */
#define GC_QUARANTINE "quarantine" /* key: its name there */
#define GC_CCACHE "ccache"         /* the compiler cache's files */
#define GC_APT "apt"               /* package lists, which stores of earlier versions have */

#define GC_GRACE_SECONDS 3600 /* what the program leaves to who just used it */

struct gc_options {
	int64_t keep_seconds;  /* what was not used for so long goes; -1: age removes nothing */
	int64_t max_bytes;     /* the store is brought down to so much; -1: no limit */
	int64_t grace_seconds; /* what was used within so long stays */
	int64_t now;           /* seconds since the epoch; 0 = the clock's */
	bool dry_run;          /* only say what would go */
	const char *kind;      /* only this kind is looked at; NULL: all */
	/* what goes whatever its age, if grace_seconds allow it; NULL: nothing */
	bool (*unwanted)(void *user, const struct store_object *o);
	void *user;
};

struct gc_result {
	/* the compiler cache is one of these, with the key "N files" */
	struct store_object *removed;
	size_t count;
	uint64_t removed_bytes;
	uint64_t kept_bytes;
	size_t kept;
	size_t busy;  /* of the kept: those whose lock is held */
	size_t young; /* of the kept: those that would go, but were used within grace_seconds */
};

/* store_gc: removes what was not used for keep_seconds, then, oldest first, until max_bytes holds:
 * objects, build trees, broken downloads, the quarantine (by the time things came there), package
 * lists, files of the compiler cache. What is locked stays, and so do fallback stores. */
int store_gc(struct store *s, const struct gc_options *o, const struct run *run, struct arena *a,
	     struct gc_result *ret, struct err *e) MUST_CHECK;

struct store_usage {
	const char *kind;
	size_t count;
	uint64_t bytes;
	int64_t oldest; /* the earliest of the last uses */
};

/* store_usage: a row per kind, objects first; kinds that have nothing are left out. */
int store_usage(struct store *s, const struct run *run, struct arena *a, struct store_usage **ret,
		size_t *ret_count, struct err *e) MUST_CHECK;
/* store_list_builds: the kept build trees, kind "build". */
int store_list_builds(struct store *s, struct arena *a, struct store_object **ret,
		      size_t *ret_count, struct err *e) MUST_CHECK;

/* All objects of a store hashed again, several at once. */

enum store_fate { STORE_WRONG_KEPT, STORE_WRONG_MOVED, STORE_WRONG_BUSY };

struct store_check { /* a damaged or unreadable object */
	struct store_object object;
	struct err why; /* ERR_INTEGRITY: it is damaged; else it could not be read */
	enum store_fate fate;
};

struct store_checks {
	struct store_check *items; /* the wrong ones, in the order of store_list */
	size_t wrong;
	size_t checked;
	uint64_t bytes;
};

/* store_verify_all: hashes all objects of this store in `threads` threads. With `move` the damaged
 * ones go to the quarantine, unless somebody holds their lock. Objects that go away meanwhile are
 * left out. -1 only when the check as a whole fails. */
int store_verify_all(struct store *s, bool move, unsigned threads, const struct run *run,
		     struct arena *a, struct store_checks *ret, struct err *e) MUST_CHECK;

/* Worlds in the store: complete root file systems, with links, which no other object has. Each is
 * in worlds/<key> as `root`, its `manifest`, and `world.json`, which is written last and whose time
 * is that of the last use. store_list, store_verify, store_remove and store_gc know them as objects
 * of the kind STORE_WORLD. */

struct store_world {
	const char *key;
	const char *name, *platform; /* "debian13", "x86_64-linux" */
	const char *tree;            /* sha256 of the manifest */
	uint64_t bytes;              /* of all its files, so that a list need not look at each */
};

#define STORE_WORLD_ROOT "root"

/* How closely a world is looked at. One that looks other than when it was last checked is checked
 * against its manifest; of the facts alone nothing is. */
enum store_look {
	STORE_LOOK_FACTS, /* that it is there */
	STORE_LOOK_DIRS,  /* which show all but what is written into a file in place */
	STORE_LOOK_WHOLE, /* each path, to run its programs */
};

/* store_world_find: the root of a published world, here or in a fallback store; NULL in *ret:
 * none. Marks it used. A damaged one is a warning and counts as none, and store_world_publish moves
 * it to the quarantine. */
int store_world_find(struct store *s, const char *key, enum store_look look, struct arena *a,
		     const char **ret, struct err *e) MUST_CHECK;
/* store_world_hold: a shared lock, with which garbage collection leaves a world alone. Waits for
 * who makes it. */
int store_world_hold(struct store *s, const char *key, const struct run *run, struct lock *ret,
		     struct err *e) MUST_CHECK;
/* store_world_publish: `stage` has the tree as `root`; *ret is it at its place. Its manifest is the
 * text whose sha256 is w->tree: lines as cache/FORMAT.md says. All is on the disk before the
 * directory is renamed to its place. If a world is there already the stage is dropped. */
int store_world_publish(struct store *s, const struct store_world *w, const struct buf *manifest,
			const char *stage, struct arena *a, const char **ret,
			struct err *e) MUST_CHECK;
/* store_world_verify: for store_verify: ERR_INTEGRITY says what is missing, changed or extra. */
int store_world_verify(const struct store_object *o, const struct run *run,
		       struct err *e) MUST_CHECK;
