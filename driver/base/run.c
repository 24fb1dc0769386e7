#include "base/run.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/arena.h"
#include "base/term.h"
#include "base/text.h"

#define CLEAR_LINE "\r\033[K"
#define STATUS_TTY_S 0.1
#define STATUS_PLAIN_S 60.0

/* Shared by all logs: it keeps the state of the status line and the next write together. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

double log_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void log_init(struct log *l, int fd, enum log_level level)
{
	const char *term = getenv("TERM");
	bool dumb = !term || !*term || strcmp(term, "dumb") == 0;

	/* So long ago that the first status line is due. */
	*l = (struct log){.level = level,
			  .fd = fd,
			  .tty = isatty(fd) && !dumb,
			  .colour = term_of(fd).colour,
			  .status_at = -STATUS_PLAIN_S};
}

/* Writes a line at once, so that lines of several processes do not mix. A message that cannot be
 * written is lost: no channel is left to report it. */
static void emit(struct log *l, const struct buf *b, bool status)
{
	l->status_on = status;
	const char *p = buf_cstr(b);
	size_t left = b->len;
	while (left) {
		ssize_t n = write(l->fd, p, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		p += n;
		left -= (size_t)n;
	}
}

static void line(struct log *l, enum log_level from, const char *prefix, const char *fmt,
		 va_list ap)
{
	if (l->level < from)
		return;
	AUTO_BUF struct buf b = {0}, text = {0};
	buf_vprintf(&text, fmt, ap);
	pthread_mutex_lock(&writing);
	buf_addstr(&b, l->status_on ? CLEAR_LINE : "");
	buf_addstr(&b, prefix);
	utf8_show(&b, buf_cstr(&text), text.len, false);
	buf_addc(&b, '\n');
	emit(l, &b, false);
	pthread_mutex_unlock(&writing);
}

void log_info(struct log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(l, LOG_NORMAL, "", fmt, ap);
	va_end(ap);
}

void log_verbose(struct log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(l, LOG_VERBOSE, "", fmt, ap);
	va_end(ap);
}

void log_warn(struct log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	AUTO_BUF struct buf prefix = {0};
	term_style(&prefix, &(struct term){.colour = l->colour}, TERM_YELLOW, "warning:");
	buf_addc(&prefix, ' ');
	line(l, LOG_NORMAL, buf_cstr(&prefix), fmt, ap);
	va_end(ap);
}

/* A UTF-8 sequence is kept or cut as a whole and counted as one column. */
static void fit_line(struct buf *b, size_t from, size_t width)
{
	size_t columns = 0, i = from;

	for (; i < b->len; i++) {
		unsigned char c = (unsigned char)b->data[i];
		if (c == '\n' || c == '\t')
			b->data[i] = ' ';
		bool continues = (c & 0xc0) == 0x80;
		if (!continues && ++columns > width)
			break;
	}

	b->len = i;
	b->data[i] = '\0';
}

/* Not before so many seconds after the last one. */
static void status(struct log *l, double after, const char *fmt, va_list ap)
{
	AUTO_BUF struct buf b = {0}, text = {0};

	if (l->level <= LOG_QUIET)
		return;
	pthread_mutex_lock(&writing);
	const double now = log_seconds();
	if (after <= 0 || now - l->status_at >= after) {
		buf_vprintf(&text, fmt, ap);
		buf_addstr(&b, l->tty ? CLEAR_LINE : "");
		size_t from = b.len;
		utf8_show(&b, buf_cstr(&text), text.len, false);
		/* One column less than there are: a full line would make some terminals wrap. */
		if (l->tty)
			fit_line(&b, from, term_of(l->fd).width - 1);
		else
			buf_addc(&b, '\n');
		l->status_at = now;
		emit(l, &b, l->tty);
	}

	pthread_mutex_unlock(&writing);
}

void log_status(struct log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	status(l, l->tty ? STATUS_TTY_S : STATUS_PLAIN_S, fmt, ap);
	va_end(ap);
}

void log_every(struct log *l, double seconds, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	status(l, l->tty ? STATUS_TTY_S : seconds, fmt, ap);
	va_end(ap);
}

void log_stage(struct log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	status(l, 0, fmt, ap);
	va_end(ap);
}

void log_wait(struct log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (l->tty)
		status(l, 0, fmt, ap);
	va_end(ap);
}

void log_status_end(struct log *l)
{
	AUTO_BUF struct buf b = {0};

	buf_addstr(&b, CLEAR_LINE);
	pthread_mutex_lock(&writing);
	if (l->status_on)
		emit(l, &b, false);
	pthread_mutex_unlock(&writing);
}

bool run_cancelled(const struct run *r)
{
	if (r->cancel_fd < 0)
		return false;
	struct pollfd p = {.fd = r->cancel_fd, .events = POLLIN};
	/* A pipe whose writer has gone (POLLHUP) means
	 * that main is being torn down: stop as well. */
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLIN | POLLHUP));
}

int run_check(const struct run *r, struct err *e)
{
	return run_cancelled(r) ? err_set(e, ERR_INTERRUPTED, "interrupted") : 0;
}

enum { MAX_THREADS = 63 };

int thread_start(pthread_t *ret, void *(*run)(void *), void *user)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(ret, NULL, run, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

struct each {
	void (*work)(unsigned i, void *user);
	void *user;
	unsigned count;
	_Atomic unsigned next;
};

static void *work_on(void *arg)
{
	struct each *p = arg;

	for (unsigned i; (i = atomic_fetch_add(&p->next, 1)) < p->count;)
		p->work(i, p->user);
	return NULL;
}

void thread_each(unsigned count, void (*work)(unsigned i, void *user), void *user)
{
	struct each p = {.work = work, .user = user, .count = count};
	pthread_t ids[MAX_THREADS];
	unsigned started = 0;

	/* The caller is one of them. */
	while (started < MAX_THREADS && started + 1 < count &&
	       thread_start(&ids[started], work_on, &p) == 0)
		started++;
	(void)work_on(&p);
	while (started > 0)
		pthread_join(ids[--started], NULL);
}

struct item {
	uint64_t size;
	size_t i;
};

struct items {
	int (*work)(unsigned thread, size_t i, void *user, struct err *e);
	void *user;
	const struct run *run;
	const struct item *order;
	size_t count;
	_Atomic size_t next, failed; /* SIZE_MAX: none has */
	pthread_mutex_t lock;
	struct err err;
};

static int by_size(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return x->size != y->size ? (x->size > y->size ? -1 : 1) : (x->i > y->i) - (x->i < y->i);
}

static void take_items(unsigned thread, void *user)
{
	struct items *p = user;

	for (size_t at; (at = atomic_fetch_add(&p->next, 1)) < p->count;) {
		const size_t i = p->order[at].i;
		struct err e = {0};
		if (i > p->failed ||
		    (run_check(p->run, &e) == 0 && p->work(thread, i, p->user, &e) == 0))
			continue;
		pthread_mutex_lock(&p->lock);
		if (i < p->failed) {
			p->failed = i;
			p->err = e;
		}

		pthread_mutex_unlock(&p->lock);
	}
}

int thread_items(unsigned threads, size_t count, const uint64_t *sizes, const struct run *run,
		 int (*work)(unsigned thread, size_t i, void *user, struct err *e), void *user,
		 struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct item *order = arena_array(&a, count, sizeof(*order));

	for (size_t i = 0; i < count; i++)
		order[i] = (struct item){sizes ? sizes[i] : 0, i};
	array_sort(order, count, sizeof(*order), by_size);
	struct items p = {work, user, run, order, count, 0, SIZE_MAX, PTHREAD_MUTEX_INITIALIZER,
			  {0}};
	thread_each(threads, take_items, &p);
	return p.failed == SIZE_MAX ? 0 : err_take(e, &p.err);
}
