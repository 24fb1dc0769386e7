/* The compiler cache's remote storage for a build without a network. The sandbox shows a socket, on
 * which this program answers GET and SET of ccache's own keys in redis' protocol, and nothing else:
 * from the caches of lower stores, then from a redis or web server. Its address and password stay
 * out of the sandbox, records, logs and keys. A dead or slow server costs hits, never the build. */
#pragma once
#include <stdint.h>

#include "base/run.h"
#include "base/strlist.h"

struct ccache_remote;

struct ccache_remote_request {
	/* redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], redis+unix:PATH, http(s)://... (ccache's
	 * "subdirs" layout); NULL: none */
	const char *url;
	struct strlist lower; /* compiler caches that are only read */
	const char *dir;      /* private directory for the socket */
	uint64_t max_held;    /* bytes that all connections together may hold; 0: 512 MiB */
};

#define CCACHE_REMOTE_SOCKET "s" /* in `dir` */

struct ccache_remote_stats {
	uint64_t asked;    /* GETs of the build */
	uint64_t lower;    /* of them: found in a lower store */
	uint64_t hits;     /* of them: found on the server */
	uint64_t stored;   /* given to the server */
	uint64_t failures; /* times the server failed */
};

/* ccache_remote_check: ERR_USAGE for a malformed address, without its password. */
int ccache_remote_check(const char *url, struct err *e) MUST_CHECK;
/* ccache_remote_start: serves the socket from threads; the server is asked when the build asks. */
int ccache_remote_start(const struct ccache_remote_request *q, const struct run *run, struct ccache_remote **ret,
			struct err *e) MUST_CHECK;
/* ccache_remote_stop: at once, even if the server hangs. Both may be NULL. */
void ccache_remote_stop(struct ccache_remote *r, struct ccache_remote_stats *stats);
