/* One try at one place: bytes into a partial file, hashed as they come. Part of the fetch step. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/run.h"

/* Of a file whose size nobody has said: several times the largest source archive and wheel there
 * are, so that a server that never ends does not fill the disk. */
#define TRANSFER_MAX_BYTES (2ULL << 30)

enum transfer_outcome {
	TRANSFER_DONE,  /* the partial file has the wanted digest */
	TRANSFER_RETRY, /* the same place may work later: connection broken, server in trouble */
	TRANSFER_NEXT,  /* this place does not have it: 404, bad URL, certificate refused */
	TRANSFER_WRONG, /* it came whole with another digest; the bytes are deleted */
	TRANSFER_STOP,  /* this machine's fault or the user's wish: disk full, interrupted */
};

/* What other threads may look at while a transfer runs. */
struct transfer_progress {
	/* bytes that came over the network or were copied, of all transfers */
	_Atomic uint64_t received;
	_Atomic uint64_t expected; /* the same, as far as the servers told the sizes */
};

struct transfer {
	/* http: or https: for transfer_http, an absolute path for transfer_copy */
	const char *url;
	const char *path;   /* the partial file: continued if it is there, made if not */
	const char *sha256; /* wanted; NULL: whatever comes */
	uint64_t max_bytes; /* 0 = TRANSFER_MAX_BYTES */
	unsigned stall_seconds;
	unsigned connect_seconds; /* 0 = stall_seconds */
	/* all of it may take so long, and a second more for each 64 KiB; 0: as long as it comes */
	unsigned slow_seconds;
	long *ret_status; /* the last HTTP status, 0 without an answer; may be NULL */
	const struct run *run;
	struct transfer_progress *progress;
};

/* transfer_http: what is in the partial file is hashed first: all there already is TRANSFER_DONE
 * without a request, else the rest is asked for by Range. A server that ignores the range or
 * answers another one, and a digest that is wrong after a continued transfer, start over from
 * nothing. Redirects: 10 at most, to http and https only, never from https to http. Certificates
 * are always checked. *ret_retry_after: seconds the server asked to wait, untouched if it did not.
 * Anything but TRANSFER_DONE sets `e`; the URL in it has no user name or password. */
enum transfer_outcome transfer_http(const struct transfer *t, unsigned *ret_retry_after, struct err *e) MUST_CHECK;
/* transfer_copy: the same from a regular file of this machine, always from the start. */
enum transfer_outcome transfer_copy(const struct transfer *t, struct err *e) MUST_CHECK;
/* transfer_check: whether the partial file, put there by other means, has the digest:
 * TRANSFER_DONE, TRANSFER_WRONG (deleted) or TRANSFER_STOP. */
enum transfer_outcome transfer_check(const struct transfer *t, struct err *e) MUST_CHECK;
/* transfer_shown_url: the URL without user name and password, for messages. */
char *transfer_shown_url(struct arena *a, const char *url) __attribute__((returns_nonnull));
