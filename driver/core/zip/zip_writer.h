/* What zip_write.c (new entries) and zip_copy.c (entries of another archive) share. */
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
	struct zip_chunks *chunks; /* NULL: not shared */
	struct digest *digest;
	uint64_t written;   /* bytes in the file */
	uint64_t hashed;    /* bytes of them in the digest */
	bool header_open;   /* the last header will be rewritten */
	struct buf pending; /* not written yet, at most ZIP_WRITE_BLOCK bytes */
	struct zip_out_entry *entries;
	size_t count, cap;
	void *names; /* tsearch tree */
	char *block; /* ZIP_HASH_BLOCK bytes */
};

/* zip_writer_entry: appends an entry; its name must be safe and new. */
int zip_writer_entry(struct zip_writer *w, const char *name, uint64_t size, uint32_t mode, struct err *e) MUST_CHECK;
/* zip_writer_drain: writes all that was submitted. */
int zip_writer_drain(struct zip_writer *w, struct err *e) MUST_CHECK;
/* zip_writer_header: behind all that was submitted, the header of an entry whose packed bytes
 * follow: by zip_writer_put, or, once it is `flushed`, into the file itself. */
int zip_writer_header(struct zip_writer *w, struct zip_out_entry *en, bool flushed, struct err *e) MUST_CHECK;
int zip_writer_put(struct zip_writer *w, const void *data, size_t len, struct err *e) MUST_CHECK;
/* zip_writer_hash: adds what is in the file up to `end` to the digest. */
int zip_writer_hash(struct zip_writer *w, uint64_t end, struct err *e) MUST_CHECK;
