#include "step/ccache/ccache_relay.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/os.h"
#include "base/sys/fs.h"

enum { MAX_CONNECTIONS = 256, CHUNK = 64 * 1024, QUIET_SECONDS = 60, BUSY_MS = 100 };

/* What all connections together may hold, of commands that are not whole and of
 * replies that are not taken. Two of the largest values, or hundreds of usual ones. */
#define DEFAULT_MAX_HELD ((uint64_t)512 << 20)

struct connection {
	struct ccache_relay *remote;
	pthread_t thread;
	int fd;
	size_t held;       /* of the remote's, for what is read */
	atomic_bool ended; /* the thread may be joined */
};

struct ccache_relay {
	struct ccache_server server;
	bool has_server;
	struct strlist prefixes;
	struct ccache_shared shared;
	struct arena arena;
	struct log *log;
	int listener;
	int stop[2]; /* a pipe: its writing end is closed once all must end */
	pthread_t acceptor;
	struct connection *connections[MAX_CONNECTIONS];
	atomic_bool warned;
	_Atomic double quiet_until; /* a server that failed is left alone for a while */
	atomic_uint_fast64_t asked, own, lower, hits, remote_hits, failures;
	uint64_t max_held;
	atomic_uint_fast64_t held; /* bytes */
};

int ccache_relay_check(const char *url, struct err *e)
{
	struct ccache_server s;

	if (ccache_server_parse(url, &s, e) < 0)
		return -1;
	ccache_server_release(&s);
	return 0;
}

static bool ask_server(struct ccache_relay *r, struct ccache_client *c, const char *prefix,
		       const char *name, struct buf *out)
{
	AUTO_BUF struct buf full = {0};
	struct err e = {0};

	if (!(r->has_server && log_seconds() >= atomic_load(&r->quiet_until)))
		return false;
	buf_printf(&full, "%s/%s", prefix, name);
	int found = ccache_client_get(c, buf_cstr(&full), out, &e);
	if (found >= 0)
		return found;
	atomic_fetch_add(&r->failures, 1);
	atomic_store(&r->quiet_until, log_seconds() + QUIET_SECONDS);
	if (!atomic_exchange(&r->warned, true))
		log_warn(r->log, "%s: the build goes on without it, and asks again in a minute",
			 e.msg);
	return false;
}

/* A result; or of the manifests the best: `value` may hold
 * one already, which only the scope's own is better than. */
static bool server_get(struct ccache_relay *r, struct ccache_client *c, const char *key,
		       struct buf *value)
{
	const char *const tags[] = {r->shared.scope, value->len ? NULL : r->shared.group};
	char name[CCACHE_MAX_NAME];
	bool have = value->len > 0;

	for (size_t i = 0; i < r->prefixes.count; i++) {
		const char *prefix = r->prefixes.items[i];
		AUTO_BUF struct buf got = {0};
		ccache_name(key, NULL, name);
		bool found = !have && ask_server(r, c, prefix, name, &got);
		if (!found && !have)
			continue;
		bool manifest = have || ccache_is_manifest(got.data, got.len);
		for (size_t t = 0; manifest && t < ARRAY_LEN(tags) && tags[t]; t++) {
			AUTO_BUF struct buf better = {0};
			ccache_name(key, tags[t], name);
			if (!ask_server(r, c, prefix, name, &better))
				continue;
			got.len = 0;
			buf_add(&got, better.data, better.len);
			found = true;
			break;
		}

		if (!found)
			continue;
		value->len = 0;
		buf_add(value, got.data, got.len);
		return true;
	}

	return false;
}

static void answer_get(struct ccache_relay *r, struct ccache_client *c, const char *key,
		       struct buf *reply)
{
	AUTO_BUF struct buf value = {0};
	bool final = false, far = true;
	const struct ccache_place *place = ccache_shared_get(&r->shared, key, &value, &final);

	atomic_fetch_add(&r->asked, 1);
	if (!(place && final) && r->has_server && server_get(r, c, key, &value)) {
		atomic_fetch_add(&r->hits, 1);
	} else if (place) {
		far = !place->own;
		atomic_fetch_add(far ? &r->lower : &r->own, 1);
	} else {
		buf_addstr(reply, "$-1\r\n");
		return;
	}

	if (far && !ccache_is_manifest(value.data, value.len))
		atomic_fetch_add(&r->remote_hits, 1);
	/* A string as a reply. */
	buf_printf(reply, "$%zu\r\n", value.len);
	buf_add(reply, value.data, value.len);
	buf_addstr(reply, "\r\n");
}

/* False: that is too much for all together. */
static bool hold(struct ccache_relay *r, size_t bytes)
{
	if (atomic_fetch_add(&r->held, bytes) + bytes <= r->max_held)
		return true;
	atomic_fetch_sub(&r->held, bytes);
	return false;
}

/* The memory of a buffer counts, whatever is in it. */
static bool hold_input(struct connection *n, const struct buf *in)
{
	if (in->cap < n->held)
		atomic_fetch_sub(&n->remote->held, n->held - in->cap);
	else if (!hold(n->remote, in->cap - n->held))
		return false;
	n->held = in->cap;
	return true;
}

static int reply_to(const struct connection *n, struct ccache_client *c,
		    const struct resp_command *command)
{
	AUTO_BUF struct buf reply = {0};
	char key[RESP_MAX_KEY];
	bool has_key = resp_key(command, key);

	if (has_key && command->count == 2 && resp_is(command, "GET"))
		answer_get(n->remote, c, key, &reply);
	else if (has_key && command->count == 3 && resp_is(command, "SET"))
		buf_addstr(&reply, "+OK\r\n");
	else if (has_key && command->count == 2 &&
		 (resp_is(command, "EXISTS") || resp_is(command, "DEL")))
		buf_addstr(&reply, ":0\r\n");
	else if (command->count == 1 && resp_is(command, "PING"))
		buf_addstr(&reply, "+PONG\r\n");
	else
		buf_addstr(&reply, "-ERR only ccache is served here\r\n");
	if (!hold(n->remote, reply.cap))
		return -1;
	int rc = ccache_send(n->fd, n->remote->stop[0], reply.data, reply.len,
			     CCACHE_EXCHANGE_SECONDS * 1000);
	atomic_fetch_sub(&n->remote->held, reply.cap);
	return rc;
}

/* Until the other side ends, says something that it
 * must not, or leaves a command half-said for too long. */
static void serve(struct connection *n, struct ccache_client *c, struct buf *in)
{
	double begun = 0; /* the command that is not whole */

	for (;;) {
		struct resp_command command;
		enum resp_state state = resp_parse(in->data, in->len, &command);
		if (state == RESP_BAD)
			return;
		if (state == RESP_DONE && in->data) {
			if (reply_to(n, c, &command) < 0)
				return;
			memmove(in->data, in->data + command.used, in->len - command.used);
			in->len -= command.used;
			begun = log_seconds();
			if (!in->len) /* a large value's memory */
				buf_release(in);
			if (!hold_input(n, in))
				return;
			continue;
		}

		double left = begun + CCACHE_EXCHANGE_SECONDS - log_seconds();
		if (ccache_wait(n->fd, n->remote->stop[0], POLLIN,
				!in->len   ? -1
				: left > 0 ? (int)(left * 1000)
					   : 0) < 0)
			return;
		char *to = buf_reserve(in, CHUNK);
		ssize_t got = hold_input(n, in) ? recv(n->fd, to, CHUNK, MSG_DONTWAIT) : 0;
		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			return;
		if (!in->len)
			begun = log_seconds();
		in->len += got > 0 ? (size_t)got : 0;
	}
}

static void *connection_thread(void *user)
{
	struct connection *n = user;
	struct ccache_client c = {.server = &n->remote->server};
	AUTO_BUF struct buf in = {0};

	serve(n, &c, &in);
	atomic_fetch_sub(&n->remote->held, n->held);
	if (n->remote->has_server)
		ccache_client_close(&c);
	close(n->fd);
	atomic_store(&n->ended, true);
	return NULL;
}

static void join(struct ccache_relay *r, size_t i)
{
	pthread_join(r->connections[i]->thread, NULL);
	free(r->connections[i]);
	r->connections[i] = NULL;
}

/* Returns a free slot; MAX_CONNECTIONS if all are used. */
static size_t find_place(struct ccache_relay *r)
{
	size_t place = MAX_CONNECTIONS;

	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		if (r->connections[i] && atomic_load(&r->connections[i]->ended))
			join(r, i);
		if (!r->connections[i] && place == MAX_CONNECTIONS)
			place = i;
	}

	return place;
}

/* Whether accept failed for want of resources, not for a connection that went away. */
static bool is_overload(int number)
{
	return number != EINTR && number != EAGAIN && number != ECONNABORTED;
}

static void *accept_thread(void *user)
{
	struct ccache_relay *r = user;

	while (ccache_wait(r->listener, r->stop[0], POLLIN, -1) == 0) {
		int fd = accept(r->listener, NULL, NULL);
		if (fd < 0) {
			/* Without a free descriptor the connection
			 * stays, and the listener readable. */
			if (is_overload(errno) && ccache_wait(-1, r->stop[0], 0, BUSY_MS) < 0 &&
			    errno == ECANCELED)
				return NULL;
			continue;
		}

		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
		size_t place = find_place(r);
		struct connection *n = place < MAX_CONNECTIONS ? calloc(1, sizeof(*n)) : NULL;
		if (!n) {
			close(fd);
			continue;
		}

		n->remote = r;
		n->fd = fd;
		r->connections[place] = n;
		if (thread_start(&n->thread, connection_thread, n) != 0) {
			close(fd);
			free(n);
			r->connections[place] = NULL;
		}
	}

	return NULL;
}

static int bind_to(int fd, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}

	memcpy(addr.sun_path, path, strlen(path) + 1);
	return bind(fd, (struct sockaddr *)&addr, sizeof(addr));
}

/* The store's path may be too long for a socket's
 * name: then through a link in a temporary directory. */
static int bind_by_link(int fd, const char *dir, struct arena *a, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	char *near;

	if (fs_temp_dir(tmp && strlen(tmp) < 40 ? NULL : "/tmp", "ptbuild-", a, &near, e) < 0)
		return -1;
	const char *link = path_join(a, near, "d");
	int rc = symlink(dir, link) == 0 ? bind_to(fd, path_join(a, link, CCACHE_REMOTE_SOCKET))
					 : -1;
	if (rc < 0)
		err_errno(e, ERR_SYSTEM, "cannot listen in '%s'", dir);
	(void)unlink(link);
	(void)rmdir(near);
	return rc;
}

static int listen_in(const char *dir, struct arena *a, struct err *e)
{
	AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const char *path = path_join(a, dir, CCACHE_REMOTE_SOCKET);

	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make a socket");
	if (bind_to(fd, path) < 0) {
		if (errno != ENAMETOOLONG)
			return err_errno(e, ERR_SYSTEM, "cannot listen on '%s'", path);
		if (bind_by_link(fd, dir, a, e) < 0)
			return -1;
	}

	/* The build runs as another user of its own namespace. */
	if (chmod(path, 0666) < 0 || listen(fd, 128) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot listen on '%s'", path);
	return steal_fd(&fd);
}

static void release(struct ccache_relay *r)
{
	cleanup_fd(&r->listener);
	if (r->has_server)
		ccache_server_release(&r->server);
	cleanup_fd(&r->stop[0]);
	cleanup_fd(&r->stop[1]);
	arena_release(&r->arena);
	free(r);
}

int ccache_relay_start(const struct ccache_relay_request *q, const struct run *run,
		       struct ccache_relay **ret, struct err *e)
{
	struct ccache_relay *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->log = run->log;
	r->prefixes = q->prefixes;
	r->shared = q->shared;
	r->max_held = q->max_held ? q->max_held : DEFAULT_MAX_HELD;
	r->listener = -1;
	r->stop[0] = r->stop[1] = -1;
	if (os_pipe(r->stop) < 0) {
		err_errno(e, ERR_SYSTEM, "cannot make a pipe");
	} else if (!q->url || ccache_server_parse(q->url, &r->server, e) == 0) {
		r->has_server = q->url != NULL;
		r->server.stop = r->stop[0];
		r->listener = listen_in(q->dir, &r->arena, e);
		if (r->listener >= 0 && thread_start(&r->acceptor, accept_thread, r) == 0) {
			*ret = r;
			return 0;
		}

		if (r->listener >= 0)
			err_set(e, ERR_SYSTEM, "cannot start a thread");
	}

	release(r);
	return -1;
}

void ccache_relay_stop(struct ccache_relay *r, struct ccache_relay_stats *stats)
{
	if (!r)
		return;
	cleanup_fd(&r->stop[1]); /* closing it wakes all that wait for the other end */
	pthread_join(r->acceptor, NULL);
	for (size_t i = 0; i < MAX_CONNECTIONS; i++)
		if (r->connections[i])
			join(r, i);
	if (stats)
		*stats = (struct ccache_relay_stats){.asked = atomic_load(&r->asked),
						     .own = atomic_load(&r->own),
						     .lower = atomic_load(&r->lower),
						     .hits = atomic_load(&r->hits),
						     .remote_hits = atomic_load(&r->remote_hits),
						     .failures = atomic_load(&r->failures)};
	release(r);
}

static int send_one(struct ccache_client *c, const struct ccache_send *q, const char *name,
		    size_t *sent, struct err *e)
{
	AUTO_BUF struct buf path = {0}, full = {0}, data = {0};

	buf_printf(&path, "%s/%s", q->place, name);
	buf_printf(&full, "%s/%s", q->prefix, name);
	if (!fs_exists(TRUSTED, buf_cstr(&path))) /* others made room */
		return 0;
	if (fs_read(TRUSTED, buf_cstr(&path), RESP_MAX_VALUE, &data, e) < 0)
		return -1;
	int there = ccache_client_get(c, buf_cstr(&full), NULL, e);
	if (there != 0)
		return there < 0 ? -1 : 0;
	struct ccache_value v = {data.data, data.len, false};
	if (ccache_client_put(c, buf_cstr(&full), &v, e) < 0)
		return -1;
	++*sent;
	size_t bare = full.len - strlen(name) + strcspn(name, "-");
	if (bare == full.len)
		return 0;
	full.len = bare;
	if (ccache_client_put(c, buf_cstr(&full), &v, e) < 0)
		return -1;
	buf_printf(&full, "-%.*s", CCACHE_TAG_LEN, q->group);
	v.replace = true;
	return ccache_client_put(c, buf_cstr(&full), &v, e);
}

int ccache_relay_send(const struct ccache_send *q, const struct run *run, size_t *ret_sent,
		      struct err *e)
{
	struct ccache_server s;
	int rc = 0;

	*ret_sent = 0;
	if (ccache_server_parse(q->url, &s, e) < 0)
		return -1;
	struct ccache_client c = {.server = &s};
	for (size_t i = 0; i < q->names.count && !s.read_only && rc == 0; i++)
		rc = run_check(run, e) < 0 ? -1 : send_one(&c, q, q->names.items[i], ret_sent, e);
	ccache_client_close(&c);
	ccache_server_release(&s);
	return rc;
}
