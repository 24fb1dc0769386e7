/* One source from its places, in order, until one gives the pinned bytes. Part of the fetch
 * step. */
#pragma once
#include <pthread.h>

#include "step/fetch/fetch.h"
#include "step/fetch/fetch_transfer.h"

/* What all sources of one fetch_all share. */
struct fetch_shared {
	struct store *store;
	/* around apt-get: one at a time in this process, the lock files are for others */
	pthread_mutex_t apt;
	/* around the store and apt_dir: a store handle serves one thread at a time */
	pthread_mutex_t mutex;
	const struct fetch_options *o; /* zeros replaced by the defaults */
	/* where apt-get leaves the files of this run; NULL until the first one */
	const char *apt_dir;
	struct arena arena;              /* for apt_dir */
	struct transfer_progress amount; /* moved so far */
};

/* One thread of it. */
struct fetch_worker {
	struct fetch_shared *shared;
	/* its own, since a log serves one thread; into a pipe that the caller's thread drains */
	struct log log;
	struct run run;
};

/* fetch_places: leaves the bytes in `partial`, checked. A place with other bytes costs a warning
 * when a later one has the right ones. ERR_INTEGRITY when a place had other bytes and none the
 * right ones, ERR_NETWORK when none had it, with what each one said; ERR_SYSTEM and ERR_INTERRUPTED
 * at once. */
int fetch_places(struct fetch_worker *w, const struct fetch_source *s, const char *partial, struct err *e) MUST_CHECK;
