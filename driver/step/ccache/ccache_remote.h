/* The compiler cache's remote storage, for a build that has no network. A socket in a directory
 * that the sandbox shows; on it this program speaks as much of redis' protocol as ccache needs (GET
 * and SET of ccache's keys and nothing else, so that a build cannot do more to the server), and
 * asks for the build: the caches of lower stores, then a redis or a web server. The server's
 * address and password stay out of the sandbox, the record, the logs and the keys. A server that is
 * dead or slow costs hits, never the build. */
#pragma once
#include <stdint.h>

#include "base/run.h"
#include "base/strlist.h"

struct ccache_remote;

struct ccache_remote_request {
	/* redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], redis+unix:PATH, http://..., https://...
	 * (files as ccache's own "subdirs" layout has them); NULL: only the lower ones */
	const char *url;
	struct strlist lower; /* directories of compiler caches that are only read */
	const char *dir;      /* private directory for the socket */
};

/* CCACHE_REMOTE_SOCKET: the socket's name in `dir`. */
#define CCACHE_REMOTE_SOCKET "s"

struct ccache_remote_stats {
	uint64_t asked;    /* GETs of the build */
	uint64_t lower;    /* of them: found in a lower store */
	uint64_t hits;     /* of them: found on the server */
	uint64_t stored;   /* given to the server */
	uint64_t failures; /* times the server failed */
};

/* ccache_remote_check: ERR_USAGE for an address that is none of the above; no password is in the
 * message. */
int ccache_remote_check(const char *url, struct err *e) MUST_CHECK;
/* ccache_remote_start: opens the socket and serves it from threads of its own; the server is not
 * asked before the build asks. */
int ccache_remote_start(const struct ccache_remote_request *q, const struct run *run, struct ccache_remote **ret,
			struct err *e) MUST_CHECK;
/* ccache_remote_stop: at once, also while the server hangs. `stats` may be NULL. NULL is fine. */
void ccache_remote_stop(struct ccache_remote *r, struct ccache_remote_stats *stats);
