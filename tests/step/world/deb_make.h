/* Debian packages made for a test. */
#pragma once
#include "support.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define MTIME 1234567890

struct deb_entry {
	const char *name;
	const char *data; /* of a file */
	const char *to;   /* of a link */
	mode_t mode;      /* type and bits; 0: a file of 0644 */
	bool hard;        /* `to` is the target of a hard link */
	time_t mtime;     /* 0: MTIME */
	size_t size;      /* of a file of so many zeros */
};

enum packing { PLAIN, GZ, XZ, ZST, BZ2 };
static const char *const pack_ends[] = {"", ".gz", ".xz", ".zst", ".bz2"};

static inline void add_entry(struct archive *out, const struct deb_entry *d)
{
	struct archive_entry *en = archive_entry_new();
	mode_t mode = d->mode ? d->mode : S_IFREG | 0644;
	size_t len = d->size ? d->size : d->data ? strlen(d->data) : 0;
	AUTO_FREE char *zeros = d->size ? calloc(1, d->size) : NULL;
	archive_entry_copy_pathname(en, d->name);
	archive_entry_set_mode(en, mode);
	archive_entry_set_mtime(en, d->mtime ? d->mtime : MTIME, 0);
	archive_entry_set_size(en, S_ISREG(mode) && !d->hard ? (la_int64_t)len : 0);
	archive_entry_set_uid(en, 1234);
	if (d->hard)
		archive_entry_copy_hardlink(en, d->to);
	else if (S_ISLNK(mode))
		archive_entry_copy_symlink(en, d->to);
	if (S_ISCHR(mode))
		archive_entry_set_rdev(en, makedev(1, 3));
	assert_true(archive_write_header(out, en) >= ARCHIVE_WARN);
	if (S_ISREG(mode) && !d->hard && len > 0)
		assert_int_equal(archive_write_data(out, zeros ? zeros : d->data, len), len);
	archive_entry_free(en);
}

/* A tar archive, appended. */
static inline void tar_bytes(struct buf *ret, const struct deb_entry *entries, size_t count,
			     enum packing packing)
{
	static int (*const filters[])(struct archive *) = {
		archive_write_add_filter_none,  archive_write_add_filter_gzip,
		archive_write_add_filter_xz,    archive_write_add_filter_zstd,
		archive_write_add_filter_bzip2,
	};
	size_t room = 1 << 20, used = 0;
	for (size_t i = 0; i < count; i++)
		room += entries[i].size + 4096;
	struct archive *out = archive_write_new();
	assert_int_equal(filters[packing](out), ARCHIVE_OK);
	assert_int_equal(archive_write_set_format_gnutar(out), ARCHIVE_OK);
	assert_int_equal(archive_write_set_bytes_in_last_block(out, 1), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(out, buf_reserve(ret, room), room, &used),
			 ARCHIVE_OK);
	for (size_t i = 0; i < count; i++)
		add_entry(out, &entries[i]);
	assert_int_equal(archive_write_close(out), ARCHIVE_OK);
	ret->len += used;
	archive_write_free(out);
}

static inline void ar_member(struct buf *ar, const char *name, const void *data, size_t len)
{
	buf_printf(ar, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, MTIME, 0, 0, "100644", len);
	buf_add(ar, data, len);
	if (len % 2)
		buf_addc(ar, '\n');
}

/* A package's bytes, whatever its control file says. */
static inline void deb_bytes(struct buf *ar, const char *control, const struct deb_entry *entries,
			     size_t count, enum packing packing)
{
	AUTO_BUF struct buf first = {0}, second = {0};
	char name[32];
	const struct deb_entry in_control[] = {{.name = "./", .mode = S_IFDIR | 0755},
					       {.name = "./md5sums", .data = "x"},
					       {.name = "./control", .data = control}};
	tar_bytes(&first, in_control, control ? 3 : 2, packing == BZ2 ? XZ : packing);
	tar_bytes(&second, entries, count, packing);
	buf_addstr(ar, "!<arch>\n");
	ar_member(ar, "debian-binary", "2.0\n", 4);
	snprintf(name, sizeof(name), "control.tar%s", pack_ends[packing == BZ2 ? XZ : packing]);
	ar_member(ar, name, first.data, first.len);
	snprintf(name, sizeof(name), "data.tar%s", pack_ends[packing]);
	ar_member(ar, name, second.data, second.len);
}
