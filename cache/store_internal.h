/* What the files of the store share; nobody else includes this. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "cache/store.h"

#define STORE_MANIFEST ".manifest.json"
#define STORE_FORMAT 1

struct stage { /* one that this handle made: its lock is open as long as it is ours */
	char *path;
	int fd;
};

struct store {
	char *dir;
	pthread_mutex_t mutex; /* of the stages */
	struct stage *stages;
	size_t stages_count;
	size_t stages_cap;
};

/* store_check_name: ERR_CONFIG unless kind and key are ones that may become a file name. */
int store_check_name(const char *kind, const char *key, struct err *e) MUST_CHECK;
/* store_object_path: "<dir>/objects/<kind>/<key>". */
char *store_object_path(const struct store *s, const char *kind, const char *key, struct arena *a);
/* store_forget_stage: closes the lock of a stage and removes the lock file; the directory must be gone or moved. */
void store_forget_stage(struct store *s, const char *stage);
/* store_discard: moves a directory of the store below tmp/ and deletes it there, so that nobody sees it half gone. */
int store_discard(struct store *s, const char *path, struct err *e) MUST_CHECK;
/* store_touch: sets the modification time to now; a store that cannot be written stays as it is. */
void store_touch(const char *path);
