/* A redis server, through hiredis. Its sockets do not block, so that the end of the build ends every wait. */
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

enum { CONNECT_MS = 5000, WAIT_MS = 10000, REPLY_SECONDS = 60 };

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

/* At most RESP_MAX_VALUE bytes, and not an array: hiredis itself has no limits. */
static int read_reply(struct ccache_client *c, redisReply **out, struct err *e)
{
	redisReader *r = c->redis->reader;
	double until = log_seconds() + REPLY_SECONDS;
	void *reply = NULL;
	while (!reply) {
		if (ccache_wait(c->redis->fd, c->server->stop, POLLIN, WAIT_MS) < 0)
			return failed(c, "read from", e);
		if (redisBufferRead(c->redis) != REDIS_OK)
			return err_set(e, ERR_NETWORK, "compiler cache: cannot read from '%s': %s", c->server->shown,
				       c->redis->errstr);
		if (redisReaderGetReply(r, &reply) != REDIS_OK ||
		    (!reply && (r->ridx > 0 || r->len > RESP_MAX_VALUE + REDIS_READER_MAX_BUF)))
			return not_redis(c, e);
		if (!reply && log_seconds() > until) {
			errno = ETIMEDOUT;
			return failed(c, "read from", e);
		}
	}
	*out = reply;
	return 0;
}

/* *ret_reply: for freeReplyObject. An error reply is -1, in the server's words. */
static int exchange(struct ccache_client *c, int count, const char **words, const size_t *lens, redisReply **ret_reply,
		    struct err *e)
{
	char *command = NULL;
	redisReply *reply;
	long long len = redisFormatCommandArgv(&command, count, words, lens);
	if (len < 0)
		abort(); /* only memory can be missing */
	int rc = ccache_send(c->redis->fd, c->server->stop, command, (size_t)len, WAIT_MS);
	redisFreeCommand(command);
	if (rc < 0)
		return failed(c, "send to", e);
	if (read_reply(c, &reply, e) < 0)
		return -1;
	if (reply->type == REDIS_REPLY_ERROR)
		rc = err_set(e, ERR_NETWORK, "compiler cache: '%s' says: %.200s", c->server->shown, reply->str);
	else if (reply->type == REDIS_REPLY_ARRAY || c->redis->reader->pos != c->redis->reader->len)
		rc = not_redis(c, e);
	else
		*ret_reply = reply;
	if (rc < 0)
		freeReplyObject(reply);
	return rc;
}

static int log_in(struct ccache_client *c, struct err *e)
{
	const struct ccache_server *s = c->server;
	const char *auth[] = {"AUTH", s->user ? s->user : s->password, s->password}, *select[] = {"SELECT", s->db};
	redisReply *reply = NULL;
	if (s->password && exchange(c, s->user ? 3 : 2, auth, NULL, &reply, e) < 0)
		return -1;
	freeReplyObject(reply);
	reply = NULL;
	if (s->db && exchange(c, 2, select, NULL, &reply, e) < 0)
		return -1;
	freeReplyObject(reply);
	return 0;
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

static int ask(struct ccache_client *c, int count, const char **words, const size_t *lens, redisReply **ret_reply,
	       struct err *e)
{
	for (;;) {
		bool old = false;
		if (connect_client(c, &old, e) == 0 && exchange(c, count, words, lens, ret_reply, e) == 0)
			return 0;
		bool canceled = errno == ECANCELED;
		hang_up(c);
		if (!old || canceled)
			return -1;
	}
}

int ccache_redis_get(struct ccache_client *c, const char *key, struct buf *out, bool *ret_found, struct err *e)
{
	char name[RESP_MAX_KEY + sizeof(RESP_KEY_PREFIX)];
	const char *words[] = {"GET", name};
	redisReply *reply;
	snprintf(name, sizeof(name), RESP_KEY_PREFIX "%s", key);
	if (ask(c, 2, words, NULL, &reply, e) < 0)
		return -1;
	*ret_found = reply->type == REDIS_REPLY_STRING;
	if (*ret_found)
		buf_add(out, reply->str, (size_t)reply->len);
	int rc = *ret_found || reply->type == REDIS_REPLY_NIL ? 0 : not_redis(c, e);
	freeReplyObject(reply);
	if (rc < 0)
		hang_up(c);
	return rc;
}

int ccache_redis_put(struct ccache_client *c, const char *key, const void *data, size_t len, struct err *e)
{
	char name[RESP_MAX_KEY + sizeof(RESP_KEY_PREFIX)];
	const char *words[] = {"SET", name, data};
	redisReply *reply;
	const size_t lens[] = {3, (size_t)snprintf(name, sizeof(name), RESP_KEY_PREFIX "%s", key), len};
	if (ask(c, 3, words, lens, &reply, e) < 0)
		return -1;
	freeReplyObject(reply);
	return 0;
}
