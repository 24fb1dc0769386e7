#include "httpd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "httpd_tls.h"

enum { MAX_PAGES = 32, MAX_CONNECTIONS = 512, MAX_WAIT_MS = 10000 };

struct counts {
	unsigned hits;
	unsigned ranges;
	size_t sent;
};

struct httpd {
	struct httpd_page pages[MAX_PAGES];
	struct counts counts[MAX_PAGES];
	size_t count;
	pthread_mutex_t mutex;
	pthread_t acceptor;
	pthread_t connections[MAX_CONNECTIONS];
	size_t connections_count;
	int listener;
	int stop; /* eventfd, readable once the server stops */
	unsigned port;
	SSL_CTX *tls; /* NULL: plain */
};

struct connection {
	struct httpd *server;
	int fd;
	SSL *ssl; /* NULL: plain */
};

static void die(const char *what)
{
	perror(what);
	abort();
}

static ssize_t put_bytes(const struct connection *c, const char *data, size_t len)
{
	if (!c->ssl)
		return send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	int n = SSL_write(c->ssl, data, len < 16384 ? (int)len : 16384);
	return n > 0 ? n : 0;
}

static ssize_t get_bytes(const struct connection *c, char *data, size_t len)
{
	return c->ssl ? SSL_read(c->ssl, data, (int)len) : recv(c->fd, data, len, 0);
}

/* Waits for the socket; false when the server stops, or after MAX_WAIT_MS so that no test hangs. */
static bool ready(const struct connection *c, short events)
{
	struct pollfd p[] = {{.fd = c->fd, .events = events},
			     {.fd = c->server->stop, .events = POLLIN}};
	return poll(p, 2, MAX_WAIT_MS) > 0 && !p[1].revents;
}

static size_t send_bytes(const struct connection *c, const char *data, size_t len)
{
	size_t done = 0;

	while (done < len && ready(c, POLLOUT)) {
		ssize_t n = put_bytes(c, data + done, len - done);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}

	return done;
}

static void send_text(const struct connection *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void send_text(const struct connection *c, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	send_bytes(c, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* Silence until the client or the server gives up. */
static void wait_silent(const struct connection *c)
{
	char waste[256];
	while (ready(c, POLLIN) && get_bytes(c, waste, sizeof(waste)) > 0)
		;
}

static bool read_request(const struct connection *c, char *text, size_t size)
{
	size_t len = 0;

	while (len + 1 < size && ready(c, POLLIN)) {
		ssize_t n = get_bytes(c, text + len, size - 1 - len);
		if (n <= 0)
			return false;
		len += (size_t)n;
		text[len] = '\0';
		if (strstr(text, "\r\n\r\n"))
			return true;
	}

	return false;
}

static bool request_range(const char *text, size_t len, size_t *first)
{
	const char *range = strcasestr(text, "\r\nRange: bytes=");

	if (!range)
		return false;
	*first = strtoul(range + strlen("\r\nRange: bytes="), NULL, 10);
	return *first < len;
}

static void add_sent(struct httpd *h, size_t page, size_t bytes)
{
	pthread_mutex_lock(&h->mutex);
	h->counts[page].sent += bytes;
	pthread_mutex_unlock(&h->mutex);
}

/* `first` is where the range starts; all of the body when ranged is false. */
static void send_body(const struct connection *c, size_t page, enum httpd_fault fault, bool ranged,
		      size_t first)
{
	const struct httpd_page *p = &c->server->pages[page];
	size_t start = ranged ? first : 0;
	size_t told = p->len - start;
	size_t send = told;

	if (fault == HTTPD_TRUNCATE || fault == HTTPD_STALL)
		send = p->cut < told ? p->cut : told;
	if (fault == HTTPD_SHORT_LENGTH ||
	    ((fault == HTTPD_PART || fault == HTTPD_ALWAYS_PART) && ranged))
		send = told = p->cut < told ? p->cut : told;
	size_t shown = fault == HTTPD_WRONG_RANGE ? start + 1 : start;
	send_text(c, "HTTP/1.1 %s\r\nConnection: close\r\n",
		  ranged ? "206 Partial Content" : "200 OK");
	if (ranged && fault != HTTPD_NO_CONTENT_RANGE)
		send_text(c, "Content-Range: bytes %zu-%zu/%zu\r\n", shown, shown + told - 1,
			  p->len + (shown - start));
	if (fault == HTTPD_HUGE_LENGTH)
		send_text(c, "Content-Length: 1125899906842624\r\n\r\n");
	else if (fault == HTTPD_OVERFLOW_LENGTH)
		send_text(c, "Content-Length: 99999999999999999999999999\r\n\r\n");
	else if (fault == HTTPD_ENDLESS)
		send_text(c, "\r\n");
	else
		send_text(c, "Content-Length: %zu\r\n\r\n", told);
	for (size_t n = send; fault == HTTPD_ENDLESS && n == send;)
		add_sent(c->server, page, n = send_bytes(c, p->body, send));
	add_sent(c->server, page, send_bytes(c, (const char *)p->body + start, send));
	if (fault == HTTPD_STALL)
		wait_silent(c);
}

static void answer(const struct connection *c, size_t page, enum httpd_fault fault,
		   const char *request)
{
	const struct httpd_page *p = &c->server->pages[page];
	size_t first = 0;
	bool ranged = request_range(request, p->len, &first);

	switch (fault) {
	case HTTPD_STATUS:
		send_text(c, "HTTP/1.1 %d Told So\r\nConnection: close\r\nContent-Length: 3\r\n",
			  p->status);
		if (p->retry_after)
			send_text(c, "Retry-After: %u\r\n", p->retry_after);
		send_text(c, "\r\nno\n");
		return;
	case HTTPD_REDIRECT:
	case HTTPD_LOOP:
		send_text(c,
			  "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: "
			  "0\r\nLocation: %s\r\n\r\n",
			  fault == HTTPD_LOOP ? p->path : p->location);
		return;
	case HTTPD_GARBAGE:
		send_text(c, "\x01\x02 this is not the protocol you are looking for\r\n\r\n\r\n");
		return;
	case HTTPD_HANG_UP:
		return;
	default:
		break;
	}

	if (strcasestr(request, "\r\nRange: bytes=") && !ranged && fault != HTTPD_NO_RANGE) {
		send_text(c,
			  "HTTP/1.1 416 Range Not Satisfiable\r\nConnection: "
			  "close\r\nContent-Range: bytes "
			  "*/%zu\r\nContent-Length: "
			  "0\r\n\r\n",
			  p->len);
		return;
	}

	send_body(c, page, fault, fault == HTTPD_ALWAYS_PART || (ranged && fault != HTTPD_NO_RANGE),
		  first);
}

static void serve(const struct connection *c)
{
	struct httpd *h = c->server;
	char request[8192];
	char path[1024];

	if (!read_request(c, request, sizeof(request)) ||
	    sscanf(request, "GET %1023s HTTP/1.1", path) != 1)
		return;
	for (size_t i = 0; i < h->count; i++) {
		if (strcmp(h->pages[i].path, path) != 0)
			continue;
		pthread_mutex_lock(&h->mutex);
		unsigned hit = h->counts[i].hits++;
		if (strcasestr(request, "\r\nRange:"))
			h->counts[i].ranges++;
		pthread_mutex_unlock(&h->mutex);
		bool faulty = h->pages[i].times == 0 || hit < h->pages[i].times;
		answer(c, i, faulty ? h->pages[i].fault : HTTPD_OK, request);
		return;
	}

	send_text(c,
		  "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 5\r\n\r\nnone\n");
}

static void *connection_thread(void *user)
{
	struct connection *c = user;
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL); /* a client that hangs up must not end the test */
	c->ssl = c->server->tls ? SSL_new(c->server->tls) : NULL;
	if (!c->ssl || (SSL_set_fd(c->ssl, c->fd) == 1 && SSL_accept(c->ssl) == 1))
		serve(c);
	if (c->ssl)
		SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	shutdown(c->fd, SHUT_WR);
	close(c->fd);
	free(c);
	return NULL;
}

static void *accept_thread(void *user)
{
	struct httpd *h = user;

	while (h->connections_count < MAX_CONNECTIONS) {
		struct pollfd p[] = {{.fd = h->listener, .events = POLLIN},
				     {.fd = h->stop, .events = POLLIN}};
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			break;
		int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		struct connection *c = malloc(sizeof(*c));
		if (!c)
			die("malloc");
		*c = (struct connection){h, fd, NULL};
		if (pthread_create(&h->connections[h->connections_count], NULL, connection_thread,
				   c) != 0)
			die("pthread_create");
		h->connections_count++;
	}

	return NULL;
}

static void *copy(const void *data, size_t len)
{
	void *out = malloc(len + 1);

	if (!out)
		die("malloc");
	if (len)
		memcpy(out, data, len);
	return out;
}

/* A connection's thread still sends when the client has gone and the caller has left its test. */
static struct httpd_page own(const struct httpd_page *from)
{
	struct httpd_page p = *from;

	p.path = copy(p.path, strlen(p.path) + 1);
	p.body = copy(p.body, p.len);
	if (p.location)
		p.location = copy(p.location, strlen(p.location) + 1);
	return p;
}

static struct httpd *start(const struct httpd_page *pages, size_t count, SSL_CTX *tls)
{
	struct httpd *h = calloc(1, sizeof(*h));
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);

	if (!h || count > MAX_PAGES)
		die("httpd_start");
	for (size_t i = 0; i < count; i++)
		h->pages[i] = own(&pages[i]);
	h->count = count;
	h->tls = tls;
	pthread_mutex_init(&h->mutex, NULL);
	h->stop = eventfd(0, EFD_CLOEXEC);
	h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->stop < 0 || h->listener < 0 ||
	    bind(h->listener, (struct sockaddr *)&addr, len) < 0 || listen(h->listener, 64) < 0 ||
	    getsockname(h->listener, (struct sockaddr *)&addr, &len) < 0)
		die("httpd_start");
	h->port = ntohs(addr.sin_port);
	if (pthread_create(&h->acceptor, NULL, accept_thread, h) != 0)
		die("pthread_create");
	return h;
}

struct httpd *httpd_start(const struct httpd_page *pages, size_t count)
{
	return start(pages, count, NULL);
}

struct httpd *httpd_start_tls(const struct httpd_page *pages, size_t count, const char *pem)
{
	return start(pages, count, httpd_tls_new(pem));
}

void httpd_stop(struct httpd *h)
{
	if (!h)
		return;
	eventfd_write(h->stop, 1);
	pthread_join(h->acceptor, NULL);
	for (size_t i = 0; i < h->connections_count; i++)
		pthread_join(h->connections[i], NULL);
	close(h->listener);
	close(h->stop);
	pthread_mutex_destroy(&h->mutex);
	SSL_CTX_free(h->tls);
	for (size_t i = 0; i < h->count; i++) {
		free((void *)h->pages[i].path);
		free((void *)h->pages[i].body);
		free((void *)h->pages[i].location);
	}

	free(h);
}

const char *httpd_url(const struct httpd *h, const char *path)
{
	static _Thread_local char buffers[8][512];
	static _Thread_local unsigned next;
	char *out = buffers[next++ % 8];

	snprintf(out, sizeof(buffers[0]), "%s://127.0.0.1:%u%s", h->tls ? "https" : "http", h->port,
		 path);
	return out;
}

static struct counts counts_of(struct httpd *h, const char *path)
{
	struct counts out = {0};

	pthread_mutex_lock(&h->mutex);
	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->pages[i].path, path) == 0)
			out = h->counts[i];
	pthread_mutex_unlock(&h->mutex);
	return out;
}

unsigned httpd_hits(struct httpd *h, const char *path)
{
	return counts_of(h, path).hits;
}

unsigned httpd_ranges(struct httpd *h, const char *path)
{
	return counts_of(h, path).ranges;
}

size_t httpd_sent(struct httpd *h, const char *path)
{
	return counts_of(h, path).sent;
}
