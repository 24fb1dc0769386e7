/* One source from its places, in order, until one gives the pinned bytes. */
#pragma once
#include <pthread.h>

#include "step/fetch/fetch.h"
#include "step/fetch/fetch_transfer.h"

/* What all sources of one fetch_all share. */
struct fetch_shared {
	struct store *store;
	pthread_mutex_t apt;             /* held around apt-get: one at a time */
	pthread_mutex_t mutex;           /* protects store, stage_dir and arena */
	pthread_mutex_t index_mutex;     /* protects index and index_known */
	const struct fetch_options *o;   /* defaults filled in */
	const char *stage_dir;           /* what apt-get and pip downloaded; NULL before */
	const char *index;               /* the named Python index; NULL: none */
	bool index_known;                /* it was looked for */
	struct arena arena;              /* for stage_dir */
	struct arena index_arena;        /* for index */
	struct transfer_progress amount; /* moved so far */
};

/* One thread of it. */
struct fetch_worker {
	struct fetch_shared *shared;
	struct log log; /* into a pipe that the caller's thread drains */
	struct run run;
};

/* fetch_http: transfer_http, again after a pause where that may help. `name` is for messages. */
enum transfer_outcome fetch_http(struct fetch_worker *w, const struct transfer *t, const char *name,
				 struct err *e) MUST_CHECK;
/* fetch_place_dir: a directory of this run for what another program downloads from `place`, in
 * which it finds what it downloaded before. */
int fetch_place_dir(struct fetch_worker *w, struct arena *a, const char *place, const char **ret,
		    struct err *e) MUST_CHECK;
/* fetch_take: puts a file that another program downloaded in the place of the partial one and
 * checks it. */
enum transfer_outcome fetch_take(const struct transfer *t, const char *file, struct err *e) MUST_CHECK;
/* fetch_wheel: from the Python index: t->url is "NAME==VERSION/FILE". */
enum transfer_outcome fetch_wheel(struct fetch_worker *w, const struct transfer *t, struct err *e) MUST_CHECK;
/* fetch_places: leaves the checked bytes in `partial`. ERR_INTEGRITY when a place had other bytes
 * and none the right ones, ERR_NETWORK when none had any, with what each said; *ret_gone: each said
 * for certain that it has no such file (404, 410, no such path). */
int fetch_places(struct fetch_worker *w, const struct fetch_source *s, const char *partial, bool *ret_gone,
		 struct err *e) MUST_CHECK;
