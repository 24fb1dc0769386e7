#include <libdeflate.h>
#include <search.h>
#include <time.h>
#include <zlib.h>

#include "base/os.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/zip/zip_parts.h"

/* Entries this close to 4 GiB are stored: deflated, their packed size might
 * need a 64-bit field for which the header, written first, has no room. */
#define STORE_SLACK ((uint64_t)16 << 20)

enum { ZIP_HASH_BLOCK = 256 * 1024, ZIP_WRITE_BLOCK = 1024 * 1024 };

struct zip_writer {
	struct arena arena;
	int fd;
	char *path;
	int level;
	uint32_t dos_time;
	struct zip_ring *ring;
	struct zip_chunks *chunks; /* NULL: not shared */
	int shared;                /* the file, as they read it */
	struct digest *digest;
	uint64_t written;   /* bytes in the file */
	uint64_t hashed;    /* bytes of them in the digest */
	bool header_open;   /* the last header will be rewritten */
	struct buf pending; /* not written yet, at most ZIP_WRITE_BLOCK bytes */
	struct zip_entry *entries;
	size_t count, cap;
	void *names; /* tsearch tree */
	char *block; /* ZIP_HASH_BLOCK bytes */
};

uint64_t zip_epoch(const struct zip_entry *en)
{
	uint32_t t = en->dos_time;
	struct tm tm = {.tm_year = (int)(t >> 25) + 80,
			.tm_mon = (int)(t >> 21 & 15) - 1,
			.tm_mday = (int)(t >> 16 & 31),
			.tm_hour = (int)(t >> 11 & 31),
			.tm_min = (int)(t >> 5 & 63),
			.tm_sec = (int)(t & 31) * 2};
	time_t epoch = timegm(&tm);

	return epoch < 0 ? 0 : (uint64_t)epoch;
}

const char *zip_writer_id(void)
{
	return "4 libdeflate " LIBDEFLATE_VERSION_STRING;
}

static uint32_t dos_time(uint64_t epoch)
{
	/* 1980-01-01, 2107-12-31 23:59:58, UTC */
	const uint64_t first = 315532800, last = 4354819198;
	time_t t = (time_t)(epoch < first ? first : epoch > last ? last : epoch);
	struct tm tm;

	gmtime_r(&t, &tm);
	return (uint32_t)(tm.tm_year - 80) << 25 | (uint32_t)(tm.tm_mon + 1) << 21 |
	       (uint32_t)tm.tm_mday << 16 | (uint32_t)tm.tm_hour << 11 | (uint32_t)tm.tm_min << 5 |
	       (uint32_t)tm.tm_sec / 2;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool is_ascii(const char *s)
{
	for (; *s; s++)
		if (*s & 0x80)
			return false;
	return true;
}

/* A header with its name and, for values of more than 32 bits, its zip64 field. */
static void put_header(struct buf *b, const struct zip_writer *w, const struct zip_entry *en,
		       bool central)
{
	bool wide = en->size >= ZIP_MAX32 || en->packed >= ZIP_MAX32,
	     far = central && en->offset >= ZIP_MAX32;
	const uint64_t values[] = {en->size, en->packed, en->offset},
		       *first = wide ? values : values + 2;
	const uint16_t extra[] = {ZIP_EXTRA_64, (uint16_t)((wide ? 16 : 0) + (far ? 8 : 0))};
	const uint32_t packed = wide ? ZIP_MAX32 : (uint32_t)en->packed;
	const uint32_t size = wide ? ZIP_MAX32 : (uint32_t)en->size;
	const uint16_t extra_len = extra[1] ? (uint16_t)(extra[1] + sizeof(extra)) : 0;
	const struct zip_common common = {
		.version = extra[1] ? ZIP_VERSION_64 : ZIP_VERSION,
		.flags = is_ascii(en->name) ? 0 : ZIP_FLAG_UTF8,
		.method = en->method,
		.time = w->dos_time,
		.crc = en->crc,
		.packed = packed,
		.size = size,
		.name_len = (uint16_t)strlen(en->name),
		.extra_len = extra_len,
	};
	const struct zip_local l = {ZIP_LOCAL_SIG, common};
	const struct zip_central c = {.signature = ZIP_CENTRAL_SIG,
				      .made_by = (uint16_t)(ZIP_UNIX << 8 | common.version),
				      .common = common,
				      .external = en->mode << 16,
				      .offset = far ? ZIP_MAX32 : (uint32_t)en->offset};

	buf_add(b, central ? (const void *)&c : &l, central ? sizeof(c) : sizeof(l));
	buf_addstr(b, en->name);
	if (!extra[1])
		return;
	buf_add(b, extra, sizeof(extra));
	buf_add(b, first, extra[1]);
}

int zip_create_fd(int fd, const struct zip_new *n, struct zip_writer **ret, struct err *e)
{
	struct zip_ring *ring;

	if (n->level < 0 || n->level > 9)
		return err_set(e, ERR_USAGE, "deflate level %d is not in 0..9", n->level);
	if (zip_ring_new(n->threads, n->level, &ring, e) < 0)
		return -1;
	struct arena a = {0};
	struct zip_writer *w = arena_alloc(&a, sizeof(*w));
	*w = (struct zip_writer){.fd = fd,
				 .path = arena_strdup(&a, n->path),
				 .level = n->level,
				 .dos_time = dos_time(n->epoch),
				 .ring = ring};
	w->digest = digest_new();
	w->block = arena_alloc(&a, ZIP_HASH_BLOCK);
	w->arena = a;
	*ret = w;
	return 0;
}

int zip_create(const struct zip_new *n, struct zip_writer **ret, struct err *e)
{
	AUTO_FD int fd = open(n->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", n->path);
	if (zip_create_fd(fd, n, ret, e) < 0) {
		unlink(n->path);
		return -1;
	}

	(void)steal_fd(&fd);
	return 0;
}

void zip_share(struct zip_writer *w, struct zip_chunks *c)
{
	w->shared = zip_chunks_join(c, w->fd);
	w->chunks = w->shared < 0 ? NULL : c;
	zip_ring_share(w->ring, c);
}

static void writer_free(struct zip_writer *w)
{
	zip_ring_free(w->ring);
	buf_release(&w->pending);
	digest_free(w->digest);
	if (w->fd >= 0)
		close(w->fd);
	for (size_t i = 0; i < w->count; i++)
		tdelete(w->entries[i].name, &w->names, compare_names);
	struct arena a = w->arena; /* the writer itself is in it */
	arena_release(&a);
}

void zip_abort(struct zip_writer *w)
{
	if (!w)
		return;
	unlink(w->path);
	writer_free(w);
}

static int write_out(struct zip_writer *w, const void *data, size_t len, struct err *e)
{
	if (fs_write_all(w->fd, data, len, w->path, e) < 0)
		return -1;
	/* Starts writeback now, which shortens the fsync at the end. */
	os_begin_writing(w->fd, (off_t)w->written, (off_t)len);
	if (!w->header_open && w->hashed == w->written) {
		digest_update(w->digest, data, len);
		w->hashed += len;
	}

	w->written += len;
	return 0;
}

static int flush(struct zip_writer *w, struct err *e)
{
	size_t len = w->pending.len;
	w->pending.len = 0;
	return len ? write_out(w, w->pending.data, len, e) : 0;
}

static int zip_writer_put(struct zip_writer *w, const void *data, size_t len, struct err *e)
{
	if (w->pending.len + len > ZIP_WRITE_BLOCK && flush(w, e) < 0)
		return -1;
	if (len > ZIP_WRITE_BLOCK)
		return write_out(w, data, len, e);
	buf_add(&w->pending, data, len);
	return 0;
}

static int write_header(struct zip_writer *w, const struct zip_entry *en, struct err *e)
{
	struct buf AUTO_BUF b = {0};
	put_header(&b, w, en, false);
	return zip_writer_put(w, b.data, b.len, e);
}

/* Sizes and CRC of an entry of several chunks are known behind the last one:
 * its header is written twice, and nothing of the entry is hashed before. */
static int rewrite_header(struct zip_writer *w, const struct zip_entry *en, struct err *e)
{
	struct buf AUTO_BUF b = {0};

	put_header(&b, w, en, false);
	if (flush(w, e) < 0 || fs_write_at(w->fd, b.data, b.len, en->offset, w->path, e) < 0)
		return -1;
	w->header_open = false;
	/* Adds what is in the file up to `end` to the digest. */
	while (w->hashed < w->written) {
		uint64_t left = w->written - w->hashed;
		ssize_t n = fs_read_at(w->fd, w->block,
				       left < ZIP_HASH_BLOCK ? (size_t)left : ZIP_HASH_BLOCK,
				       w->hashed);
		if (n <= 0)
			return err_errno(e, ERR_SYSTEM, "cannot read back '%s'", w->path);
		digest_update(w->digest, w->block, (size_t)n);
		w->hashed += (size_t)n;
	}

	return 0;
}

static int write_slot(struct zip_writer *w, const struct zip_slot *s, struct err *e)
{
	struct zip_entry *en = &w->entries[s->entry];

	if (s->failed) {
		*e = s->err;
		return err_wrap(e, "'%s'", en->name);
	}

	bool raw = s->out_len == 0;
	size_t len = raw ? s->raw_len : s->out_len;
	if (s->index == 0) {
		en->offset = w->written + w->pending.len;
		en->method = raw ? ZIP_STORED : ZIP_DEFLATED;
		en->crc = s->crc;
		en->packed = len;
		if (!s->last && flush(w, e) < 0)
			return -1;
		w->header_open = !s->last;
		if (write_header(w, en, e) < 0)
			return -1;
	} else {
		en->crc = (uint32_t)crc32_combine(en->crc, s->crc, (z_off_t)s->raw_len);
		en->packed += len;
	}

	if (zip_writer_put(w, raw ? s->raw : s->out, len, e) < 0)
		return -1;
	if (w->chunks && !raw && zip_chunks_worth(s)) {
		if (flush(w, e) < 0)
			return -1;
		zip_chunks_add(w->chunks, s, w->shared, w->written - len);
	}

	return s->last && s->index ? rewrite_header(w, en, e) : 0;
}

/* Writes what is done, and at least one chunk if `need`. */
static int write_done(struct zip_writer *w, bool need, struct err *e)
{
	for (struct zip_slot *s; (s = zip_ring_oldest(w->ring, need)); need = false) {
		if (write_slot(w, s, e) < 0)
			return -1;
		zip_ring_pop(w->ring);
	}

	return 0;
}

/* Writes all that was submitted. */
static int empty_ring(struct zip_writer *w, struct err *e)
{
	while (zip_ring_oldest(w->ring, true))
		if (write_done(w, true, e) < 0)
			return -1;
	return 0;
}

static int next_slot(struct zip_writer *w, size_t len, struct zip_slot **ret, struct err *e)
{
	if (write_done(w, false, e) < 0)
		return -1;
	while (!(*ret = zip_ring_fill(w->ring, len)))
		if (write_done(w, true, e) < 0)
			return -1;
	return 0;
}

/* Appends an entry; its name must be safe and new. */
static int zip_writer_entry(struct zip_writer *w, const char *name, struct zip_entry entry,
			    struct err *e)
{
	if (!path_is_safe_relative(name) || strchr(name, '\\') || strlen(name) > ZIP_MAX16)
		return err_set(e, ERR_INTEGRITY, "unsafe name for an archive entry: '%s'", name);
	const char *own = entry.name = arena_strdup(&w->arena, name);
	const char *const *found = tsearch(own, &w->names, compare_names);
	if (!found)
		abort();
	if (*found != own)
		return err_set(e, ERR_INTEGRITY, "'%s' is in '%s' already", name, w->path);
	w->entries = arena_room(&w->arena, w->entries, w->count, &w->cap, 256, sizeof(*w->entries));
	entry.mode = S_IFREG | (entry.mode & S_IXUSR ? 0755 : 0644);
	w->entries[w->count++] = entry;
	return 0;
}

/* Where the contents come from: `data`, or else a file, which is also hashed. */
struct source {
	const uint8_t *data;
	int fd;
	const char *path;
	struct digest *digest;
	const struct zip_mark *marks;
	size_t marks_count;
};

static int fill(const struct source *s, uint64_t at, struct zip_slot *slot, struct err *e)
{
	uint8_t *to = slot->raw;
	size_t len = slot->raw_len;

	if (s->data) {
		memcpy(to, s->data + at, len);
		return 0;
	}

	ssize_t n = fs_read_at(s->fd, to, len, at);
	if (n < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", s->path);
	if ((size_t)n < len)
		return err_set(e, ERR_SYSTEM, "'%s' became shorter while it was read", s->path);
	digest_update(s->digest, to, len);
	return 0;
}

static int add_chunks(struct zip_writer *w, const struct source *source, struct err *e)
{
	size_t entry = w->count - 1, index = 0, mark = 0;
	uint64_t size = w->entries[entry].size, at = 0;
	struct zip_mark part = {0};

	do {
		struct zip_slot *s;
		size_t len = size - at < ZIP_CHUNK ? (size_t)(size - at) : ZIP_CHUNK;
		while (mark < source->marks_count && source->marks[mark].at <= at)
			part = source->marks[mark++];
		if (mark < source->marks_count && source->marks[mark].at - at < len)
			len = (size_t)(source->marks[mark].at - at);
		if (next_slot(w, len, &s, e) < 0)
			return -1;
		s->raw_len = len;
		if (len && fill(source, at, s, e) < 0)
			return -1;
		s->origin = part.origin ? part.origin + (at - part.at) : 0;
		at += len;
		s->entry = entry;
		s->index = index++;
		s->last = at == size;
		s->whole = s->last && s->index == 0;
		s->store = size < ZIP_MAX32 && size >= ZIP_MAX32 - STORE_SLACK;
		zip_ring_submit(w->ring);
	} while (at < size);
	return 0;
}

int zip_add_parts(struct zip_writer *w, const char *name, const char *path,
		  const struct zip_mark *marks, size_t count, uint8_t ret_sha256[32],
		  uint64_t *ret_size, struct err *e)
{
	int AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "not a regular file: '%s'", path);
	struct digest *AUTO_DIGEST digest = digest_new();
	const struct source source = {
		.fd = fd, .path = path, .digest = digest, .marks = marks, .marks_count = count};
	char extra;
	if (zip_writer_entry(w, name,
			     (struct zip_entry){.size = (uint64_t)st.st_size, .mode = st.st_mode},
			     e) < 0 ||
	    add_chunks(w, &source, e) < 0)
		return -1;
	ssize_t more = fs_read_at(fd, &extra, 1, (uint64_t)st.st_size);
	if (more < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	if (more > 0)
		return err_set(e, ERR_SYSTEM, "'%s' became longer while it was read", path);
	digest_final(digest, ret_sha256);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

int zip_add_data(struct zip_writer *w, const char *name, const void *data, size_t len,
		 struct err *e)
{
	return zip_writer_entry(w, name, (struct zip_entry){.size = len}, e) < 0
		       ? -1
		       : add_chunks(w, &(struct source){.data = data}, e);
}

enum { ZIP_COPY_SMALL = 256 * 1024 };

static int bad_copy(struct err *e, const struct zip_reader *z, const struct zip_entry *en,
		    const char *what)
{
	return err_set(e, ERR_INTEGRITY, "cannot copy entry '%s' of '%s': it %s", en->name, z->path,
		       what);
}

/* Entries that are copied: the bytes from `from` on. */
struct copying {
	struct zip_writer *w;
	const struct zip_reader *z;
	uint64_t from, len;
	struct err err[2];
	int rc[2];
};

/* The header in the file must be the one that this writer would write. The reader has compared the
 * fields that both headers share; flags, version and length show the rest. */
static int adopt(const struct copying *c, size_t i, struct err *e)
{
	struct zip_writer *w = c->w;
	const struct zip_reader *z = c->z;
	const struct zip_entry *en = &z->entries[i];

	if (!S_ISREG(en->mode) || ((en->mode & 07777) != 0755 && (en->mode & 07777) != 0644))
		return bad_copy(e, z, en, "has a mode other than 0644 and 0755");
	if (zip_writer_entry(w, en->name, *en, e) < 0)
		return -1;
	w->entries[w->count - 1].offset = en->offset - c->from + w->written;
	size_t len = sizeof(struct zip_local) + strlen(en->name) +
		     (en->size >= ZIP_MAX32 || en->packed >= ZIP_MAX32 ? 20 : 0);
	if (z->data[i] - en->offset != len)
		return bad_copy(e, z, en, "has a header of unexpected length");
	return z->plain[i] && en->dos_time == w->dos_time
		       ? 0
		       : bad_copy(e, z, en, "has an unexpected header");
}

/* Whether the kernel cannot copy between these two files, though they can be read and written. */
static bool is_unsupported(int number)
{
	return number == EXDEV || number == EINVAL || number == ENOSYS || number == EOPNOTSUPP;
}

static int copy_bytes(const struct copying *c, struct err *e)
{
	off_t in = (off_t)c->from, end = (off_t)(c->from + c->len);
	uint8_t block[64 * 1024];

	while (in < end) {
		const off_t at = in;
		size_t want = (uint64_t)(end - in) < ZIP_CHUNK ? (size_t)(end - in) : ZIP_CHUNK;
		ssize_t n = os_copy(c->z->fd, &in, c->w->fd, want);
		if (n < 0 && is_unsupported(errno)) {
			want = want < sizeof(block) ? want : sizeof(block);
			if (zip_read_at(c->z, (uint64_t)in, block, want, e) < 0 ||
			    fs_write_all(c->w->fd, block, want, c->w->path, e) < 0)
				return -1;
			n = (ssize_t)want;
			in += n;
		}

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, ERR_SYSTEM, "cannot copy '%s' into '%s'", c->z->path,
					 c->w->path);
		if (n == 0)
			return err_set(e, ERR_SYSTEM, "'%s' became shorter while it was read",
				       c->z->path);
		os_begin_writing(c->w->fd, (off_t)(c->w->written + (uint64_t)at - c->from), n);
	}

	return 0;
}

static int hash_bytes(const struct copying *c, struct err *e)
{
	for (uint64_t at = 0; at < c->len;) {
		size_t n = c->len - at < ZIP_HASH_BLOCK ? (size_t)(c->len - at) : ZIP_HASH_BLOCK;
		if (zip_read_at(c->z, c->from + at, c->w->block, n, e) < 0)
			return -1;
		digest_update(c->w->digest, c->w->block, n);
		at += n;
	}

	return 0;
}

static void copy_or_hash(unsigned i, void *user)
{
	struct copying *c = user;
	c->rc[i] = i == 0 ? copy_bytes(c, &c->err[i]) : hash_bytes(c, &c->err[i]);
}

/* All before it is in the digest. */
static int copy_range(struct copying *c, struct err *e)
{
	thread_each(2, copy_or_hash, c);
	for (size_t i = 0; i < ARRAY_LEN(c->rc); i++)
		if (c->rc[i] < 0) {
			*e = c->err[i];
			return -1;
		}
	c->w->written += c->len;
	c->w->hashed += c->len;
	return 0;
}

int zip_copy(struct zip_writer *w, const struct zip_reader *z, size_t first, size_t count,
	     struct err *e)
{
	if (!count)
		return 0;
	if (empty_ring(w, e) < 0 || flush(w, e) < 0)
		return -1;
	struct copying c = {.w = w, .z = z, .from = z->entries[first].offset};
	uint64_t end = c.from;
	for (size_t i = first; i < first + count; i++) {
		if (i > first && z->entries[i].offset != end)
			return bad_copy(e, z, &z->entries[i],
					"does not follow the entry before it in the directory");
		if (adopt(&c, i, e) < 0)
			return -1;
		end = z->data[i] + z->entries[i].packed;
	}

	c.len = end - c.from;
	return copy_range(&c, e);
}

int zip_copy_as(struct zip_writer *w, const struct zip_reader *z, const struct zip_entry *en,
		const char *name, struct err *e)
{
	AUTO_BUF struct buf small = {0};
	struct copying c = {.w = w, .z = z, .from = z->data[en - z->entries], .len = en->packed};

	/* The header comes behind all that was submitted, and its offset is known then. */
	if (zip_writer_entry(w, name, *en, e) < 0 || empty_ring(w, e) < 0)
		return -1;
	w->entries[w->count - 1].offset = w->written + w->pending.len;
	if (write_header(w, &w->entries[w->count - 1], e) < 0)
		return -1;
	if (en->packed > ZIP_COPY_SMALL)
		return flush(w, e) < 0 ? -1 : copy_range(&c, e);
	if (zip_read_at(z, c.from, buf_reserve(&small, en->packed), en->packed, e) < 0)
		return -1;
	return zip_writer_put(w, small.data, en->packed, e);
}

static int finish(struct zip_writer *w, uint8_t ret_sha256[32], struct err *e)
{
	if (empty_ring(w, e) < 0 || flush(w, e) < 0)
		return -1;
	struct buf AUTO_BUF b = {0};
	for (size_t i = 0; i < w->count; i++)
		put_header(&b, w, &w->entries[i], true);
	const struct zip_end64 wide = {.signature = ZIP_END64_SIG,
				       .length = sizeof(wide) - 12,
				       .made_by = ZIP_UNIX << 8 | ZIP_VERSION_64,
				       .version = ZIP_VERSION_64,
				       .disk_count = w->count,
				       .count = w->count,
				       .size = b.len,
				       .offset = w->written};
	const struct zip_locator locator = {
		.signature = ZIP_LOCATOR_SIG, .offset = w->written + b.len, .disks = 1};
	uint16_t shown = w->count >= ZIP_MAX16 ? ZIP_MAX16 : (uint16_t)w->count;
	const struct zip_end end = {.signature = ZIP_END_SIG,
				    .disk_count = shown,
				    .count = shown,
				    .size = b.len >= ZIP_MAX32 ? ZIP_MAX32 : (uint32_t)b.len,
				    .offset = w->written >= ZIP_MAX32 ? ZIP_MAX32
								      : (uint32_t)w->written};
	if (w->count >= ZIP_MAX16 || w->written >= ZIP_MAX32 || b.len >= ZIP_MAX32) {
		buf_add(&b, &wide, sizeof(wide));
		buf_add(&b, &locator, sizeof(locator));
	}

	buf_add(&b, &end, sizeof(end));
	if (zip_writer_put(w, b.data, b.len, e) < 0 || flush(w, e) < 0)
		return -1;
	int fd = steal_fd(&w->fd);
	if (fsync(fd) < 0) {
		err_errno(e, ERR_SYSTEM, "cannot write '%s' to disk", w->path);
		close(fd);
		return -1;
	}

	if (close(fd) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot close '%s'", w->path);
	digest_final(w->digest, ret_sha256);
	return 0;
}

int zip_finish(struct zip_writer *w, uint8_t ret_sha256[32], struct err *e)
{
	if (finish(w, ret_sha256, e) < 0) {
		zip_abort(w);
		return -1;
	}

	writer_free(w);
	return 0;
}
