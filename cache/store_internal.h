/* What the files of the store share; nobody else includes this. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/sys/json.h"
#include "cache/store.h"

#define STORE_MANIFEST ".manifest.json"
#define STORE_MANIFEST_MAX (UINT64_C(64) << 20)
#define STORE_FORMAT 1

struct stage { /* one that this handle made: its lock is open as long as it is ours */
	char *path;
	int fd;
};

struct store {
	char *dir;
	pthread_mutex_t mutex; /* of the stages and of `bad` */
	struct stage *stages;
	size_t stages_count;
	size_t stages_cap;
	char **lowers; /* directories of the stores below, first looked at first */
	size_t lowers_count;
	char **bad; /* objects that failed their check in this run */
	size_t bad_count;
	struct store_remote remote; /* get NULL: none */
	atomic_bool remote_dead;    /* it failed once */
	struct log log;             /* a copy without a status line, for warnings from any thread */
	int cancel_fd;
};

/* store_check_name: ERR_CONFIG unless kind and key are ones that may become a file name. */
int store_check_name(const char *kind, const char *key, struct err *e) MUST_CHECK;
/* store_object_path: "<dir>/objects/<kind>/<key>", of this store or one below. */
char *store_object_path(const char *store_dir, const char *kind, const char *key, struct arena *a);
/* store_check_format: that the file is one that this program knows; ERR_CONFIG. */
int store_check_format(const char *file, const char *dir, struct err *e) MUST_CHECK;
/* store_read_manifest: parsed and checked for the object it belongs to; ERR_INTEGRITY. The rows of
 * "files" are not looked at. New reference. */
int store_read_manifest(const char *kind, const char *key, const char *path, json_t **ret, struct err *e) MUST_CHECK;
/* store_check_source: ERR_INTEGRITY unless the list is one file with the key's digest. */
int store_check_source(const char *key, const json_t *files, struct err *e) MUST_CHECK;

/* A stamp says that an object was hashed and found right, and what its files looked like to stat(2)
 * then: as long as they do, it is not hashed again. Stamps of objects in lower stores carry the
 * time of their last use. */
char *store_stamp_path(const struct store *s, const char *kind, const char *key, struct arena *a);
/* store_stamp: after the object was made of files that were just hashed. */
void store_stamp(struct store *s, const char *kind, const char *key, const char *object);
/* store_is_usable: whether there is an object at that place (of this store or one below) and it is
 * what its manifest says, by its stamp or by hashing it. One that is not is named in a warning,
 * once a run. */
int store_is_usable(struct store *s, const char *kind, const char *key, const char *object, bool *ret,
		    struct err *e) MUST_CHECK;
/* store_forget_bad: something else is in that place now. */
void store_forget_bad(struct store *s, const char *object);
/* store_forget_stage: closes the lock of a stage and removes the lock file; the directory must be
 * gone or moved. */
void store_forget_stage(struct store *s, const char *stage);
/* store_discard: moves a directory of the store below tmp/ and deletes it there, so that nobody
 * sees it half gone. */
int store_discard(struct store *s, const char *path, struct err *e) MUST_CHECK;
/* store_touch: sets the modification time to now; a store that cannot be written stays as it is. */
void store_touch(const char *path);
