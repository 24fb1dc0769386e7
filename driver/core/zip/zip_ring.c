#include "core/zip/zip_parts.h"

#include <libdeflate.h>

#include "base/sys/fs.h"

enum {
	THREADS_MAX = 64,
	SLOTS = 256,
	SMALL = 32 * 1024,
};

struct zip_buffers {
	uint8_t *raw, *out;
	struct zip_buffers *next; /* free */
};

struct zip_ring {
	pthread_mutex_t lock;
	pthread_cond_t queued, done;
	struct zip_slot slots[SLOTS];
	struct zip_buffers small[SLOTS]; /* each slot's own */
	struct zip_buffers large[2 * THREADS_MAX];
	size_t large_count;
	struct zip_buffers *large_free;
	/* running numbers, slot = number % SLOTS: popped <= taken <= submitted */
	size_t submitted, taken, popped;
	/* the only slot whose end is signalled: one signal for each would cost as many wake-ups */
	size_t awaited;
	bool stop;
	int level;
	struct zip_chunks *chunks;
	pthread_t threads[THREADS_MAX];
	unsigned running;
};

static void deflate_slot(struct zip_deflater *d, int level, struct zip_chunks *chunks,
			 struct zip_slot *s)
{
	s->crc = libdeflate_crc32(0, s->raw, s->raw_len);
	s->out_len = 0;
	if (s->store || level == 0 || s->raw_len == 0)
		return;
	if (chunks && zip_chunks_find(chunks, s))
		return;
	s->failed = zip_deflate_chunk(d, s) < 0;
	if (!s->failed && s->whole && s->out_len >= s->raw_len)
		s->out_len = 0;
}

static void *run_worker(void *arg)
{
	struct zip_ring *r = arg;
	struct zip_deflater *d = r->level ? zip_deflater_new(r->level) : NULL;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		while (!r->stop && r->taken == r->submitted)
			pthread_cond_wait(&r->queued, &r->lock);
		if (r->stop)
			break;
		size_t number = r->taken++;
		struct zip_slot *s = &r->slots[number % SLOTS];
		pthread_mutex_unlock(&r->lock);
		deflate_slot(d, r->level, r->chunks, s);
		pthread_mutex_lock(&r->lock);
		s->done = true;
		if (number == r->awaited)
			pthread_cond_signal(&r->done);
	}

	pthread_mutex_unlock(&r->lock);
	zip_deflater_free(d);
	return NULL;
}

static struct zip_buffers new_buffers(size_t len)
{
	struct zip_buffers b = {malloc(len), malloc(zip_deflate_bound(len)), NULL};

	if (!b.raw || !b.out)
		abort();
	return b;
}

static void free_buffers(struct zip_buffers *b, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(b[i].raw);
		free(b[i].out);
	}
}

int zip_ring_new(unsigned threads, int level, struct zip_ring **ret, struct err *e)
{
	struct zip_ring *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
	r->level = level;
	r->large_count = threads + (threads < 4 ? 2 : threads / 2);
	for (size_t i = 0; i < SLOTS; i++)
		r->small[i] = new_buffers(SMALL);
	for (size_t i = 0; i < r->large_count; i++) {
		r->large[i] = new_buffers(ZIP_CHUNK);
		r->large[i].next = r->large_free;
		r->large_free = &r->large[i];
	}

	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->queued, NULL);
	pthread_cond_init(&r->done, NULL);
	for (; r->running < threads; r->running++) {
		errno = thread_start(&r->threads[r->running], run_worker, r);
		if (errno)
			break;
	}

	if (r->running == 0) {
		err_errno(e, ERR_SYSTEM, "cannot start a thread");
		zip_ring_free(r);
		return -1;
	}

	*ret = r;
	return 0;
}

void zip_ring_share(struct zip_ring *r, struct zip_chunks *c)
{
	r->chunks = c;
}

void zip_ring_free(struct zip_ring *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->queued);
	pthread_mutex_unlock(&r->lock);
	for (unsigned i = 0; i < r->running; i++)
		pthread_join(r->threads[i], NULL);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->queued);
	pthread_cond_destroy(&r->done);
	free_buffers(r->small, SLOTS);
	free_buffers(r->large, r->large_count);
	free(r);
}

struct zip_slot *zip_ring_fill(struct zip_ring *r, size_t len)
{
	/* submitted, popped and the free buffers belong
	 * to the one thread that fills and empties. */
	if (r->submitted - r->popped == SLOTS || (len > SMALL && !r->large_free))
		return NULL;
	struct zip_slot *s = &r->slots[r->submitted % SLOTS];
	struct zip_buffers *b = &r->small[r->submitted % SLOTS];
	s->large = NULL;
	if (len > SMALL) {
		s->large = b = r->large_free;
		r->large_free = b->next;
	}

	s->raw = b->raw;
	s->out = b->out;
	return s;
}

void zip_ring_submit(struct zip_ring *r)
{
	pthread_mutex_lock(&r->lock);
	struct zip_slot *s = &r->slots[r->submitted++ % SLOTS];
	s->done = s->failed = false;
	pthread_cond_signal(&r->queued);
	pthread_mutex_unlock(&r->lock);
}

/* Whether a slot is done, or, with `wait`, once it is. */
static bool is_done(struct zip_ring *r, size_t number, bool wait)
{
	const struct zip_slot *s = &r->slots[number % SLOTS];

	pthread_mutex_lock(&r->lock);
	r->awaited = number;
	while (wait && !s->done)
		pthread_cond_wait(&r->done, &r->lock);
	bool done = s->done;
	pthread_mutex_unlock(&r->lock);
	return done;
}

/* In a ring full of small chunks waits for a quarter
 * at once; the rest keeps the workers busy meanwhile. */
static size_t slot_to_await(const struct zip_ring *r)
{
	size_t number = r->popped;

	if (r->submitted - r->popped < SLOTS || r->slots[number % SLOTS].large)
		return number;
	while (number + 1 < r->popped + SLOTS / 4 && !r->slots[(number + 1) % SLOTS].large)
		number++;
	return number;
}

struct zip_slot *zip_ring_oldest(struct zip_ring *r, bool wait)
{
	if (r->popped == r->submitted)
		return NULL;
	if (wait)
		(void)is_done(r, slot_to_await(r), true);
	return is_done(r, r->popped, wait) ? &r->slots[r->popped % SLOTS] : NULL;
}

void zip_ring_pop(struct zip_ring *r)
{
	struct zip_buffers *b = r->slots[r->popped++ % SLOTS].large;

	if (!b)
		return;
	b->next = r->large_free;
	r->large_free = b;
}

enum { CHUNK_MIN = 64 * 1024 }; /* smaller ones are deflated as soon as found */

struct chunk {
	uint64_t origin, offset;
	size_t raw_len, len;
	uint32_t crc;
	int fd; /* of the archive that it is in */
	bool last;
};

struct zip_chunks {
	pthread_mutex_t lock;
	struct arena a;
	struct chunk *items;
	size_t count, cap;
	int *fds;
	size_t fds_count, fds_cap;
};

struct zip_chunks *zip_chunks_new(void)
{
	struct zip_chunks *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void zip_chunks_free(struct zip_chunks *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->fds_count; i++)
		close(c->fds[i]);
	arena_release(&c->a);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

bool zip_chunks_worth(const struct zip_slot *s)
{
	return s->origin && !s->whole && s->raw_len >= CHUNK_MIN;
}

int zip_chunks_join(struct zip_chunks *c, int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own < 0)
		return -1;
	pthread_mutex_lock(&c->lock);
	c->fds = arena_room(&c->a, c->fds, c->fds_count, &c->fds_cap, 8, sizeof(*c->fds));
	c->fds[c->fds_count++] = own;
	pthread_mutex_unlock(&c->lock);
	return own;
}

bool zip_chunks_find(struct zip_chunks *c, struct zip_slot *s)
{
	struct chunk k = {.fd = -1};

	if (!zip_chunks_worth(s))
		return false;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->count && k.fd < 0; i++)
		if (c->items[i].origin == s->origin && c->items[i].raw_len == s->raw_len &&
		    c->items[i].last == s->last && c->items[i].crc == s->crc)
			k = c->items[i];
	pthread_mutex_unlock(&c->lock);
	if (k.fd < 0 || fs_read_at(k.fd, s->out, k.len, k.offset) != (ssize_t)k.len)
		return false;
	s->out_len = k.len;
	return true;
}

void zip_chunks_add(struct zip_chunks *c, const struct zip_slot *s, int fd, uint64_t offset)
{
	pthread_mutex_lock(&c->lock);
	c->items = arena_room(&c->a, c->items, c->count, &c->cap, 256, sizeof(*c->items));
	c->items[c->count++] = (struct chunk){.origin = s->origin,
					      .offset = offset,
					      .raw_len = s->raw_len,
					      .len = s->out_len,
					      .crc = s->crc,
					      .fd = fd,
					      .last = s->last};
	pthread_mutex_unlock(&c->lock);
}
