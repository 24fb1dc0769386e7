/* What zip_write.c (entries from files and memory) and zip_copy.c (entries of another archive)
 * share. */
#pragma once
#include "core/zip/zip.h"

enum { ZIP_HASH_BLOCK = 256 * 1024, ZIP_WRITE_BLOCK = 1024 * 1024 };

struct zip_out_entry {
	const char *name;
	uint64_t size, packed, offset;
	uint32_t crc;
	uint16_t method;
	uint32_t mode;
};

struct zip_writer {
	struct arena arena;
	int fd;
	char *path;
	int level;
	uint32_t dos_time;
	struct zip_ring *ring;
	struct digest *digest;
	uint64_t written; /* in the file; what is pending comes next */
	uint64_t hashed;  /* of what is written, in the digest */
	bool header_open; /* the last header that was written will be written once more */
	/* at most ZIP_WRITE_BLOCK bytes: thousands of small entries in few writes */
	struct buf pending;
	struct zip_out_entry *entries;
	size_t count, cap;
	void *names; /* tsearch tree */
	char *block; /* ZIP_HASH_BLOCK bytes */
};

/* zip_writer_entry: one more entry, the last of the list; its name is checked, and that it is
 * new. */
int zip_writer_entry(struct zip_writer *w, const char *name, uint64_t size, uint32_t mode, struct err *e) MUST_CHECK;
/* zip_writer_drain: all that was submitted is written, nothing is pending. */
int zip_writer_drain(struct zip_writer *w, struct err *e) MUST_CHECK;
/* zip_writer_hash: what is in the file up to `end` is in the digest. */
int zip_writer_hash(struct zip_writer *w, uint64_t end, struct err *e) MUST_CHECK;
