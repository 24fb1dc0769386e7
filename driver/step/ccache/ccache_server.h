/* The server behind the compiler cache's remote storage. */
#pragma once
#include <curl/curl.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum ccache_server_kind { CCACHE_REDIS, CCACHE_REDIS_UNIX, CCACHE_HTTP };

/* An exchange takes at most that long, however busy the other side seems. */
enum { CCACHE_IDLE_MAX = 32, CCACHE_EXCHANGE_SECONDS = 60 };

struct ccache_server {
	enum ccache_server_kind kind;
	struct arena arena;
	const char *shown; /* for messages */
	const char *url;   /* HTTP */
	const char *host, *path;
	int port;
	const char *user, *password; /* NULL: none */
	const char *db;              /* NULL: the first */
	bool read_only;              /* "|read-only" behind the address: nothing is sent to it */
	int stop;                    /* readable once every wait must end; -1: there is none */
	pthread_mutex_t mutex;
	struct redisContext *idle[CCACHE_IDLE_MAX]; /* connections that are not in use */
	size_t idle_count;
};

/* A thread's connection to it. */
struct ccache_client {
	struct ccache_server *server;
	struct redisContext *redis; /* NULL: not connected */
	CURL *curl;                 /* HTTP; NULL until used */
};

/* ccache_server_parse: ERR_USAGE, without the password. */
int ccache_server_parse(const char *url, struct ccache_server *ret, struct err *e) MUST_CHECK;
void ccache_server_release(struct ccache_server *s);
/* ccache_client_get: adds the value to `out` if *ret_found; `out` NULL asks only whether it is
 * there. -1: the server failed. */
int ccache_client_get(struct ccache_client *c, const char *name, struct buf *out, bool *ret_found,
		      struct err *e) MUST_CHECK;
/* ccache_client_put: `replace` false: not over a value that is there, which is no error. */
int ccache_client_put(struct ccache_client *c, const char *name, const void *data, size_t len, bool replace,
		      struct err *e) MUST_CHECK;
void ccache_client_close(struct ccache_client *c);

/* ccache_wait: until the socket is ready for `events`, at most `ms` (-1: for ever); -1 with errno,
 * ETIMEDOUT, or ECANCELED once `stop` is readable. ccache_send: all the bytes, waiting likewise. */
int ccache_wait(int fd, int stop, short events, int ms) MUST_CHECK;
int ccache_send(int fd, int stop, const void *data, size_t len, int ms) MUST_CHECK;
