#include "step/ccache/ccache_server.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/strlist.h"

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
		e, "give redis://[[USER:]PASSWORD@]HOST[:PORT][/DB], redis+unix:PATH, http://... or https://..., with "
		   "'|read-only' behind it if nothing is to be sent there");
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
	const char *colon = memchr(bracket ? bracket : rest, ':', (size_t)(end - (bracket ? bracket : rest)));
	const char *host_end = colon ? colon : end;
	if (bracket)
		s->host = arena_strndup(&s->arena, rest + 1, (size_t)(bracket - rest - 1));
	else
		s->host = arena_strndup(&s->arena, rest, (size_t)(host_end - rest));
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	s->port = colon ? atoi(colon + 1) : REDIS_PORT;
	if (!*s->host || (colon && (digits < 1 || digits > 5 || colon + 1 + digits != end)))
		return refuse("a redis address needs a host, and its port is a number", e);
	if (slash && slash[1]) {
		if (strspn(slash + 1, "0123456789") != strlen(slash + 1))
			return refuse("a redis address ends with the number of its database", e);
		s->db = arena_strdup(&s->arena, slash + 1);
	}
	s->shown = arena_printf(&s->arena, "redis://%s:%d", s->host, s->port);
	return 0;
}

static int parse_http(const char *url, struct ccache_server *s, struct err *e)
{
	CURLU *u = curl_url();
	char *host = NULL, *scheme = NULL;
	bool good = u && !strpbrk(url, "?#") && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
		    curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
		    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK;
	if (good) {
		size_t len = strlen(url);
		while (len && url[len - 1] == '/')
			len--;
		s->url = arena_strndup(&s->arena, url, len);
		s->shown = arena_printf(&s->arena, "%s://%s", scheme, host);
	}
	curl_free(host);
	curl_free(scheme);
	curl_url_cleanup(u);
	return good ? 0 : refuse("not an address of a web server", e);
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
		return parse_http(url, s, e);
	}
	return refuse(starts(url, "rediss:") ? "redis over TLS is not supported" : "an unknown kind of address", e);
}

int ccache_server_parse(const char *url, struct ccache_server *ret, struct err *e)
{
	struct ccache_server s = {.stop = -1};
	const char *mode = strrchr(url, '|');
	s.read_only = mode && strcmp(mode, READ_ONLY) == 0;
	if (s.read_only)
		url = arena_strndup(&s.arena, url, (size_t)(mode - url));
	if ((mode && !s.read_only ? refuse("the only word behind an address is '" READ_ONLY "'", e)
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
		ssize_t n = send(fd, (const char *)data + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EINTR && (errno != EAGAIN || ccache_wait(fd, stop, POLLOUT, ms) < 0))
			return -1;
		done += n > 0 ? (size_t)n : 0;
		if (log_seconds() > until) { /* who takes a byte now and then */
			errno = ETIMEDOUT;
			return -1;
		}
	}
	return 0;
}

int ccache_client_get(struct ccache_client *c, const char *name, struct buf *out, bool *ret_found, struct err *e)
{
	return c->server->kind == CCACHE_HTTP ? ccache_http_get(c, name, out, ret_found, e)
					      : ccache_redis_get(c, name, out, ret_found, e);
}

int ccache_client_put(struct ccache_client *c, const char *name, const void *data, size_t len, bool replace,
		      struct err *e)
{
	return c->server->kind == CCACHE_HTTP ? ccache_http_put(c, name, data, len, replace, e)
					      : ccache_redis_put(c, name, data, len, replace, e);
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
