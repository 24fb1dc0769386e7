#include "craft_zip.h"

#include <string.h>
#include <zlib.h>

static void add(struct buf *b, unsigned bytes, uint64_t v)
{
	for (; bytes--; v >>= 8)
		buf_addc(b, (char)v);
}

/* From the flags to the length of the name. */
static void add_common(struct buf *b, const struct craft_entry *en)
{
	size_t len = strlen(en->data);

	add(b, 2, en->flags);
	add(b, 2, 0);
	add(b, 4, 0x00210000); /* 1980-01-01 */
	add(b, 4, crc32(0, (const unsigned char *)en->data, (unsigned)len));
	add(b, 4, len);
	add(b, 4, len);
	add(b, 2, strlen(en->name));
}

static void add_local(struct buf *b, const struct craft_entry *en)
{
	add(b, 4, 0x04034b50);
	add(b, 2, 20);
	add_common(b, en);
	add(b, 2, en->local_extra_len);
	buf_addstr(b, en->name);
	buf_add(b, en->local_extra, en->local_extra_len);
	buf_addstr(b, en->data);
	buf_add(b, en->behind, en->behind_len);
}

static void add_central(struct buf *b, const struct craft_entry *en, size_t offset)
{
	add(b, 4, 0x02014b50);
	add(b, 2, (en->mode ? 3 << 8 : 0) | 20);
	add(b, 2, 20);
	add_common(b, en);
	add(b, 2, en->central_extra_len);
	add(b, 2, 0);
	add(b, 2, 0);
	add(b, 2, 0);
	add(b, 4, (uint64_t)en->mode << 16);
	add(b, 4, offset);
	buf_addstr(b, en->name);
	buf_add(b, en->central_extra, en->central_extra_len);
}

void craft_zip(struct craft_zip *z, const struct craft_entry *entries, size_t count)
{
	struct buf *b = &z->bytes;

	*z = (struct craft_zip){0};
	for (size_t i = 0; i < count; i++) {
		z->local[i] = b->len;
		add_local(b, &entries[i]);
	}

	size_t start = b->len;
	for (size_t i = 0; i < count; i++) {
		z->central[i] = b->len;
		add_central(b, &entries[i], z->local[i]);
	}

	z->end = b->len;
	add(b, 4, 0x06054b50);
	add(b, 4, 0);
	add(b, 2, count);
	add(b, 2, count);
	add(b, 4, z->end - start);
	add(b, 4, start);
	add(b, 2, 0);
}

static void overwrite(struct craft_zip *z, size_t at, unsigned bytes, uint64_t v)
{
	for (; bytes--; v >>= 8)
		z->bytes.data[at++] = (char)v;
}

void craft_put16(struct craft_zip *z, size_t at, unsigned v)
{
	overwrite(z, at, 2, v);
}

void craft_put32(struct craft_zip *z, size_t at, uint32_t v)
{
	overwrite(z, at, 4, v);
}

void craft_put64(struct craft_zip *z, size_t at, uint64_t v)
{
	overwrite(z, at, 8, v);
}

void craft_insert(struct craft_zip *z, size_t at, const void *data, size_t len)
{
	struct buf out = {0};

	buf_add(&out, z->bytes.data, at);
	buf_add(&out, data, len);
	buf_add(&out, z->bytes.data + at, z->bytes.len - at);
	buf_release(&z->bytes);
	z->bytes = out;
}
