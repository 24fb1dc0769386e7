/* Opens an archive so that every reader sees the same entries: a streaming reader's local
 * headers and a seeking one's central directory must agree, and nothing else may be in the file. */

#include <inttypes.h>

#include "base/sys/fs.h"
#include "core/zip/zip_parts.h"

enum {
	DIRECTORY_MAX = 256 << 20,                               /* some two million entries */
	FLAGS_ALLOWED = 6 | ZIP_FLAG_DESCRIPTOR | ZIP_FLAG_UTF8, /* bits 1 and 2: deflate's level */
	EXTRA_UNICODE_PATH = 0x7075,
	EXTRA_UNICODE_COMMENT = 0x6375,
};

/* One central or local header, zip64 already resolved. */
struct header {
	unsigned flags, method;
	uint32_t time, crc;
	uint64_t packed, size, offset;
	const uint8_t *name;
	size_t name_len;
	size_t index; /* of the entry */
};

struct directory {
	uint64_t count, size, offset;
	uint64_t end; /* where it must end: the first byte of the end records */
	uint8_t *bytes;
	struct header *headers; /* one for each entry */
};

static struct header header_of(const struct zip_common *c, uint32_t offset, const uint8_t *name)
{
	return (struct header){.flags = c->flags,
			       .method = c->method,
			       .time = c->time,
			       .crc = c->crc,
			       .packed = c->packed,
			       .size = c->size,
			       .offset = offset,
			       .name = name,
			       .name_len = c->name_len};
}

int zip_read_at(const struct zip_reader *z, uint64_t offset, void *to, size_t len, struct err *e)
{
	ssize_t n = fs_read_at(z->fd, to, len, offset);

	if (n < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", z->path);
	if ((size_t)n < len)
		return err_set(e, ERR_INTEGRITY,
			       "truncated archive '%s': it ends at offset %" PRIu64, z->path,
			       offset + (uint64_t)n);
	return 0;
}

static int bad(struct err *e, const struct zip_reader *z, uint64_t offset, const char *what)
{
	return err_set(e, ERR_INTEGRITY, "damaged archive '%s': %s at offset %" PRIu64, z->path,
		       what, offset);
}

static int bad_entry(const struct zip_reader *z, const struct zip_entry *en, const char *what,
		     struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "damaged archive '%s': entry '%s' %s (offset %" PRIu64 ")",
		       z->path, en->name, what, en->offset);
}

/* Whether a field of the old end record has the value, or `max` where it is too large for it. */
static bool is_short_of(uint64_t field, uint64_t value, uint64_t max)
{
	return field == (value < max ? value : max);
}

/* The records at the end of an archive: the old one, and what points to that of zip64. */
struct tail {
	uint64_t end_at;
	struct zip_end end;
	struct zip_locator locator;
};

static int read_end_64(const struct zip_reader *z, const struct tail *tail, struct directory *d,
		       struct err *e)
{
	const struct zip_end *end = &tail->end;
	struct zip_end64 r;
	uint64_t at = tail->locator.offset, locator_at = tail->end_at - sizeof(tail->locator);

	if (tail->locator.disk != 0 || tail->locator.disks != 1)
		return bad(e, z, locator_at, "more than one disk");
	if (locator_at < sizeof(r) || at != locator_at - sizeof(r))
		return bad(e, z, locator_at, "the zip64 locator has a wrong offset");
	if (zip_read_at(z, at, &r, sizeof(r), e) < 0)
		return -1;
	if (r.signature != ZIP_END64_SIG || r.length != sizeof(r) - 12)
		return bad(e, z, at, "no zip64 end record");
	if (r.disk != 0 || r.directory_disk != 0 || r.disk_count != r.count)
		return bad(e, z, at, "more than one disk");
	*d = (struct directory){.count = r.count, .size = r.size, .offset = r.offset, .end = at};
	if (d->count < ZIP_MAX16 && d->size < ZIP_MAX32 && d->offset < ZIP_MAX32)
		return bad(e, z, at, "a superfluous zip64 end record");
	bool same_count = is_short_of(end->count, d->count, ZIP_MAX16);
	bool same_size = is_short_of(end->size, d->size, ZIP_MAX32);
	bool same_offset = is_short_of(end->offset, d->offset, ZIP_MAX32);
	if (!same_count || !same_size || !same_offset)
		return bad(e, z, tail->end_at, "the two end records differ");
	return 0;
}

/* The file does not end with a plain end record: one before it has
 * a comment, in which readers find no other, or says what is wrong. */
static int find_end(const struct zip_reader *z, uint64_t *ret, struct err *e)
{
	struct arena AUTO_ARENA scratch = {0};
	struct zip_end end;
	size_t len = z->size < sizeof(end) + ZIP_MAX16 ? (size_t)z->size : sizeof(end) + ZIP_MAX16;
	uint64_t from = z->size - len, at = z->size - sizeof(end);
	uint8_t *tail = arena_alloc(&scratch, len);

	if (zip_read_at(z, from, tail, len, e) < 0)
		return -1;
	for (size_t i = len - sizeof(end) + 1; i-- > 0;) {
		size_t behind = len - i - sizeof(end);
		memcpy(&end, tail + i, sizeof(end));
		if (end.signature != ZIP_END_SIG)
			continue;
		if (end.comment_len == behind && memmem(tail + i + 4, len - i - 4, tail + i, 4))
			return bad(e, z, from + i, "a comment that looks like an archive");
		if (end.comment_len == behind) {
			*ret = from + i;
			return 0;
		}

		return err_set(
			e, ERR_INTEGRITY,
			"damaged archive '%s': %zu extra bytes after its end at offset %" PRIu64,
			z->path, behind, z->size - behind);
	}

	bad(e, z, at, "no end record where the file ends");
	return err_hint(e, "the file is truncated, or not an archive");
}

static int read_end(const struct zip_reader *z, struct directory *d, struct err *e)
{
	struct tail t = {0};

	if (z->size < sizeof(t.end))
		return bad(e, z, 0, "too short for an end record");
	uint64_t at = z->size - sizeof(t.end);
	if (zip_read_at(z, at, &t.end, sizeof(t.end), e) < 0)
		return -1;
	if ((t.end.signature != ZIP_END_SIG || t.end.comment_len != 0) &&
	    (find_end(z, &at, e) < 0 || zip_read_at(z, at, &t.end, sizeof(t.end), e) < 0))
		return -1;
	if (t.end.disk != 0 || t.end.directory_disk != 0 || t.end.disk_count != t.end.count)
		return bad(e, z, at, "more than one disk");
	*d = (struct directory){
		.count = t.end.count, .size = t.end.size, .offset = t.end.offset, .end = at};
	if (at >= sizeof(t.locator) &&
	    zip_read_at(z, at - sizeof(t.locator), &t.locator, sizeof(t.locator), e) < 0)
		return -1;
	t.end_at = at;
	bool found = t.locator.signature == ZIP_LOCATOR_SIG;
	if (found && read_end_64(z, &t, d, e) < 0)
		return -1;
	if (!found && (d->size == ZIP_MAX32 || d->offset == ZIP_MAX32))
		return bad(e, z, at, "the zip64 end record is missing");
	if (d->offset > d->end || d->size != d->end - d->offset)
		return bad(e, z, at, "the central directory is not where the end record says");
	if (d->size > DIRECTORY_MAX)
		return bad(e, z, at, "central directory larger than 256 MiB");
	if (d->count > d->size / sizeof(struct zip_central))
		return bad(e, z, at, "more entries than the central directory has room for");
	return 0;
}

static const char *read_extra(const uint8_t *p, size_t len, bool local, struct header *h)
{
	const uint8_t *zip64 = NULL;
	size_t zip64_len = 0;

	while (len) {
		size_t n;
		if (len < 4 || (n = zip_get(p + 2, 2)) > len - 4)
			return "has a truncated extra field";
		uint64_t id = zip_get(p, 2);
		if (id == EXTRA_UNICODE_PATH || id == EXTRA_UNICODE_COMMENT)
			return "has a second name in an extra field";
		if (id == ZIP_EXTRA_64) {
			if (zip64)
				return "has two zip64 fields";
			zip64 = p + 4;
			zip64_len = n;
		}

		p += 4 + n;
		len -= 4 + n;
	}

	/* The zip64 field must be there exactly when one of the values asks for it, and hold
	 * exactly those. Some build tools repeat the plain sizes in a local one: harmless. */
	uint64_t *values[] = {&h->size, &h->packed, &h->offset};
	size_t at = 0;
	/* a local header has both or none */
	bool all = local && (h->size == ZIP_MAX32 || h->packed == ZIP_MAX32);
	for (size_t i = 0; i < (local ? 2 : 3); i++) {
		if (*values[i] != ZIP_MAX32 && !all)
			continue;
		if (!zip64 || zip64_len - at < 8)
			return "lacks a zip64 value";
		if (all && *values[i] != ZIP_MAX32)
			return "has only one of the two sizes in zip64";
		*values[i] = zip_get(zip64 + at, 8);
		at += 8;
	}

	bool repeated = local && at == 0 && zip64_len == 16;
	if (repeated)
		repeated = zip_get(zip64, 8) == h->size && zip_get(zip64 + 8, 8) == h->packed;
	return zip64 && at != zip64_len && !repeated ? "has superfluous zip64 values" : NULL;
}

static const char *check_name(const struct header *h, char *name)
{
	bool ascii = true;

	for (size_t i = 0; i < h->name_len; i++) {
		unsigned char c = h->name[i];
		if (c < 0x20 || c == 0x7f || c == '\\')
			return "has control bytes or a backslash in its name";
		ascii = ascii && c < 0x80;
	}

	if (!ascii && !(h->flags & ZIP_FLAG_UTF8))
		return "has a name that is neither ASCII nor marked as UTF-8";
	if (!utf8_valid(name))
		return "has a name that is not UTF-8";
	bool dir = h->name_len && name[h->name_len - 1] == '/';
	if (dir)
		name[h->name_len - 1] = '\0';
	bool safe = path_is_safe_relative(name);
	if (dir)
		name[h->name_len - 1] = '/';
	if (!safe)
		return "has an unsafe name";
	/* Two bytes are what deflate makes of nothing. */
	return dir && (h->size || h->packed > 2) ? "is a directory with contents" : NULL;
}

static const char *check_kind(const struct header *h, const struct zip_entry *en)
{
	if (h->flags & ~(unsigned)FLAGS_ALLOWED)
		return h->flags & (1 | 1 << 6 | 1 << 13) ? "is encrypted"
							 : "has flags that a wheel must not have";
	if (h->method != ZIP_STORED && h->method != ZIP_DEFLATED)
		return "has a compression method other than stored and deflate";
	if (h->method == ZIP_STORED && h->packed != h->size)
		return "is stored but has two sizes";
	if (S_ISLNK(en->mode))
		return "is a symbolic link";
	bool dir = en->name[h->name_len - 1] == '/';
	if (en->mode & S_IFMT && !(dir ? S_ISDIR(en->mode) : S_ISREG(en->mode)))
		return "has a file type that its name contradicts";
	return NULL;
}

/* What is wrong with a central header, in words; NULL: nothing. Fills in the values of zip64. */
static const char *check_central(const struct zip_central *c, char *name, struct header *h)
{
	if (!*name || strlen(name) != h->name_len)
		return "has an empty name or one with NUL bytes";
	if (c->comment_len)
		return "has a comment";
	if (c->disk)
		return "is on another disk";
	const char *what = read_extra(h->name + h->name_len, c->common.extra_len, false, h);
	return what ? what : check_name(h, name);
}

static int read_central(struct zip_reader *z, const struct directory *d, struct arena *a,
			struct err *e)
{
	uint64_t at = 0;

	for (size_t i = 0; i < d->count; i++) {
		const uint8_t *p = d->bytes + at;
		struct zip_entry *en = &z->entries[i];
		struct header *h = &d->headers[i];
		const struct zip_central *c = (const void *)p;
		if (d->size - at < sizeof(*c) || c->signature != ZIP_CENTRAL_SIG)
			return bad(e, z, d->offset + at, "no central header");
		size_t extra_len = c->common.extra_len,
		       len = sizeof(*c) + c->common.name_len + extra_len + c->comment_len;
		if (d->size - at < len)
			return bad(e, z, d->offset + at, "a truncated central header");
		*h = header_of(&c->common, c->offset, p + sizeof(*c));
		h->index = i;
		char *name = arena_strndup(a, (const char *)h->name, h->name_len);
		const char *what = check_central(c, name, h);
		*en = (struct zip_entry){name,      h->size, h->packed,
					 h->offset, h->crc,  (uint16_t)h->method,
					 0,         h->time};
		if (c->made_by >> 8 == ZIP_UNIX)
			en->mode = c->external >> 16;
		if (!what)
			what = check_kind(h, en);
		if (what)
			return bad_entry(
				z, &(struct zip_entry){.name = name, .offset = d->offset + at},
				what, e);
		at += len;
	}

	return at == d->size ? 0
			     : bad(e, z, d->offset + at, "extra bytes in the central directory");
}

static int by_name(const void *a, const void *b)
{
	const struct zip_entry *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

static int by_offset(const void *a, const void *b)
{
	const struct zip_entry *const *x = a, *const *y = b;
	return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

/* Duplicates, and names that would be both a file and a directory. */
static int check_names(const struct zip_reader *z, struct err *e)
{
	for (size_t i = 0; i < z->count; i++) {
		const struct zip_entry *en = z->by_name[i];
		if (i + 1 < z->count && strcmp(en->name, z->by_name[i + 1]->name) == 0)
			return bad_entry(z, z->by_name[i + 1], "occurs twice", e);
		struct arena AUTO_ARENA scratch = {0};
		char *parent = arena_strdup(&scratch, en->name);
		for (char *slash; (slash = strrchr(parent, '/'));) {
			*slash = '\0';
			if (zip_find(z, parent))
				return bad_entry(
					z,
					&(struct zip_entry){.name = parent, .offset = en->offset},
					"is a file and a directory", e);
		}
	}

	return 0;
}

/* Checks the values after the data of an entry that was written as a stream; `gap` bytes of any
 * kind are there. */
static const char *check_descriptor(const uint8_t *p, uint64_t gap, const struct zip_entry *en)
{
	const char *what = "has a wrong data descriptor";
	bool wide = gap == 20 || gap == 24, signed_ = gap == 16 || gap == 24;

	if (gap != 12 && gap != 16 && gap != 20 && gap != 24)
		return what;
	if (signed_ && zip_get(p, 4) != ZIP_DESCRIPTOR_SIG)
		return what;
	p += signed_ ? 4 : 0;
	size_t width = wide ? 8 : 4;
	return zip_get(p, 4) == en->crc && zip_get(p + 4, width) == en->packed &&
			       zip_get(p + 4 + width, width) == en->size
		       ? NULL
		       : what;
}

static const char *compare_headers(const struct header *l, const struct header *c)
{
	if (!c->name || l->name_len != c->name_len || memcmp(l->name, c->name, l->name_len) != 0)
		return "has a different name in its local header";
	if (l->flags != c->flags || l->method != c->method || l->time != c->time)
		return "has different flags, method or time in its local header";
	bool streamed = l->flags & ZIP_FLAG_DESCRIPTOR;
	if (streamed && !l->crc && !l->packed && !l->size)
		return NULL;
	if (l->crc != c->crc || l->packed != c->packed || l->size != c->size)
		return "has a different size or checksum in its local header";
	return NULL;
}

/* One local header; `next` is where the following one starts. */
/* `next`: where the next entry or the directory begins. */
static int check_local(struct zip_reader *z, const struct header *central, uint64_t next,
		       struct err *e)
{
	const size_t i = central->index;
	const struct zip_entry *en = &z->entries[i];
	/* Most headers come whole with one read: a wheel has ten thousand. */
	uint8_t head[512], tail[24];
	const struct zip_local *l = (const void *)head;
	size_t have = sizeof(*l) + central->name_len + 32;

	if (next - en->offset < sizeof(*l))
		return bad_entry(z, en, "overlaps the next one", e);
	have = have < sizeof(head) ? have : sizeof(head);
	have = have < next - en->offset ? have : (size_t)(next - en->offset);
	if (zip_read_at(z, en->offset, head, have, e) < 0)
		return -1;
	if (l->signature != ZIP_LOCAL_SIG)
		return bad_entry(z, en, "has no local header", e);
	size_t name_len = l->common.name_len, extra_len = l->common.extra_len,
	       rest = name_len + extra_len;
	uint64_t room = next - en->offset - sizeof(*l);
	if (room < rest || room - rest < en->packed)
		return bad_entry(z, en, "overlaps the next one", e);
	struct arena AUTO_ARENA scratch = {0};
	uint8_t *names = head + sizeof(*l);
	if (rest > have - sizeof(*l)) {
		names = arena_alloc(&scratch, rest);
		if (zip_read_at(z, en->offset + sizeof(*l), names, rest, e) < 0)
			return -1;
	}

	struct header h = header_of(&l->common, 0, names);
	const char *what = read_extra(names + name_len, extra_len, true, &h);
	if (!what)
		what = compare_headers(&h, central);
	z->data[i] = en->offset + sizeof(*l) + rest;
	z->plain[i] = (h.flags & ~(unsigned)ZIP_FLAG_UTF8) == 0 &&
		      l->common.version == (extra_len ? ZIP_VERSION_64 : ZIP_VERSION);
	uint64_t gap = room - rest - en->packed;
	if (!what && !(h.flags & ZIP_FLAG_DESCRIPTOR) && gap)
		what = "is followed by bytes of no entry";
	if (!what && h.flags & ZIP_FLAG_DESCRIPTOR) {
		if (gap <= sizeof(tail) && zip_read_at(z, next - gap, tail, (size_t)gap, e) < 0)
			return -1;
		what = check_descriptor(tail, gap, en);
	}

	return what ? bad_entry(z, en, what, e) : 0;
}

/* All local records one behind the other, from the first byte up to the central directory. */
static int check_layout(struct zip_reader *z, const struct directory *d, struct err *e)
{
	struct arena AUTO_ARENA scratch = {0};
	const struct zip_entry **order = arena_array(&scratch, z->count, sizeof(void *));

	for (size_t i = 0; i < z->count; i++)
		order[i] = &z->entries[i];
	qsort(order, z->count, sizeof(void *), by_offset);
	uint64_t first = z->count ? order[0]->offset : d->offset;
	if (first != 0)
		return bad(e, z, 0, "bytes of no entry");
	for (size_t k = 0; k < z->count; k++) {
		uint64_t next = k + 1 < z->count ? order[k + 1]->offset : d->offset;
		if (next < order[k]->offset || next > d->offset)
			return bad_entry(z, order[k], "is outside the archive's data", e);
		if (check_local(z, &d->headers[order[k] - z->entries], next, e) < 0)
			return -1;
	}

	return 0;
}

static int read_directory(struct zip_reader *z, struct arena *a, struct err *e)
{
	struct directory d = {0};
	struct arena AUTO_ARENA scratch = {0};

	if (read_end(z, &d, e) < 0)
		return -1;
	d.bytes = arena_alloc(&scratch, d.size);
	d.headers = arena_array(&scratch, d.count, sizeof(*d.headers));
	if (zip_read_at(z, d.offset, d.bytes, d.size, e) < 0)
		return -1;
	z->count = d.count;
	z->entries = arena_array(a, d.count, sizeof(*z->entries));
	z->by_name = arena_array(a, d.count, sizeof(void *));
	z->data = arena_array(a, d.count, sizeof(*z->data));
	z->plain = arena_array(a, d.count, sizeof(*z->plain));
	if (read_central(z, &d, a, e) < 0)
		return -1;
	for (size_t i = 0; i < z->count; i++)
		z->by_name[i] = &z->entries[i];
	qsort(z->by_name, z->count, sizeof(void *), by_name);
	return check_names(z, e) < 0 ? -1 : check_layout(z, &d, e);
}

int zip_open(const char *path, struct arena *a, struct zip_reader **ret, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? err_errno(e, ERR_SYSTEM, "cannot open '%s'", path)
		      : zip_open_fd(fd, path, a, ret, e);
}

int zip_open_fd(int given, const char *path, struct arena *a, struct zip_reader **ret,
		struct err *e)
{
	struct stat st;

	int AUTO_FD fd = given;
	if (fstat(fd, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INTEGRITY, "not a regular file: '%s'", path);
	struct zip_reader *z = arena_alloc(a, sizeof(*z));
	*z = (struct zip_reader){
		.fd = fd, .path = arena_strdup(a, path), .size = (uint64_t)st.st_size};
	if (read_directory(z, a, e) < 0)
		return -1;
	steal_fd(&fd);
	*ret = z;
	return 0;
}

void zip_close(struct zip_reader *z)
{
	if (!z || z->fd < 0)
		return;
	close(z->fd);
	z->fd = -1;
}

size_t zip_count(const struct zip_reader *z)
{
	return z->count;
}

const struct zip_entry *zip_at(const struct zip_reader *z, size_t i)
{
	return &z->entries[i];
}

const struct zip_entry *zip_sorted(const struct zip_reader *z, size_t i)
{
	return z->by_name[i];
}

const struct zip_entry *zip_find(const struct zip_reader *z, const char *name)
{
	const struct zip_entry wanted = {.name = name}, *key = &wanted;
	const struct zip_entry **found =
		bsearch(&key, z->by_name, z->count, sizeof(void *), by_name);

	return found ? *found : NULL;
}
