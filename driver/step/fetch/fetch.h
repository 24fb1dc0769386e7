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
	bool offline; /* only the store and file:// places */
	/* --mirror URL|DIR: tried first, as MIRROR/<sha256>/<name> and MIRROR/<name> */
	struct strlist mirrors;
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

/* fetch_all: makes every source present in the store, several at once, and sets `path`. Places are
 * tried in order, mirrors first: https:, http:, file:, an absolute path,
 * apt:SUITE/COMPONENT/SOURCE=VERSION. The bytes are hashed as they come into
 * <store>/partial/<sha256>, which a later run resumes by range. What may pass (no connection, a
 * broken or silent one, 408, 429 within a minute, 5xx) is tried again at the same place; what will
 * not (404, 403, 410, a refused certificate, more than 2 GiB) is not. Other bytes than the pinned
 * ones are deleted: a warning when a later place has the right ones, else ERR_INTEGRITY with both
 * digests. Nothing works: ERR_NETWORK with what each place said. --offline without the file:
 * ERR_NETWORK naming it and its digest. One source's failure does not stop the others: what came
 * stays in the store; the first failure in order is the error, the others are warnings. Two
 * processes that want one file download it once. ERR_CONFIG for a name that is no file name or a
 * digest that is none. */
int fetch_all(struct store *store, struct fetch_source *sources, size_t count, const struct fetch_options *o,
	      const struct run *run, struct arena *a, struct fetch_stats *ret, struct err *e) MUST_CHECK;
