/* Fetch: sources into the store. The only step with a network. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/run.h"
#include "base/strlist.h"

struct store;

struct fetch_source {
	const char *name; /* file name */
	const char *sha256;
	struct strlist urls; /* in order */
	const char *path;    /* result: the file in the store */
};

struct fetch_options {
	bool offline;           /* only the store and file:// places */
	struct strlist mirrors; /* --mirror URL|DIR: tried first, as MIRROR/<sha256>/<name> and MIRROR/<name> */
	unsigned parallel;      /* 0 = 4 */
	unsigned retries;       /* per place; 0 = 4 */
	unsigned backoff_ms;    /* first pause, doubled each time, at most 30 s; 0 = 500 */
	unsigned stall_seconds; /* no byte for so long is a broken connection; 0 = 30 */
};

struct fetch_stats {
	unsigned from_store, downloaded;
	uint64_t bytes;
	double seconds;
};

/* fetch_all: makes every source present in the store, several at once, resuming broken ones by range, and sets `path`. The bytes are hashed as they come. A wrong digest: the bytes are deleted, both digests named, ERR_INTEGRITY.
 * Nothing works: ERR_NETWORK with what each place said. --offline without the file: ERR_NETWORK naming it and its digest. */
int fetch_all(struct store *store, struct fetch_source *sources, size_t count, const struct fetch_options *o, const struct run *run,
	      struct arena *a, struct fetch_stats *ret, struct err *e) MUST_CHECK;
