/* One source from its places, in order, until one gives the pinned bytes. */
#pragma once
#include <pthread.h>

#include "step/fetch/fetch.h"
#include "step/fetch/fetch_transfer.h"

/* What all sources of one fetch_all share. */
struct fetch_shared {
	struct store *store;
	pthread_mutex_t apt;             /* held around apt-get: one at a time */
	pthread_mutex_t mutex;           /* protects store and apt_dir */
	const struct fetch_options *o;   /* defaults filled in */
	const char *apt_dir;             /* what apt-get downloaded in this run; NULL before */
	struct arena arena;              /* for apt_dir */
	struct transfer_progress amount; /* moved so far */
};

/* One thread of it. */
struct fetch_worker {
	struct fetch_shared *shared;
	struct log log; /* into a pipe that the caller's thread drains */
	struct run run;
};

/* fetch_places: leaves the checked bytes in `partial`. ERR_INTEGRITY when a place had other bytes
 * and none the right ones, ERR_NETWORK when none had any, with what each said. */
int fetch_places(struct fetch_worker *w, const struct fetch_source *s, const char *partial, struct err *e) MUST_CHECK;
