/* One try at one place: bytes into a partial file, hashed as they come. */
#pragma once
#include <stdatomic.h>

#include "base/arena.h"
#include "base/run.h"

/* Several times the largest source archive or wheel: an endless answer must not fill the disk. */
#define TRANSFER_MAX_BYTES (2ULL << 30)

enum transfer_outcome {
	TRANSFER_DONE,  /* the partial file has the wanted digest */
	TRANSFER_RETRY, /* the same place may work later: connection broken, server in trouble */
	TRANSFER_NEXT,  /* this place does not have it: 404, bad URL, certificate refused */
	TRANSFER_WRONG, /* it came whole with another digest; the bytes are deleted */
	TRANSFER_STOP,  /* this machine's fault or the user's wish: disk full, interrupted */
};

/* Bytes of all transfers, for other threads to read. */
struct transfer_progress {
	_Atomic uint64_t received;
	_Atomic uint64_t expected; /* as far as servers announced sizes */
};

/* Open connections, for one thread: a server is asked for its next file over the same one. */
struct transfer_client;

struct transfer {
	const char *url;    /* an absolute path for transfer_copy */
	const char *path;   /* the partial file, which may exist */
	const char *sha256; /* wanted; NULL: any, never resumed */
	const char *accept; /* media type to ask for; NULL: any */
	uint64_t max_bytes; /* 0 = TRANSFER_MAX_BYTES */
	unsigned stall_seconds;
	unsigned connect_seconds; /* 0 = stall_seconds */
	/* limit for the whole, plus a second for each `slow_rate` bytes; 0: none */
	unsigned slow_seconds;
	unsigned slow_rate;
	bool *ret_unreached;            /* no connection came about; may be NULL */
	long *ret_status;               /* the last HTTP status, 0 without an answer; may be NULL */
	struct transfer_client *client; /* NULL: a connection of its own */
	const struct run *run;
	struct transfer_progress *progress;
};

struct transfer_client *transfer_client_new(void) __attribute__((returns_nonnull));
/* transfer_client_free: closes its connections; NULL is fine. */
void transfer_client_free(struct transfer_client *c);

/* transfer_http: a complete partial file is TRANSFER_DONE without a request, else the rest is asked
 * for by Range. A wrong range, or a wrong digest after a resumed transfer, starts over.
 * Certificates are checked; at most 10 redirects, never from https to http. *ret_retry_after:
 * seconds that the server asked to wait, else untouched. Other outcomes set `e`, with the URL's
 * password left out. */
enum transfer_outcome transfer_http(const struct transfer *t, unsigned *ret_retry_after, struct err *e) MUST_CHECK;
/* transfer_copy: the same from a regular file, always from its start. */
enum transfer_outcome transfer_copy(const struct transfer *t, struct err *e) MUST_CHECK;
/* transfer_check: checks a file that came by other means: TRANSFER_DONE, TRANSFER_WRONG (deleted)
 * or TRANSFER_STOP. */
enum transfer_outcome transfer_check(const struct transfer *t, struct err *e) MUST_CHECK;
/* transfer_authorities: the file of certificates to check servers by: $SSL_CERT_FILE,
 * $CURL_CA_BUNDLE, else the first of the places where systems keep it; NULL: libcurl's own. */
const char *transfer_authorities(void);
/* transfer_shown_url: the URL for messages, without user name and password. */
char *transfer_shown_url(struct arena *a, const char *url) __attribute__((returns_nonnull));
/* transfer_escaped: a path percent-encoded but for its slashes. */
char *transfer_escaped(const char *path, struct arena *a) __attribute__((returns_nonnull));
