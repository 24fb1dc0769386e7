/* The compiler cache's remote storage for a build without a network. The sandbox shows a socket, on
 * which this program answers GET of ccache's own keys in redis' protocol: from the shared compiler
 * cache, then from a redis or web server. It accepts a SET and ignores it: a build's objects are in
 * its own cache until they are promoted. The server's address and password stay out of the sandbox,
 * records, logs and keys. A dead or slow server costs hits, never the build. */
#pragma once
#include <curl/curl.h>

#include "base/buf.h"
#include "base/run.h"
#include "base/strlist.h"

/* The shared compiler cache: objects that finished builds compiled, in directories that no build is
 * shown. Each domain and package has a directory of its own; an entry is in it as "<two
 * digits>/<rest of ccache's key>" and is never replaced. But ccache adds to its manifests (other
 * headers, another result), so a manifest has several: "<rest>-<scope>", never replaced, from a
 * build of that scope; "<rest>-<group>" the newest of the group's scopes; "<rest>" the first of
 * all. A scope fixes all inputs of a build (its compile key), a group are the builds of the same
 * sources. */

#define CCACHE_DEFAULT_DOMAIN "default"
/* The longest name of an entry in its place. */
enum { CCACHE_MAX_NAME = 192, CCACHE_TAG_LEN = 16 /* of a scope or group */ };

struct ccache_place {
	const char *dir;
	bool own;   /* of this store: the times of use are kept */
	bool plain; /* the layout of ccache's own directory; builds could write there */
};

struct ccache_shared {
	struct ccache_place *places; /* asked one after the other */
	size_t count;
	const char *scope, *group; /* NULL: none */
};

/* ccache_domain_parse: "NAME[:READ...]": what a build compiles is kept under NAME (NULL if that is
 * empty: nowhere), and read from all of `ret_read`, NAME among them. ERR_USAGE. */
int ccache_domain_parse(const char *text, struct arena *a, const char **ret_keep,
			struct strlist *ret_read, struct err *e) MUST_CHECK;
/* ccache_is_manifest: of an entry's bytes. */
bool ccache_is_manifest(const void *data, size_t len);
/* ccache_name: an entry's name in its place; `tag` is a scope, a group or NULL. */
void ccache_name(const char *key, const char *tag, char ret[CCACHE_MAX_NAME]);
/* ccache_shared_get: appends the entry to `out`; NULL if no place has it. *ret_own: it is a
 * manifest of the scope, or a result. */
const struct ccache_place *ccache_shared_get(const struct ccache_shared *s, const char *key,
					     struct buf *out, bool *ret_own);

struct ccache_promote_request {
	/* ccache's directory of one build: `front` below `top`, which it cannot replace */
	const char *top, *front;
	const char *place; /* made if missing */
	const char *scope, *group;
	/* an empty directory on the place's file system, which may be left filled */
	const char *stage;
	uint64_t max_bytes;    /* what is taken at most */
	const struct run *run; /* where to log, and how the user stops it */
};

struct ccache_promoted {
	/* of the new entries in the place, a manifest's with its scope */
	struct strlist names;
	uint64_t bytes;
	/* what is not as ccache makes it: links, FIFOs, other files under an entry's name */
	size_t refused;
};

/* ccache_promote: the entries that a build made and the place has not, into the place, each whole
 * or not at all, durably. It is for a build that is over. */
int ccache_promote(const struct ccache_promote_request *q, struct arena *a,
		   struct ccache_promoted *ret, struct err *e) MUST_CHECK;
struct ccache_relay;

struct ccache_relay_request {
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

struct ccache_relay_stats {
	uint64_t asked; /* GETs of the build */
	/* what they found: in the store, in fallback stores, on the server */
	uint64_t own, lower, hits;
	uint64_t remote_hits; /* of the last two: results, not manifests */
	uint64_t failures;    /* times the server failed */
};

/* ccache_relay_check: ERR_USAGE for a malformed address, without its password. */
int ccache_relay_check(const char *url, struct err *e) MUST_CHECK;
/* ccache_relay_start: serves the socket from threads; the server is asked when the build asks.
 * What `prefixes` and `shared` point to must live until the stop. */
int ccache_relay_start(const struct ccache_relay_request *q, const struct run *run,
		       struct ccache_relay **ret, struct err *e) MUST_CHECK;
/* ccache_relay_stop: at once, even if the server hangs. Both may be NULL. */
void ccache_relay_stop(struct ccache_relay *r, struct ccache_relay_stats *stats);

struct ccache_send {
	const char *url, *prefix, *place, *group;
	struct strlist names; /* of entries of the place, as ccache_promote gives them */
};

/* ccache_relay_send: to the server, unless it has them or is only read; a manifest under its three
 * names. *ret_sent: how many. */
int ccache_relay_send(const struct ccache_send *q, const struct run *run, size_t *ret_sent,
		      struct err *e) MUST_CHECK;

/* The server behind the compiler cache's remote storage. */

enum ccache_server_kind { CCACHE_REDIS, CCACHE_REDIS_UNIX, CCACHE_HTTP };

/* An exchange may last that long at most, however busy the other side seems. */
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
	int stop;                    /* readable once every wait must end; -1: never */
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

/* ccache_server_parse: reads what --ccache-remote accepts. *ret has copies, which
 * ccache_server_release frees. ERR_USAGE for another address; the message hides the password. */
int ccache_server_parse(const char *url, struct ccache_server *ret, struct err *e) MUST_CHECK;
void ccache_server_release(struct ccache_server *s);
/* ccache_client_get: adds the value to `out`: 1; 0: no such key. `out` NULL asks only whether it
 * is there. -1: the server failed. */
int ccache_client_get(struct ccache_client *c, const char *name, struct buf *out,
		      struct err *e) MUST_CHECK;
struct ccache_value {
	const void *data;
	size_t len;
	bool replace; /* false: not over a value that is there, which is no error */
};

int ccache_client_put(struct ccache_client *c, const char *name, const struct ccache_value *v,
		      struct err *e) MUST_CHECK;
void ccache_client_close(struct ccache_client *c);

/* ccache_wait: until the socket is ready for `events`, at most `ms` (-1: for ever); -1 with errno,
 * ETIMEDOUT, or ECANCELED once `stop` is readable. ccache_send: all the bytes, waiting likewise. */
int ccache_wait(int fd, int stop, short events, int ms) MUST_CHECK;
int ccache_send(int fd, int stop, const void *data, size_t len, int ms) MUST_CHECK;

/* Reading what ccache sends to its remote storage: commands of redis' protocol (RESP), each an
 * array of strings. The bytes come out of the sandbox, so every limit is checked before anything is
 * kept. */

enum { RESP_MAX_ARGS = 4, RESP_MAX_KEY = 128 };
#define RESP_KEY_PREFIX "ccache:"
#define RESP_MAX_VALUE ((size_t)256 << 20) /* an object of more is not worth a network */

struct resp_command {
	struct {
		const char *data; /* into the bytes that were parsed */
		size_t len;
	} args[RESP_MAX_ARGS];
	size_t count;
	size_t used; /* bytes of the whole command */
};

enum resp_state { RESP_MORE, RESP_DONE, RESP_BAD };

/* resp_parse: the command that the bytes start with. RESP_MORE: it is not complete yet. */
enum resp_state resp_parse(const char *data, size_t len, struct resp_command *ret);
/* resp_is: whether the command is `word`, in upper or lower case. */
bool resp_is(const struct resp_command *c, const char *word);
/* resp_key: the ccache key in the command's first argument; false if that is not RESP_KEY_PREFIX
 * with lower-case letters and digits behind it. */
bool resp_key(const struct resp_command *c, char ret[RESP_MAX_KEY]);
