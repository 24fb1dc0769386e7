#include "step/ccache/ccache_relay.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/path.h"

enum { CONNECT_SECONDS = 5, STALL_SECONDS = 10, STALL_BYTES = 1024 };

struct body {
	struct buf *out;  /* NULL: only the status is asked for */
	const char *data; /* what is sent */
	size_t left;
	bool replace;
	long status; /* of the answer */
};

static size_t on_body(char *data, size_t unit, size_t count, void *user)
{
	struct body *b = user;
	size_t len = unit * count;

	if (b->out->len + len > RESP_MAX_VALUE)
		return len ? 0 : 1;
	buf_add(b->out, data, len);
	return len;
}

static size_t on_send(char *to, size_t unit, size_t count, void *user)
{
	struct body *b = user;
	size_t n = unit * count < b->left ? unit * count : b->left;

	memcpy(to, b->data, n);
	b->data += n;
	b->left -= n;
	return n;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct ccache_server *s = user;
	struct pollfd p = {.fd = s->stop, .events = POLLIN};

	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return poll(&p, 1, 0) > 0;
}

static int request(struct ccache_client *c, const char *name, struct body *body, struct err *e)
{
	AUTO_BUF struct buf url = {0};
	char words[CURL_ERROR_SIZE] = "";

	if (!c->curl && !(c->curl = curl_easy_init()))
		abort(); /* only memory can be missing */
	CURL *h = c->curl;
	curl_easy_reset(h);
	buf_printf(&url, "%s/%s", c->server->url, name);
	curl_easy_setopt(h, CURLOPT_URL, buf_cstr(&url));
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, words);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "ptbuild/" PTBUILD_VERSION);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
	curl_easy_setopt(h, CURLOPT_TIMEOUT, (long)CCACHE_EXCHANGE_SECONDS);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, c->server);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, body);
	if (!body->out)
		curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
	struct curl_slist *headers = NULL;
	if (body->data) {
		if (!body->replace && !(headers = curl_slist_append(NULL, "If-None-Match: *")))
			abort();
		curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(h, CURLOPT_READFUNCTION, on_send);
		curl_easy_setopt(h, CURLOPT_READDATA, body);
		curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)body->left);
	}

	CURLcode rc = curl_easy_perform(h);
	curl_slist_free_all(headers);
	if (rc != CURLE_OK)
		return err_set(e, ERR_NETWORK, "compiler cache: '%s': %s", c->server->shown,
			       words[0] ? words : curl_easy_strerror(rc));
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &body->status);
	return 0;
}

static int ccache_http_get(struct ccache_client *c, const char *name, struct buf *out,
			   struct err *e)
{
	AUTO_BUF struct buf bytes = {0};
	struct body body = {.out = out ? &bytes : NULL};

	if (request(c, name, &body, e) < 0)
		return -1;
	const long status = body.status;
	if (status != 200 && status != 404 && status != 410)
		return err_set(e, ERR_NETWORK, "compiler cache: http status %ld from '%s'", status,
			       c->server->shown);
	if (status == 200 && out)
		buf_add(out, bytes.data, bytes.len);
	return status == 200;
}

/* The two kinds. */
static int ccache_http_put(struct ccache_client *c, const char *name, const struct ccache_value *v,
			   struct err *e)
{
	AUTO_BUF struct buf ignored = {0};
	struct body body = {
		.out = &ignored, .data = v->data, .left = v->len, .replace = v->replace};

	if (request(c, name, &body, e) < 0)
		return -1;
	const long status = body.status;
	if ((status < 200 || status > 299) && status != 412)
		return err_set(e, ERR_NETWORK, "compiler cache: http status %ld from '%s'", status,
			       c->server->shown);
	return 0;
}

/* A redis server, through hiredis on sockets that do not
 * block, so that the end of the build ends every wait. */
#define REDIS_PREFIX "ptbuild:"
enum { CONNECT_MS = 5000, WAIT_MS = 10000 };

static int failed(const struct ccache_client *c, const char *what, struct err *e)
{
	return err_errno(e, ERR_NETWORK, "compiler cache: cannot %s '%s'", what, c->server->shown);
}

static int not_redis(const struct ccache_client *c, struct err *e)
{
	return err_set(e, ERR_NETWORK, "compiler cache: '%s' does not answer like redis",
		       c->server->shown);
}

static void hang_up(struct ccache_client *c)
{
	if (c->redis)
		redisFree(c->redis);
	c->redis = NULL;
}

/* One reply, not an array and at most RESP_MAX_VALUE
 * bytes: hiredis has no limits. NULL: an error. */
static redisReply *read_reply(struct ccache_client *c, struct err *e)
{
	redisReader *r = c->redis->reader;
	double until = log_seconds() + CCACHE_EXCHANGE_SECONDS;
	void *reply = NULL;

	while (!reply) {
		errno = ETIMEDOUT;
		if (log_seconds() > until ||
		    ccache_wait(c->redis->fd, c->server->stop, POLLIN, WAIT_MS) < 0) {
			failed(c, "read from", e);
			return NULL;
		}

		if (redisBufferRead(c->redis) != REDIS_OK) {
			err_set(e, ERR_NETWORK, "compiler cache: cannot read from '%s': %s",
				c->server->shown, c->redis->errstr);
			return NULL;
		}

		if (redisReaderGetReply(r, &reply) != REDIS_OK ||
		    (!reply && (r->ridx > 0 || r->len > RESP_MAX_VALUE + REDIS_READER_MAX_BUF))) {
			not_redis(c, e);
			return NULL;
		}
	}

	return reply;
}

struct redis_command {
	int count;
	const char **words;
	const size_t *lens; /* NULL: all words are text */
};

/* The reply, for freeReplyObject; NULL for an error, also one that the server reports. */
static redisReply *exchange(struct ccache_client *c, struct redis_command q, struct err *e)
{
	char *command = NULL;

	long long len = redisFormatCommandArgv(&command, q.count, q.words, q.lens);
	if (len < 0)
		abort(); /* only memory can be missing */
	int rc = ccache_send(c->redis->fd, c->server->stop, command, (size_t)len, WAIT_MS);
	redisFreeCommand(command);
	if (rc < 0)
		failed(c, "send to", e);
	redisReply *reply = rc < 0 ? NULL : read_reply(c, e);
	if (!reply)
		return NULL;
	if (reply->type == REDIS_REPLY_ERROR)
		err_set(e, ERR_NETWORK, "compiler cache: '%s' says: %.200s", c->server->shown,
			reply->str);
	else if (reply->type == REDIS_REPLY_ARRAY || c->redis->reader->pos != c->redis->reader->len)
		not_redis(c, e);
	else
		return reply;
	freeReplyObject(reply);
	return NULL;
}

static int log_in(struct ccache_client *c, struct err *e)
{
	const struct ccache_server *s = c->server;
	const char *auth[] = {"AUTH", s->user ? s->user : s->password, s->password},
		   *select[] = {"SELECT", s->db};
	const struct redis_command auth_command = {.count = s->user ? 3 : 2, .words = auth};
	const struct redis_command select_command = {.count = 2, .words = select};
	redisReply *first = s->password ? exchange(c, auth_command, e) : NULL;
	bool good = first || !s->password;
	redisReply *second = good && s->db ? exchange(c, select_command, e) : NULL;

	good = good && (second || !s->db);
	freeReplyObject(first);
	freeReplyObject(second);
	return good ? 0 : -1;
}

static int connect_new(struct ccache_client *c, struct err *e)
{
	const struct ccache_server *s = c->server;
	int error = 0;
	socklen_t size = sizeof(error);

	c->redis = s->kind == CCACHE_REDIS_UNIX ? redisConnectUnixNonBlock(s->path)
						: redisConnectNonBlock(s->host, s->port);
	if (!c->redis)
		abort();
	if (c->redis->err)
		return err_set(e, ERR_NETWORK, "compiler cache: cannot connect to '%s': %s",
			       s->shown, c->redis->errstr);
	if (fcntl(c->redis->fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    ccache_wait(c->redis->fd, s->stop, POLLOUT, CONNECT_MS) < 0 ||
	    getsockopt(c->redis->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return failed(c, "connect to", e);
	errno = error;
	return error ? failed(c, "connect to", e) : log_in(c, e);
}

/* *ret_old: a connection that was used before, which the server may have closed since. */
static int connect_client(struct ccache_client *c, bool *ret_old, struct err *e)
{
	struct ccache_server *s = c->server;

	pthread_mutex_lock(&s->mutex);
	if (!c->redis && s->idle_count)
		c->redis = s->idle[--s->idle_count];
	pthread_mutex_unlock(&s->mutex);
	*ret_old = c->redis != NULL;
	return c->redis ? 0 : connect_new(c, e);
}

static redisReply *ask(struct ccache_client *c, struct redis_command q, struct err *e)
{
	for (;;) {
		bool old = false;
		redisReply *reply = connect_client(c, &old, e) < 0 ? NULL : exchange(c, q, e);
		if (reply)
			return reply;
		bool canceled = errno == ECANCELED;
		hang_up(c);
		if (!old || canceled)
			return NULL;
	}
}

static int ccache_redis_get(struct ccache_client *c, const char *name, struct buf *out,
			    struct err *e)
{
	AUTO_BUF struct buf key = {0};

	buf_printf(&key, REDIS_PREFIX "%s", name);
	const char *words[] = {out ? "GET" : "EXISTS", buf_cstr(&key)};
	redisReply *reply = ask(c, (struct redis_command){.count = 2, .words = words}, e);
	if (!reply)
		return -1;
	const bool found = out ? reply->type == REDIS_REPLY_STRING
			       : reply->type == REDIS_REPLY_INTEGER && reply->integer;
	if (found && out)
		buf_add(out, reply->str, (size_t)reply->len);
	int rc = found || reply->type == (out ? REDIS_REPLY_NIL : REDIS_REPLY_INTEGER)
			 ? 0
			 : not_redis(c, e);
	freeReplyObject(reply);
	if (rc < 0)
		hang_up(c);
	return rc < 0 ? -1 : found;
}

static int ccache_redis_put(struct ccache_client *c, const char *name, const struct ccache_value *v,
			    struct err *e)
{
	AUTO_BUF struct buf key = {0};

	buf_printf(&key, REDIS_PREFIX "%s", name);
	const char *words[] = {"SET", buf_cstr(&key), v->data, "NX"};
	const size_t lens[] = {3, key.len, v->len, 2};
	redisReply *reply = ask(c, (struct redis_command){v->replace ? 3 : 4, words, lens}, e);
	freeReplyObject(reply);
	return reply ? 0 : -1;
}

enum { REDIS_PORT = 6379 };
#define READ_ONLY "|read-only" /* as ccache writes it */

static bool starts(const char *s, const char *prefix)
{
	return strncasecmp(s, prefix, strlen(prefix)) == 0;
}

static int refuse(const char *what, struct err *e)
{
	err_set(e, ERR_USAGE, "--ccache-remote: %s", what);
	return err_hint(
		e, "give redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], redis+unix:PATH, http://... "
		   "or https://..., with '|read-only' after it if nothing is to be sent there");
}

static char *decoded(const char *text, size_t len, struct arena *a)
{
	int n = 0;
	char *plain = curl_easy_unescape(NULL, text, (int)len, &n);
	char *copy = plain ? arena_strndup(a, plain, (size_t)n) : NULL;

	curl_free(plain);
	return copy;
}

/* "[[USER:]PASSWORD@]HOST[:PORT][/DB]" */
static int parse_redis(const char *rest, struct ccache_server *s, struct err *e)
{
	const char *slash = strchr(rest, '/'), *end = slash ? slash : rest + strlen(rest);
	const char *at = end;

	while (at > rest && at[-1] != '@')
		at--;
	at = at > rest ? at - 1 : NULL;
	if (at) {
		const char *colon = memchr(rest, ':', (size_t)(at - rest));
		if (colon && colon > rest)
			s->user = decoded(rest, (size_t)(colon - rest), &s->arena);
		const char *start = colon ? colon + 1 : rest;
		s->password = decoded(start, (size_t)(at - start), &s->arena);
		rest = at + 1;
	}

	const char *bracket = *rest == '[' ? memchr(rest, ']', (size_t)(end - rest)) : NULL;
	const char *colon =
		memchr(bracket ? bracket : rest, ':', (size_t)(end - (bracket ? bracket : rest)));
	const char *host_end = colon ? colon : end;
	if (bracket)
		s->host = arena_strndup(&s->arena, rest + 1, (size_t)(bracket - rest - 1));
	else
		s->host = arena_strndup(&s->arena, rest, (size_t)(host_end - rest));
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	s->port = colon ? atoi(colon + 1) : REDIS_PORT;
	if (!*s->host || digits > 5 || s->port < 1 || s->port > UINT16_MAX ||
	    (colon && colon + 1 + digits != end))
		return refuse("a redis address needs a host, and its port is a number up to 65535",
			      e);
	if (slash && slash[1]) {
		if (strspn(slash + 1, "0123456789") != strlen(slash + 1))
			return refuse("a redis address ends with the number of its database", e);
		s->db = arena_strdup(&s->arena, slash + 1);
	}

	s->shown = arena_printf(&s->arena, "redis://%s:%d", s->host, s->port);
	return 0;
}

static int parse(const char *url, struct ccache_server *s, struct err *e)
{
	if (starts(url, "redis+unix:")) {
		const char *path = url + strlen("redis+unix:");
		while (path[0] == '/' && path[1] == '/')
			path++;
		if (*path != '/')
			return refuse("redis+unix: needs the absolute path of a socket", e);
		s->kind = CCACHE_REDIS_UNIX;
		s->path = arena_strdup(&s->arena, path);
		s->shown = arena_printf(&s->arena, "redis+unix:%s", path);
		return 0;
	}

	if (starts(url, "redis://")) {
		s->kind = CCACHE_REDIS;
		return parse_redis(url + strlen("redis://"), s, e);
	}

	if (starts(url, "http://") || starts(url, "https://")) {
		s->kind = CCACHE_HTTP;
		CURLU *u = curl_url();
		char *host = NULL, *scheme = NULL;
		bool good = u && !strpbrk(url, "?#") &&
			    curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
			    curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
			    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK;
		if (good) {
			s->url = path_join(&s->arena, url, "");
			s->shown = arena_printf(&s->arena, "%s://%s", scheme, host);
		}

		curl_free(host);
		curl_free(scheme);
		curl_url_cleanup(u);
		return good ? 0 : refuse("not an address of a web server", e);
	}

	return refuse(starts(url, "rediss:") ? "redis over TLS is not supported"
					     : "an unknown kind of address",
		      e);
}

int ccache_server_parse(const char *url, struct ccache_server *ret, struct err *e)
{
	struct ccache_server s = {.stop = -1};
	const char *mode = strrchr(url, '|');

	s.read_only = mode && strcmp(mode, READ_ONLY) == 0;
	if (s.read_only)
		url = arena_strndup(&s.arena, url, (size_t)(mode - url));
	if ((mode && !s.read_only ? refuse("the only suffix of an address is '" READ_ONLY "'", e)
				  : parse(url, &s, e)) < 0) {
		arena_release(&s.arena);
		return -1;
	}

	pthread_mutex_init(&s.mutex, NULL);
	*ret = s;
	return 0;
}

void ccache_server_release(struct ccache_server *s)
{
	for (size_t i = 0; i < s->idle_count; i++)
		redisFree(s->idle[i]);
	pthread_mutex_destroy(&s->mutex);
	arena_release(&s->arena);
	*s = (struct ccache_server){.stop = -1};
}

int ccache_wait(int fd, int stop, short events, int ms)
{
	struct pollfd p[] = {{.fd = fd, .events = events}, {.fd = stop, .events = POLLIN}};
	int n;

	do {
		n = poll(p, 2, ms);
	} while (n < 0 && errno == EINTR);
	if (n > 0 && !p[1].revents)
		return 0;
	if (n >= 0)
		errno = n == 0 ? ETIMEDOUT : ECANCELED;
	return -1;
}

int ccache_send(int fd, int stop, const void *data, size_t len, int ms)
{
	double until = log_seconds() + CCACHE_EXCHANGE_SECONDS;

	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, (const char *)data + done, len - done,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EINTR &&
		    (errno != EAGAIN || ccache_wait(fd, stop, POLLOUT, ms) < 0))
			return -1;
		done += n > 0 ? (size_t)n : 0;
		if (log_seconds() > until) { /* a peer that reads a byte now and then */
			errno = ETIMEDOUT;
			return -1;
		}
	}

	return 0;
}

int ccache_client_get(struct ccache_client *c, const char *name, struct buf *out, struct err *e)
{
	return c->server->kind == CCACHE_HTTP ? ccache_http_get(c, name, out, e)
					      : ccache_redis_get(c, name, out, e);
}

int ccache_client_put(struct ccache_client *c, const char *name, const struct ccache_value *v,
		      struct err *e)
{
	return c->server->kind == CCACHE_HTTP ? ccache_http_put(c, name, v, e)
					      : ccache_redis_put(c, name, v, e);
}

/* Connections are kept for the next client: ccache makes a new one for each compilation. */
void ccache_client_close(struct ccache_client *c)
{
	struct ccache_server *s = c->server;

	pthread_mutex_lock(&s->mutex);
	if (c->redis && s->idle_count < CCACHE_IDLE_MAX) {
		s->idle[s->idle_count++] = c->redis;
		c->redis = NULL;
	}

	pthread_mutex_unlock(&s->mutex);
	if (c->redis)
		redisFree(c->redis);
	c->redis = NULL;
	curl_easy_cleanup(c->curl);
	c->curl = NULL;
}
