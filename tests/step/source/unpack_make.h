/* Archives made for the tests of unpacking, and what is asked about what came out. */
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

#include "step/source/source.h"

#define MTIME 1234567890

enum packing { TAR, GZ, XZ, BZ2, ZSTD, ZIP };

/* The archive being written, "<test directory>/a". */
static struct archive *out;

static inline void begin(enum packing packing)
{
	static int (*const filters[])(struct archive *) = {
		archive_write_add_filter_none, archive_write_add_filter_gzip,
		archive_write_add_filter_xz,   archive_write_add_filter_bzip2,
		archive_write_add_filter_zstd, archive_write_add_filter_none,
	};
	test_dir();
	out = archive_write_new();
	assert_int_equal(filters[packing](out), ARCHIVE_OK);
	assert_int_equal(packing == ZIP ? archive_write_set_format_zip(out)
					: archive_write_set_format_pax(out),
			 ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(out, test_path("a")), ARCHIVE_OK);
}

static inline struct archive_entry *entry_new(const char *name, mode_t type, mode_t perm)
{
	struct archive_entry *entry = archive_entry_new();
	archive_entry_copy_pathname(entry, name);
	archive_entry_set_filetype(entry, type);
	archive_entry_set_perm(entry, perm);
	archive_entry_set_mtime(entry, MTIME, 0);
	return entry;
}

static inline void put(struct archive_entry *entry, const char *data, size_t len)
{
	assert_true(archive_write_header(out, entry) >= ARCHIVE_WARN);
	if (len > 0)
		assert_int_equal(archive_write_data(out, data, len), len);
	archive_entry_free(entry);
}

static inline void add_file(const char *name, const char *text)
{
	struct archive_entry *entry = entry_new(name, AE_IFREG, 0644);
	archive_entry_set_size(entry, (la_int64_t)strlen(text));
	put(entry, text, strlen(text));
}

static inline void add_plain(const char *name, mode_t type)
{
	struct archive_entry *entry = entry_new(name, type, 0755);
	archive_entry_set_size(entry, 0);
	if (type == AE_IFCHR || type == AE_IFBLK)
		archive_entry_set_rdev(entry, makedev(1, 3));
	put(entry, NULL, 0);
}

static inline void add_symlink(const char *name, const char *target)
{
	struct archive_entry *entry = entry_new(name, AE_IFLNK, 0777);
	archive_entry_copy_symlink(entry, target);
	put(entry, NULL, 0);
}

static inline void add_hardlink(const char *name, const char *target)
{
	struct archive_entry *entry = entry_new(name, AE_IFREG, 0644);
	archive_entry_copy_hardlink(entry, target);
	archive_entry_set_size(entry, 0);
	put(entry, NULL, 0);
}

static inline void end(void)
{
	assert_int_equal(archive_write_close(out), ARCHIVE_OK);
	archive_write_free(out);
}

static inline int unpack(bool strip, struct err *e)
{
	char archive[512], dir[512];
	snprintf(archive, sizeof(archive), "%s", test_path("a"));
	snprintf(dir, sizeof(dir), "%s", test_path("tree/t"));
	return unpack_archive(archive, dir, strip, NULL, test_run(), e);
}

static inline void assert_text(const char *path, const char *text)
{
	char *got = test_read(path);
	assert_non_null(got);
	assert_string_equal(got, text);
	free(got);
}

static inline bool present(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

/* refused: the archive is denied for this reason, with archive and entry
 * named, and neither the entry nor anything outside of the tree is there. */
static inline void refused(bool strip, const char *entry, const char *why, const char *must_not_be)
{
	struct err e = {0};
	end();
	assert_err(unpack(strip, &e), &e, ERR_INTEGRITY, why);
	assert_contains(e.msg, test_path("a"));
	assert_contains(e.msg, entry);
	assert_false(present(test_path("tree/t/%s", must_not_be)));
	assert_false(present(test_path("tree/%s", must_not_be)));
	assert_false(present(test_path("%s", must_not_be)));
}

/* raw_header: a ustar header and the end mark, the name as it stands. raw_sum: its checksum. */
static inline void raw_header(char *block, size_t size, const char *name, char type)
{
	memset(block, 0, size);
	snprintf(block, 100, "%s", name);
	snprintf(block + 100, 8, "%07o", 0644);
	snprintf(block + 108, 8, "%07o", 0);
	snprintf(block + 116, 8, "%07o", 0);
	snprintf(block + 124, 12, "%011o", 0);
	snprintf(block + 136, 12, "%011o", 0);
	block[156] = type;
	memcpy(block + 257, type == 'S' ? "ustar  " : "ustar\00000", 8);
}

static inline void raw_sum(char *block)
{
	unsigned sum = 0;
	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum);
}

/* raw_tar: an archive with one empty file of this name,
 * its checksum `wrong` by so much in its first digit. */
static inline void raw_tar(const char *name, int wrong)
{
	char block[512 * 3];
	raw_header(block, sizeof(block), name, '0');
	raw_sum(block);
	block[150] = (char)(block[150] + wrong);
	test_write_bytes(test_path("a"), block, sizeof(block));
}
