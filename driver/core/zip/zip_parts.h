/* The records of the ZIP format (APPNOTE 6.3) as they are in the file, for reader and writer. */
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
int zip_read_at(const struct zip_reader *z, uint64_t offset, void *to, size_t len,
		struct err *e) MUST_CHECK;

/* A ring of chunks: one thread fills and empties it in order, workers deflate. Hundreds of small
 * chunks may queue, so that no worker waits; large ones are few, which bounds the memory. */

struct zip_slot {
	/* input */
	size_t entry, index; /* which chunk of which entry */
	bool last;
	bool store; /* do not deflate */
	bool whole; /* the only chunk of its entry: stored if deflate does not shrink it */
	uint8_t *raw;
	size_t raw_len;
	uint64_t origin; /* as zip_mark */
	/* output of the worker */
	uint8_t *out;
	size_t out_len; /* 0: store the raw bytes */
	uint32_t crc;   /* of the raw bytes */
	bool failed;
	struct err err;
	bool done;
	struct zip_buffers *large; /* private to the ring */
};

struct zip_ring;
struct zip_chunks;

/* zip_ring_new: `threads` workers (at least one) with `level` 0..9; 0 stores. */
int zip_ring_new(unsigned threads, int level, struct zip_ring **ret, struct err *e) MUST_CHECK;
/* zip_ring_free: drops what is queued and joins the workers. NULL is fine. */
void zip_ring_free(struct zip_ring *r);
/* zip_ring_share: before anything is submitted. */
void zip_ring_share(struct zip_ring *r, struct zip_chunks *c);
/* zip_ring_fill: the next free slot, with room for `len` (at most ZIP_CHUNK) bytes; NULL when all
 * are in use. zip_ring_submit hands it to the workers. */
struct zip_slot *zip_ring_fill(struct zip_ring *r, size_t len);
void zip_ring_submit(struct zip_ring *r);
/* zip_ring_oldest: returns the oldest submitted slot; NULL if the ring is empty or, without `wait`,
 * if that slot is not done. zip_ring_pop frees it. */
struct zip_slot *zip_ring_oldest(struct zip_ring *r, bool wait);
void zip_ring_pop(struct zip_ring *r);

/* Deflated chunks of archives, found by where their bytes come from. From any thread. */

/* zip_chunks_join: adds the archive that is written to `fd`, for zip_chunks_add; -1: its chunks
 * cannot be shared. */
int zip_chunks_join(struct zip_chunks *c, int fd);
/* zip_chunks_worth: whether a deflated chunk is to be added. */
bool zip_chunks_worth(const struct zip_slot *s);
/* zip_chunks_find: fills out and out_len of a slot; false if no chunk is known for it. */
bool zip_chunks_find(struct zip_chunks *c, struct zip_slot *s);
/* zip_chunks_add: a chunk that is in the file at this place. */
void zip_chunks_add(struct zip_chunks *c, const struct zip_slot *s, int fd, uint64_t offset);

/* Deflate in chunks, each on its own: they run in parallel, and the bytes do not depend on the
 * number of threads. */

/* Entries are cut here. libdeflate has no preset dictionary, so every cut costs up to 32 KiB of
 * history: 0.03 % of a library at this size, 0.2 % at 1 MiB. */
#define ZIP_CHUNK ((size_t)8 << 20)

struct zip_deflater; /* one per thread */

/* zip_deflater_new: `level` 1..9 of libdeflate, adapted to each chunk by size and entropy: one
 * level higher where that pays, level 1 from 7.75 bits a byte on. On a torch tree level 5 alone is
 * 0.2 % larger than zlib's level 6, and level 6 alone is 20 % slower. */
struct zip_deflater *zip_deflater_new(int level) __attribute__((returns_nonnull));
void zip_deflater_free(struct zip_deflater *d);
/* zip_entropy: of single bytes, in 1/256 bits a byte (0..2048); above 64 KiB of a sixteenth of
 * them. The same on every machine. */
unsigned zip_entropy(const void *data, size_t len);
/* zip_deflate_bound: how large `out` must be for a chunk of `len` bytes. */
size_t zip_deflate_bound(size_t len);
/* zip_deflate_chunk: at most ZIP_CHUNK bytes of an entry, s->raw to s->out; sets s->out_len, or
 * s->err. The concatenated chunks are one deflate
 * stream: the `last` ends it, the others end on a byte boundary. A block whose end is changed is
 * inflated and compared first. */
int zip_deflate_chunk(struct zip_deflater *d, struct zip_slot *s) MUST_CHECK;
