/* What the files of the store share; nobody else includes this. */
#pragma once
#include <stdatomic.h>

#include "base/sys/json.h"
#include "cache/store.h"

#define STORE_MANIFEST ".manifest.json"
#define STORE_MANIFEST_MAX (UINT64_C(64) << 20)
#define STORE_FORMAT 1
#define STORE_WORLD_FACTS "world.json"
#define STORE_WORLD_MANIFEST "manifest"

struct stage { /* one that this handle made and holds the lock of */
	char *path;
	int fd;
};

struct store {
	char *dir;
	pthread_mutex_t mutex; /* of the arena, the stages and `bad` */
	struct arena arena;
	struct stage *stages;
	size_t stages_count;
	size_t stages_cap;
	struct strlist fallbacks; /* directories of the fallback stores, in their order */
	struct strlist bad;       /* objects that failed their check in this run */
	struct run run;           /* that it was opened with */
	store_get_fn *remote;     /* NULL: none */
	const char *remote_url;
	atomic_bool remote_dead; /* it failed once */
	bool read_only;          /* nothing in `dir` can be made or changed */
};

/* Names and places (store.c), which call nothing of the others. */
/* store_check_name: ERR_CONFIG unless kind and key may become file names. */
int store_check_name(const char *kind, const char *key, struct err *e) MUST_CHECK;
/* store_object_path: of any store, by its directory. */
char *store_object_path(const char *store_dir, const char *kind, const char *key, struct arena *a);
char *store_stamp_path(const struct store *s, const char *kind, const char *key, struct arena *a);
char *store_lock_path(const struct store *s, const char *kind, const char *key, struct arena *a);
/* store_touch: sets the modification time to now, if the store can be written. */
void store_touch(const char *path);

/* store_remove_dead_stages: those below `dir`/tmp whose owners have ended. */
int store_remove_dead_stages(const char *dir, const struct run *run, struct err *e) MUST_CHECK;
/* store_forget_stage: releases and removes the lock of a stage whose directory is gone or moved. */
void store_forget_stage(struct store *s, const char *stage);

/* store_read_manifest: the manifest of that object, from `path`; ERR_INTEGRITY. The rows of "files"
 * are not checked. New reference. */
int store_read_manifest(const struct store_object *o, const char *path, json_t **ret,
			struct err *e) MUST_CHECK;
/* store_check_source: ERR_INTEGRITY unless the list is one file with the key's digest. */
int store_check_source(const char *key, const json_t *files, struct err *e) MUST_CHECK;

/* store_check_extra: ERR_INTEGRITY for a path below `top` that is not in the list, which is
 * sorted. */
int store_check_extra(const char *top, const struct strlist *known, struct err *e) MUST_CHECK;

/* store_stamp: records what stat(2) shows of an object's files, which were just hashed: until that
 * changes they are not hashed again. For an object of a fallback store the stamp's time is its last
 * use. */
void store_stamp(struct store *s, const struct store_object *o);
/* store_is_usable: whether a whole object or world is at o->path (also of a fallback store), by
 * its stamp or by hashing it: 1 or 0. A damaged one is a warning, once a run. */
int store_is_usable(struct store *s, const struct store_object *o, enum store_look look,
		    struct err *e) MUST_CHECK;

/* store_find_look: store_find, looking at a world in this way. */
int store_find_look(struct store *s, const char *kind, const char *key, enum store_look look,
		    struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* store_world_facts: ERR_INTEGRITY unless the facts of this world are there, and its root. */
int store_world_facts(const char *key, const char *dir, struct err *e) MUST_CHECK;

/* store_put_in_place: renames the stage to o->path, or drops it where a whole object is already.
 * Anything else that is there, without a manifest or damaged, goes to the quarantine. */
int store_put_in_place(struct store *s, const struct store_object *o, const char *stage,
		       struct err *e) MUST_CHECK;

/* A growing list of objects. */
struct store_objects {
	struct arena *arena;
	struct store_object *items;
	size_t count, cap;
};

struct store_object *store_objects_next(struct store_objects *l) __attribute__((returns_nonnull));
/* store_objects_add: adds the object at o->path, with its size. Its time of use is that of the file
 * `manifest` in it, or its own (NULL). Leaves out what another process deletes meanwhile. */
int store_objects_add(struct store_objects *l, const struct store_object *o, const char *manifest,
		      struct err *e) MUST_CHECK;
/* store_print_stat: appends what a stamp says of a file. */
void store_print_stat(const char *rel, const struct stat *st, struct buf *ret);
/* store_world_print: appends to `ret` what a stamp says of a world: its facts, and what lstat(2)
 * shows of its manifest and of each directory in it or, `whole`, of each path. False when something
 * cannot be read. */
bool store_world_print(const char *object, bool whole, struct buf *ret);
/* store_world_bytes: what a world says of its size; false when it cannot be read. */
bool store_world_bytes(const char *key, const char *dir, uint64_t *ret);
