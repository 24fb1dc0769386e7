#include "core/zip/zip_chunks.h"

#include <fcntl.h>

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
	struct arena a;
	struct chunk *items; /* workers read them: they change between two archives alone */
	size_t count, cap;
	struct chunk *fresh; /* of the archive that is being written */
	size_t fresh_count, fresh_cap;
	int *fds;
	size_t fds_count, fds_cap;
};

struct zip_chunks *zip_chunks_new(void)
{
	struct zip_chunks *c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	return c;
}

void zip_chunks_free(struct zip_chunks *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->fds_count; i++)
		close(c->fds[i]);
	arena_release(&c->a);
	free(c);
}

static bool is_worth(const struct zip_slot *s)
{
	return s->origin && !s->whole && s->raw_len >= CHUNK_MIN;
}

bool zip_chunks_find(const struct zip_chunks *c, struct zip_slot *s)
{
	if (!is_worth(s))
		return false;
	for (size_t i = 0; i < c->count; i++) {
		const struct chunk *k = &c->items[i];
		if (k->origin != s->origin || k->raw_len != s->raw_len || k->last != s->last || k->crc != s->crc)
			continue;
		if (fs_read_at(k->fd, s->out, k->len, k->offset) != (ssize_t)k->len)
			return false;
		s->out_len = k->len;
		return true;
	}
	return false;
}

void zip_chunks_add(struct zip_chunks *c, const struct zip_slot *s, uint64_t offset)
{
	if (!is_worth(s))
		return;
	if (c->fresh_count == c->fresh_cap)
		c->fresh = arena_grow(&c->a, c->fresh, &c->fresh_cap, 256, sizeof(*c->fresh));
	c->fresh[c->fresh_count++] = (struct chunk){.origin = s->origin,
						    .offset = offset,
						    .raw_len = s->raw_len,
						    .len = s->out_len,
						    .crc = s->crc,
						    .last = s->last};
}

void zip_chunks_finish(struct zip_chunks *c, int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	size_t fresh = own < 0 ? 0 : c->fresh_count; /* without it they are deflated again */
	c->fresh_count = 0;
	if (own < 0)
		return;
	if (c->fds_count == c->fds_cap)
		c->fds = arena_grow(&c->a, c->fds, &c->fds_cap, 8, sizeof(*c->fds));
	c->fds[c->fds_count++] = own;
	for (size_t i = 0; i < fresh; i++) {
		if (c->count == c->cap)
			c->items = arena_grow(&c->a, c->items, &c->cap, 256, sizeof(*c->items));
		c->items[c->count] = c->fresh[i];
		c->items[c->count++].fd = own;
	}
}
