/* The compiler cache's remote storage for a build without a network. The sandbox shows a socket, on
 * which this program answers GET of ccache's own keys in redis' protocol: from the shared compiler
 * cache, then from a redis or web server. A SET is taken and forgotten: what a build made lies in
 * its own cache until it is promoted. The server's address and password stay out of the sandbox,
 * records, logs and keys. A dead or slow server costs hits, never the build. */
#pragma once
#include "step/ccache/ccache_shared.h"

struct ccache_remote;

struct ccache_remote_request {
	/* redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], redis+unix:PATH, http(s)://..., each perhaps
	 * with "|read-only"; NULL: none */
	const char *url;
	/* what is asked there: names are "<one of these>/<name in its place>" */
	struct strlist prefixes;
	struct ccache_shared shared;
	const char *dir;   /* private directory for the socket */
	uint64_t max_held; /* bytes that all connections together may hold; 0: 512 MiB */
};

#define CCACHE_REMOTE_SOCKET "s" /* in `dir` */

struct ccache_remote_stats {
	uint64_t asked; /* GETs of the build */
	/* what they found: in the store, in fallback stores, on the server */
	uint64_t own, lower, hits;
	uint64_t remote_hits; /* of the last two: results, not manifests */
	uint64_t failures;    /* times the server failed */
};

/* ccache_remote_check: ERR_USAGE for a malformed address, without its password. */
int ccache_remote_check(const char *url, struct err *e) MUST_CHECK;
/* ccache_remote_start: serves the socket from threads; the server is asked when the build asks. */
int ccache_remote_start(const struct ccache_remote_request *q, const struct run *run, struct ccache_remote **ret,
			struct err *e) MUST_CHECK;
/* ccache_remote_stop: at once, even if the server hangs. Both may be NULL. */
void ccache_remote_stop(struct ccache_remote *r, struct ccache_remote_stats *stats);

struct ccache_send {
	const char *url, *prefix, *place, *group;
	struct strlist names; /* of entries of the place, as ccache_promote gives them */
};

/* ccache_remote_send: to the server, unless it has them or is only read; a manifest under its three
 * names. *ret_sent: how many. */
int ccache_remote_send(const struct ccache_send *q, const struct run *run, size_t *ret_sent, struct err *e) MUST_CHECK;
