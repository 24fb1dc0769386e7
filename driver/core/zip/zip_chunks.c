#include "core/zip/zip_parts.h"

#include "base/sys/fs.h"

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
