/* Fetch: sources into the store. The only step that uses the network. */
#pragma once
#include "core/tables/tables.h"

struct store;

struct fetch_source {
	const char *name; /* file name */
	const char *sha256;
	uint64_t max_bytes;  /* a place that has more is cut there; 0: TRANSFER_MAX_BYTES */
	struct strlist urls; /* in order */
	const char *path;    /* result: the file in the store */
	/* result, also of a failure: every place said for certain that it has no such file */
	bool gone;
};

/* fetch_source_of: a source of a package's table. */
struct fetch_source fetch_source_of(const struct source_row *row, struct arena *a);
/* fetch_has: whether the store (NULL: there is none) has the file. */
bool fetch_has(struct store *store, const char *sha256);

struct fetch_options {
	bool offline; /* only the store and file:// places */
	/* --mirror URL|DIR: as MIRROR/<sha256>/<name> and MIRROR/<name> */
	struct strlist mirrors;
	/* --archive NAME=URL, and a file of lines "NAME URL", '#' begins a comment; NULL, or not
	 * there: none */
	struct strlist archives;
	const char *archives_file;
	bool any_site;          /* of apt_sites */
	unsigned parallel;      /* 0 = 4 */
	unsigned retries;       /* per place; 0 = 4 */
	unsigned backoff_ms;    /* first pause, doubled each time, at most 30 s; 0 = 500 */
	unsigned stall_seconds; /* without a byte until the connection counts as broken; 0 = 30 */
	/* for the whole, plus a second for each 4 KiB; 0 = 300 */
	unsigned slow_seconds;
};

struct fetch_stats {
	unsigned from_store, downloaded;
	uint64_t bytes;
	double seconds;
};

/* fetch_all: puts every source into the store, several at once, and sets `path`.
 * - Places are tried in order, mirrors first: https:, http:, file:, an absolute path,
 *   wheel:NAME==VERSION/FILE (the Python index that the machine names, else pip's own),
 *   deb:ARCHIVE/PATH (the addresses of archives_find, those of ARCHIVE-snapshot last).
 * - Bytes are hashed as they come into <store>/partial/<sha256>, which a later run resumes.
 * - A place is tried again after a broken or silent connection, 408, 429 and 5xx.
 * - Bytes with another digest are deleted: a warning if a later place has the right ones, else
 *   ERR_INTEGRITY with both digests. ERR_NETWORK with what each place said if none has the file.
 * - A host that gave no connection in any try of a file is not asked again.
 * - A failure does not stop the other sources; the first one is the error, others are warnings, of
 *   which the first few are told.
 * - Two processes that want the same file download it once.
 * ERR_CONFIG for a bad file name or digest. */
int fetch_all(struct store *store, struct fetch_source *sources, size_t count, const struct fetch_options *o,
	      const struct run *run, struct arena *a, struct fetch_stats *ret, struct err *e) MUST_CHECK;
/* fetch_latest: a file whose digest nobody knows as it is now at a deb: place, at most `max` bytes,
 * in the store by its digest. ERR_NETWORK offline, and as fetch_all. */
int fetch_latest(struct store *store, const char *place, uint64_t max, const struct fetch_options *o,
		 const struct run *run, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* fetch_page: the same of a page at a URL, asked for as the media type `accept` (NULL: any). */
int fetch_page(struct store *store, const char *url, const char *accept, uint64_t max, const struct fetch_options *o,
	       const struct run *run, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
