/* The records of the ZIP format (APPNOTE 6.3) as they lie in the file, for reader and writer. */
#pragma once
#include "core/zip/zip.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ZIP records are little-endian");

enum {
	ZIP_EXTRA_64 = 1,
	ZIP_FLAG_DESCRIPTOR = 1 << 3,
	ZIP_FLAG_UTF8 = 1 << 11,
	ZIP_STORED = 0,
	ZIP_DEFLATED = 8,
	ZIP_UNIX = 3,
	ZIP_VERSION = 20,    /* needed to extract */
	ZIP_VERSION_64 = 45, /* with zip64 fields */
	ZIP_MAX16 = 0xffff,
};

#define ZIP_MAX32 0xffffffffu
#define ZIP_LOCAL_SIG 0x04034b50u
#define ZIP_CENTRAL_SIG 0x02014b50u
#define ZIP_END_SIG 0x06054b50u
#define ZIP_END64_SIG 0x06064b50u
#define ZIP_LOCATOR_SIG 0x07064b50u
#define ZIP_DESCRIPTOR_SIG 0x08074b50u

#pragma pack(push, 1)
struct zip_common { /* part of the local and of the central header */
	uint16_t version, flags, method;
	uint32_t time, crc, packed, size;
	uint16_t name_len, extra_len;
};

struct zip_local { /* name and extra fields follow, then the data */
	uint32_t signature;
	struct zip_common common;
};

struct zip_central { /* name, extra fields and comment follow */
	uint32_t signature;
	uint16_t made_by;
	struct zip_common common;
	uint16_t comment_len, disk, internal;
	uint32_t external, offset;
};

struct zip_end {
	uint32_t signature;
	uint16_t disk, directory_disk, disk_count, count;
	uint32_t size, offset;
	uint16_t comment_len;
};

struct zip_end64 {
	uint32_t signature;
	uint64_t length; /* of what follows */
	uint16_t made_by, version;
	uint32_t disk, directory_disk;
	uint64_t disk_count, count, size, offset;
};

struct zip_locator {
	uint32_t signature, disk;
	uint64_t offset;
	uint32_t disks;
};
#pragma pack(pop)

/* zip_get: a number of up to 8 bytes. */
static inline uint64_t zip_get(const void *p, size_t bytes)
{
	uint64_t v = 0;
	memcpy(&v, p, bytes);
	return v;
}

/* What the reader and the copier share. */
struct zip_reader {
	int fd;
	char *path;
	uint64_t size;
	struct zip_entry *entries; /* in the order of the central directory */
	size_t count;
	const struct zip_entry **by_name; /* sorted */
	uint64_t *data;                   /* where each entry's packed bytes start */
	bool *plain;                      /* flags and version are those of zip_write.c */
};

/* zip_read_at: exactly `len` bytes of the archive from `offset` on. */
int zip_read_at(const struct zip_reader *z, uint64_t offset, void *to, size_t len, struct err *e) MUST_CHECK;
