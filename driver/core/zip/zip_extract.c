#include <inttypes.h>
#include <libdeflate.h>
#include <zlib.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "core/zip/zip_parts.h"

enum { BLOCK = 256 * 1024, WHOLE_MAX = 32 * 1024 * 1024 };

/* An entry that is read, and where its contents go: out and digest may be NULL, fd -1. */
struct sink {
	const struct zip_reader *z;
	const struct zip_entry *en;
	struct buf *out;
	int fd;
	const char *fd_name;
	struct digest *digest;
	uint64_t size;
	uint32_t crc;
};

static int sink_add(struct sink *s, const uint8_t *data, size_t len, struct err *e)
{
	s->crc = libdeflate_crc32(s->crc, data, len);
	s->size += len;
	if (s->digest)
		digest_update(s->digest, data, len);
	if (s->out)
		buf_add(s->out, data, len);
	return s->fd >= 0 ? fs_write_all(s->fd, data, len, s->fd_name, e) : 0;
}

static int bad(const struct sink *s, const char *what, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "'%s': entry '%s' (offset %" PRIu64 ") %s", s->z->path,
		       s->en->name, s->en->offset, what);
}

static int copy_stored(struct sink *s, uint64_t at, struct err *e)
{
	struct arena AUTO_ARENA scratch = {0};
	uint8_t *in = arena_alloc(&scratch, BLOCK);

	for (uint64_t left = s->en->packed; left;) {
		size_t n = left < BLOCK ? (size_t)left : BLOCK;
		if (zip_read_at(s->z, at, in, n, e) < 0 || sink_add(s, in, n, e) < 0)
			return -1;
		at += n;
		left -= n;
	}

	return 0;
}

/* Inflates an entry that fits in memory at once, in half of zlib's time. False: not done, or
 * different from its header, which zlib then reports. */
static bool inflate_whole(const struct zip_entry *en, const uint8_t *in, uint8_t *out)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	size_t taken = 0, made = 0;
	bool done = d && libdeflate_deflate_decompress_ex(d, in, en->packed, out, en->size, &taken,
							  &made) == LIBDEFLATE_SUCCESS;

	libdeflate_free_decompressor(d);
	return done && taken == en->packed && made == en->size;
}

static void stream_end(z_stream *s)
{
	inflateEnd(s);
}

static int inflate_all(struct sink *s, uint64_t at, struct err *e)
{
	const struct zip_entry *en = s->en;
	z_stream CLEANUP(stream_end) zs = {0};
	struct arena AUTO_ARENA scratch = {0};
	uint8_t *in = arena_alloc(&scratch, BLOCK), *out = arena_alloc(&scratch, BLOCK);
	if (inflateInit2(&zs, -15) != Z_OK)
		abort();
	uint64_t left = en->packed;
	for (int rc = Z_OK; rc != Z_STREAM_END;) {
		if (zs.avail_in == 0 && left) {
			size_t n = left < BLOCK ? (size_t)left : BLOCK;
			if (zip_read_at(s->z, at, in, n, e) < 0)
				return -1;
			at += n;
			left -= n;
			zs.next_in = in;
			zs.avail_in = (unsigned)n;
		}

		zs.next_out = out;
		zs.avail_out = BLOCK;
		rc = inflate(&zs, Z_NO_FLUSH);
		size_t made = BLOCK - zs.avail_out;
		if (rc != Z_OK && rc != Z_STREAM_END)
			return bad(s,
				   rc == Z_BUF_ERROR ? "ends in the middle of its deflate stream"
						     : "does not inflate",
				   e);
		if (made > en->size - s->size)
			return bad(s, "is damaged: it inflates to more than its header says", e);
		if (sink_add(s, out, made, e) < 0)
			return -1;
	}

	return left || zs.avail_in ? bad(s, "has bytes after its deflate stream", e) : 0;
}

static int inflate_entry(struct sink *s, uint64_t at, struct err *e)
{
	const struct zip_entry *en = s->en;

	if (en->size > WHOLE_MAX || en->packed > WHOLE_MAX)
		return inflate_all(s, at, e);
	AUTO_BUF struct buf packed = {0}, AUTO_BUF whole = {0};
	uint8_t *in = (uint8_t *)buf_reserve(&packed, en->packed + 1);
	uint8_t *out = (uint8_t *)buf_reserve(&whole, en->size + 1);
	if (zip_read_at(s->z, at, in, en->packed, e) < 0)
		return -1;
	return inflate_whole(en, in, out) ? sink_add(s, out, en->size, e) : inflate_all(s, at, e);
}

static int read_entry(struct sink *s, struct err *e)
{
	const struct zip_entry *en = s->en;
	uint64_t at = s->z->data[en - s->z->entries];

	if ((en->method == ZIP_STORED ? copy_stored : inflate_entry)(s, at, e) < 0)
		return -1;
	if (s->size != en->size)
		return bad(s, "is damaged: it inflates to less than its header says", e);
	return s->crc == en->crc ? 0 : bad(s, "has a wrong checksum", e);
}

int zip_read(const struct zip_reader *z, const struct zip_entry *en, uint64_t max, struct buf *out,
	     struct err *e)
{
	if (en->size > max)
		return err_set(e, ERR_INTEGRITY,
			       "'%s': entry '%s' has %" PRIu64 " bytes, the limit is %" PRIu64,
			       z->path, en->name, en->size, max);
	struct buf AUTO_BUF made = {0};
	struct sink s = {.z = z, .en = en, .out = &made, .fd = -1};
	if (read_entry(&s, e) < 0)
		return -1;
	buf_add(out, made.data, made.len);
	return 0;
}

int zip_extract_fd(const struct zip_reader *z, const struct zip_entry *en, int fd,
		   uint8_t ret_sha256[32], struct err *e)
{
	struct digest *AUTO_DIGEST digest = ret_sha256 ? digest_new() : NULL;
	struct sink s = {.z = z, .en = en, .fd = fd, .fd_name = en->name, .digest = digest};

	if (read_entry(&s, e) < 0)
		return -1;
	if (digest)
		digest_final(digest, ret_sha256);
	return 0;
}

struct extraction {
	const struct zip_reader *z;
	const char *dir;
	bool keep;
};

static int extract_one(unsigned thread, size_t i, void *user, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct extraction *x = user;
	const struct zip_entry *en = &x->z->entries[i];

	(void)thread;
	if (path_has_suffix(en->name, "/"))
		return fs_mkdirs(x->dir, arena_strndup(&a, en->name, strlen(en->name) - 1), e);
	if (x->keep && fs_exists(x->dir, en->name))
		return 0;
	AUTO_FD int fd = fs_create(x->dir, en->name, 0600, e);
	if (fd < 0)
		return -1;
	if (zip_extract_fd(x->z, en, fd, NULL, e) < 0)
		return e->kind == ERR_SYSTEM ? err_wrap(e, "'%s'", x->dir) : -1;
	if (fchmod(fd, en->mode & S_IXUSR ? 0755 : 0644) < 0 || close(steal_fd(&fd)) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write '%s/%s'", x->dir, en->name);
	return 0;
}

int zip_extract(const struct zip_reader *z, const char *dir, bool keep, const struct run *run,
		struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct extraction x = {z, dir, keep};
	uint64_t *sizes = arena_array(&a, z->count, sizeof(*sizes));

	for (size_t i = 0; i < z->count; i++)
		sizes[i] = z->entries[i].size;
	if (fs_mkdirs(TRUSTED, dir, e) < 0)
		return -1;
	return thread_items(machine_processors(), z->count, sizes, run, extract_one, &x, e);
}
