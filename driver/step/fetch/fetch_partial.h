/* The partial file of a download and the running digest of its bytes. */
#pragma once
#include "base/run.h"
#include "base/sys/digest.h"

struct partial {
	const char *path;
	int fd;
	struct digest *digest; /* over the first `have` bytes */
	uint64_t have;
	uint64_t max; /* the file may not grow beyond */
};

#define PARTIAL_NONE ((struct partial){.fd = -1})

/* partial_open: opens or creates the file (links are refused), empties it if longer than `max` or
 * if no digest is wanted (NULL), and hashes it; *ret_complete: it is the wanted file. Keeps the
 * pointer `path`. */
int partial_open(struct partial *p, const char *path, const char *sha256, uint64_t max, const struct run *run,
		 bool *ret_complete, struct err *e) MUST_CHECK;
/* partial_add: writes and hashes; the caller checks `max`. */
int partial_add(struct partial *p, const void *data, size_t len, struct err *e) MUST_CHECK;
/* partial_restart: empties it. */
int partial_restart(struct partial *p, struct err *e) MUST_CHECK;
/* partial_matches: finishes the digest and compares; only restart, delete and close may follow. */
bool partial_matches(struct partial *p, const char *sha256, char ret_got[DIGEST_HEX_LEN + 1]);
int partial_delete(struct partial *p, struct err *e) MUST_CHECK;
void partial_close(struct partial *p);

#define AUTO_PARTIAL CLEANUP(partial_close)
