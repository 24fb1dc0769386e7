#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "step/ccache/ccache_resp.h"
#include "step/ccache/ccache_server.h"

enum { CONNECT_MS = 5000, WAIT_MS = 10000, CHUNK = 64 * 1024 };

/* Until the socket is ready: -1 with errno, ETIMEDOUT when it took too long, ECANCELED when all must end. */
static int wait_ready(const struct ccache_server *s, int fd, short events, int ms)
{
	struct pollfd p[] = {{.fd = fd, .events = events}, {.fd = s->stop, .events = POLLIN}};
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

static int failed(const struct ccache_client *c, const char *what, struct err *e)
{
	return err_errno(e, ERR_NETWORK, "compiler cache: cannot %s '%s'", what, c->server->shown);
}

static void hang_up(struct ccache_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static int connect_to(const struct ccache_server *s, int family, const struct sockaddr *addr, socklen_t len)
{
	AUTO_FD int fd = socket(family, SOCK_STREAM, 0);
	int error = 0, one = 1;
	socklen_t size = sizeof(error);
	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	if (connect(fd, addr, len) < 0) {
		if (errno != EINPROGRESS || wait_ready(s, fd, POLLOUT, CONNECT_MS) != 0)
			return -1;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error) {
			if (error)
				errno = error;
			return -1;
		}
	}
	if (family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return steal_fd(&fd);
}

static int connect_unix(const struct ccache_server *s)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(s->path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(addr.sun_path, s->path, strlen(s->path) + 1);
	return connect_to(s, AF_UNIX, (struct sockaddr *)&addr, sizeof(addr));
}

static int connect_tcp(struct ccache_client *c, struct err *e)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *all = NULL;
	int rc = getaddrinfo(c->server->host, c->server->port, &hints, &all);
	if (rc != 0)
		return err_set(e, ERR_NETWORK, "compiler cache: cannot find '%s': %s", c->server->host,
			       gai_strerror(rc));
	for (const struct addrinfo *p = all; p && c->fd < 0; p = p->ai_next)
		c->fd = connect_to(c->server, p->ai_family, p->ai_addr, p->ai_addrlen);
	int saved = errno;
	freeaddrinfo(all);
	errno = saved;
	return c->fd < 0 ? failed(c, "connect to", e) : 0;
}

static int send_all(struct ccache_client *c, const char *data, size_t len, struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = send(c->fd, data + done, len - done, MSG_NOSIGNAL);
		if (n < 0 &&
		    (errno == EINTR || (errno == EAGAIN && wait_ready(c->server, c->fd, POLLOUT, WAIT_MS) == 0)))
			continue;
		if (n < 0)
			return failed(c, "send to", e);
		done += (size_t)n;
	}
	return 0;
}

static int receive(struct ccache_client *c, struct buf *in, struct err *e)
{
	for (;;) {
		ssize_t n = recv(c->fd, buf_reserve(in, CHUNK), CHUNK, 0);
		if (n > 0) {
			in->len += (size_t)n;
			return 0;
		}
		if (n == 0)
			return err_set(e, ERR_NETWORK, "compiler cache: '%s' hung up", c->server->shown);
		if (errno == EINTR || (errno == EAGAIN && wait_ready(c->server, c->fd, POLLIN, WAIT_MS) == 0))
			continue;
		return failed(c, "hear from", e);
	}
}

static int no_protocol(const struct ccache_client *c, struct err *e)
{
	return err_set(e, ERR_NETWORK, "compiler cache: '%s' does not answer like redis", c->server->shown);
}

/* One reply: *ret_len as resp_reply_len tells, the string itself added to `out`. An error is -1, in the server's
 * words. */
static int read_reply(struct ccache_client *c, struct buf *out, long *ret_len, struct err *e)
{
	AUTO_BUF struct buf in = {0};
	const char *end;
	double until = log_seconds() + 6 * WAIT_MS / 1000.0;
	while ((end = in.len ? memmem(in.data, in.len, "\r\n", 2) : NULL) == NULL) {
		if (in.len > 1024)
			return no_protocol(c, e);
		if (receive(c, &in, e) < 0)
			return -1;
	}
	size_t line = (size_t)(end - in.data), start = line + 2;
	long len = resp_reply_len(in.data, line);
	if (len == -3 || (len == -1 && in.len != start))
		return no_protocol(c, e);
	if (in.data[0] == '-')
		return err_set(e, ERR_NETWORK, "compiler cache: '%s' says: %.*s", c->server->shown,
			       (int)(line < 200 ? line - 1 : 199), in.data + 1);
	while (len >= 0 && in.len < start + (size_t)len + 2) {
		if (log_seconds() > until) {
			errno = ETIMEDOUT;
			return failed(c, "hear from", e);
		}
		if (receive(c, &in, e) < 0)
			return -1;
	}
	if (len >= 0 && (in.len != start + (size_t)len + 2 || memcmp(in.data + start + len, "\r\n", 2) != 0))
		return no_protocol(c, e);
	if (len > 0 && out)
		buf_add(out, in.data + start, (size_t)len);
	*ret_len = len;
	return 0;
}

static int simple(struct ccache_client *c, size_t count, const char *const *words, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	long len;
	resp_put(&out, count, words);
	return send_all(c, out.data, out.len, e) < 0 ? -1 : read_reply(c, NULL, &len, e);
}

static int introduce(struct ccache_client *c, struct err *e)
{
	const struct ccache_server *s = c->server;
	const char *with_user[] = {"AUTH", s->user, s->password}, *alone[] = {"AUTH", s->password},
		   *select[] = {"SELECT", s->db};
	if (s->password && (s->user ? simple(c, 3, with_user, e) : simple(c, 2, alone, e)) != 0)
		return -1;
	return s->db ? simple(c, 2, select, e) : 0;
}

/* *ret_old: a connection that was used before, which the server may have closed since. */
static int connect_client(struct ccache_client *c, bool *ret_old, struct err *e)
{
	struct ccache_server *s = c->server;
	*ret_old = c->fd >= 0;
	if (c->fd >= 0)
		return 0;
	pthread_mutex_lock(&s->mutex);
	if (s->idle_count)
		c->fd = s->idle[--s->idle_count];
	pthread_mutex_unlock(&s->mutex);
	*ret_old = c->fd >= 0;
	if (c->fd >= 0)
		return 0;
	if (s->kind == CCACHE_REDIS_UNIX) {
		c->fd = connect_unix(s);
		if (c->fd < 0)
			return failed(c, "connect to", e);
	} else if (connect_tcp(c, e) < 0) {
		return -1;
	}
	if (introduce(c, e) == 0)
		return 0;
	hang_up(c);
	return -1;
}

static int ask(struct ccache_client *c, const struct buf *command, struct buf *out, long *ret_len, struct err *e)
{
	for (;;) {
		bool old;
		if (connect_client(c, &old, e) < 0)
			return -1;
		if (send_all(c, command->data, command->len, e) == 0 && read_reply(c, out, ret_len, e) == 0)
			return 0;
		hang_up(c);
		if (!old || errno == ECANCELED)
			return -1;
		buf_reset(out);
	}
}

int ccache_redis_get(struct ccache_client *c, const char *key, struct buf *out, bool *ret_found, struct err *e)
{
	AUTO_BUF struct buf command = {0};
	AUTO_BUF struct buf name = {0};
	long len = 0;
	buf_printf(&name, "ccache:%s", key);
	const char *words[] = {"GET", buf_cstr(&name)};
	resp_put(&command, 2, words);
	if (ask(c, &command, out, &len, e) < 0)
		return -1;
	if (len == -2) {
		hang_up(c);
		return no_protocol(c, e);
	}
	*ret_found = len >= 0;
	return 0;
}

int ccache_redis_put(struct ccache_client *c, const char *key, const void *data, size_t len, struct err *e)
{
	AUTO_BUF struct buf command = {0};
	AUTO_BUF struct buf name = {0};
	AUTO_BUF struct buf out = {0};
	long got;
	buf_printf(&name, "ccache:%s", key);
	buf_addstr(&command, "*3\r\n");
	resp_put_bytes(&command, "SET", 3);
	resp_put_bytes(&command, name.data, name.len);
	resp_put_bytes(&command, data, len);
	return ask(c, &command, &out, &got, e);
}
