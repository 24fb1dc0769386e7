/* A redis server, through hiredis on sockets that do not block, so that the end of the build ends every wait. */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "step/ccache/ccache_resp.h"
#include "step/ccache/ccache_server.h"

#define REDIS_PREFIX "ptbuild:"
enum { CONNECT_MS = 5000, WAIT_MS = 10000 };

static int failed(const struct ccache_client *c, const char *what, struct err *e)
{
	return err_errno(e, ERR_NETWORK, "compiler cache: cannot %s '%s'", what, c->server->shown);
}

static int not_redis(const struct ccache_client *c, struct err *e)
{
	return err_set(e, ERR_NETWORK, "compiler cache: '%s' does not answer like redis", c->server->shown);
}

static void hang_up(struct ccache_client *c)
{
	if (c->redis)
		redisFree(c->redis);
	c->redis = NULL;
}

/* One reply, not an array and at most RESP_MAX_VALUE bytes: hiredis has no limits. NULL: an error. */
static redisReply *read_reply(struct ccache_client *c, struct err *e)
{
	redisReader *r = c->redis->reader;
	double until = log_seconds() + CCACHE_EXCHANGE_SECONDS;
	void *reply = NULL;
	while (!reply) {
		errno = ETIMEDOUT;
		if (log_seconds() > until || ccache_wait(c->redis->fd, c->server->stop, POLLIN, WAIT_MS) < 0) {
			failed(c, "read from", e);
			return NULL;
		}
		if (redisBufferRead(c->redis) != REDIS_OK) {
			err_set(e, ERR_NETWORK, "compiler cache: cannot read from '%s': %s", c->server->shown,
				c->redis->errstr);
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

/* The reply, for freeReplyObject; NULL for an error, also one that the server reports. */
static redisReply *exchange(struct ccache_client *c, int count, const char **words, const size_t *lens, struct err *e)
{
	char *command = NULL;
	long long len = redisFormatCommandArgv(&command, count, words, lens);
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
		err_set(e, ERR_NETWORK, "compiler cache: '%s' says: %.200s", c->server->shown, reply->str);
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
	const char *auth[] = {"AUTH", s->user ? s->user : s->password, s->password}, *select[] = {"SELECT", s->db};
	redisReply *first = s->password ? exchange(c, s->user ? 3 : 2, auth, NULL, e) : NULL;
	bool good = first || !s->password;
	redisReply *second = good && s->db ? exchange(c, 2, select, NULL, e) : NULL;
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
		return err_set(e, ERR_NETWORK, "compiler cache: cannot connect to '%s': %s", s->shown,
			       c->redis->errstr);
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

static redisReply *ask(struct ccache_client *c, int count, const char **words, const size_t *lens, struct err *e)
{
	for (;;) {
		bool old = false;
		redisReply *reply = connect_client(c, &old, e) < 0 ? NULL : exchange(c, count, words, lens, e);
		if (reply)
			return reply;
		bool canceled = errno == ECANCELED;
		hang_up(c);
		if (!old || canceled)
			return NULL;
	}
}

int ccache_redis_get(struct ccache_client *c, const char *name, struct buf *out, bool *ret_found, struct err *e)
{
	AUTO_BUF struct buf key = {0};
	buf_printf(&key, REDIS_PREFIX "%s", name);
	const char *words[] = {out ? "GET" : "EXISTS", buf_cstr(&key)};
	redisReply *reply = ask(c, 2, words, NULL, e);
	if (!reply)
		return -1;
	*ret_found = out ? reply->type == REDIS_REPLY_STRING : reply->type == REDIS_REPLY_INTEGER && reply->integer;
	if (*ret_found && out)
		buf_add(out, reply->str, (size_t)reply->len);
	int rc = *ret_found || reply->type == (out ? REDIS_REPLY_NIL : REDIS_REPLY_INTEGER) ? 0 : not_redis(c, e);
	freeReplyObject(reply);
	if (rc < 0)
		hang_up(c);
	return rc;
}

int ccache_redis_put(struct ccache_client *c, const char *name, const void *data, size_t len, bool replace,
		     struct err *e)
{
	AUTO_BUF struct buf key = {0};
	buf_printf(&key, REDIS_PREFIX "%s", name);
	const char *words[] = {"SET", buf_cstr(&key), data, "NX"};
	const size_t lens[] = {3, key.len, len, 2};
	redisReply *reply = ask(c, replace ? 3 : 4, words, lens, e);
	freeReplyObject(reply);
	return reply ? 0 : -1;
}
