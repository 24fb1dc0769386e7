/* Copies entries from another archive. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/os.h"
#include "base/sys/fs.h"
#include "core/zip/zip_format.h"
#include "core/zip/zip_writer.h"

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

enum { ZIP_COPY_SMALL = 256 * 1024 };

static int bad_copy(struct err *e, const struct zip_reader *z, const struct zip_entry *en, const char *what)
{
	return err_set(e, ERR_INTEGRITY, "cannot copy entry '%s' of '%s': it %s", en->name, z->path, what);
}

/* The header in the file must be the one that this writer would write. The reader has compared what the local header
 * shares with the central one; flags, version and length tell the rest. */
static int adopt(struct zip_writer *w, const struct zip_reader *z, size_t i, uint64_t base, struct err *e)
{
	const struct zip_entry *en = &z->entries[i];
	if (!S_ISREG(en->mode) || ((en->mode & 07777) != 0755 && (en->mode & 07777) != 0644))
		return bad_copy(e, z, en, "has a mode other than 0644 and 0755");
	if (zip_writer_entry(w, en->name, en->size, en->mode & 07777, e) < 0)
		return -1;
	struct zip_out_entry *out = &w->entries[w->count - 1];
	out->packed = en->packed;
	out->crc = en->crc;
	out->method = en->method;
	out->offset = en->offset - base + w->written;
	size_t len = sizeof(struct zip_local) + strlen(en->name) +
		     (out->size >= ZIP_MAX32 || out->packed >= ZIP_MAX32 ? 20 : 0);
	if (z->data[i] - en->offset != len)
		return bad_copy(e, z, en, "has a header of unexpected length");
	return z->plain[i] && en->dos_time == w->dos_time ? 0 : bad_copy(e, z, en, "has an unexpected header");
}

static int copy_range(struct zip_writer *w, const struct zip_reader *z, uint64_t from, uint64_t len, struct err *e)
{
	off_t in = (off_t)from;
	while (len) {
		ssize_t n = os_copy(z->fd, &in, w->fd, len);
		if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
			uint8_t block[64 * 1024];
			size_t want = len < sizeof(block) ? (size_t)len : sizeof(block);
			if (zip_read_at(z, (uint64_t)in, block, want, e) < 0 ||
			    fs_write_all(w->fd, block, want, w->path, e) < 0)
				return -1;
			n = (ssize_t)want;
			in += n;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, ERR_SYSTEM, "cannot copy '%s' into '%s'", z->path, w->path);
		if (n == 0)
			return err_set(e, ERR_SYSTEM, "'%s' became shorter while it was read", z->path);
		len -= (uint64_t)n;
		w->written += (uint64_t)n;
	}
	return zip_writer_hash(w, w->written, e);
}

int zip_copy(struct zip_writer *w, const struct zip_reader *z, size_t first, size_t count, struct err *e)
{
	if (!count)
		return 0;
	if (zip_writer_drain(w, e) < 0)
		return -1;
	uint64_t base = z->entries[first].offset, end = base;
	for (size_t i = first; i < first + count; i++) {
		if (i > first && z->entries[i].offset != end)
			return bad_copy(e, z, &z->entries[i], "does not follow the entry before it in the directory");
		if (adopt(w, z, i, base, e) < 0)
			return -1;
		end = z->data[i] + z->entries[i].packed;
	}
	return copy_range(w, z, base, end - base, e);
}

int zip_copy_as(struct zip_writer *w, const struct zip_reader *z, const struct zip_entry *en, const char *name,
		struct err *e)
{
	AUTO_BUF struct buf small = {0};
	uint64_t at = z->data[en - z->entries];
	if (zip_writer_entry(w, name, en->size, en->mode & S_IXUSR ? 0755 : 0644, e) < 0)
		return -1;
	struct zip_out_entry *out = &w->entries[w->count - 1];
	out->packed = en->packed;
	out->crc = en->crc;
	out->method = en->method;
	if (en->packed > ZIP_COPY_SMALL)
		return zip_writer_header(w, out, true, e) < 0 ? -1 : copy_range(w, z, at, en->packed, e);
	if (zip_read_at(z, at, buf_reserve(&small, en->packed), en->packed, e) < 0)
		return -1;
	return zip_writer_header(w, out, false, e) < 0 ? -1 : zip_writer_put(w, small.data, en->packed, e);
}
