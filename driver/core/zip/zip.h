/* ZIP as wheels need it: a strict reader and a deterministic writer. */
#pragma once
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/run.h"

struct zip_entry {
	const char *name;
	uint64_t size;   /* uncompressed */
	uint64_t packed; /* compressed */
	uint64_t offset; /* of the local header */
	uint32_t crc;
	uint16_t method; /* 0 stored, 8 deflate */
	uint32_t mode;   /* st_mode from the external attributes, 0 if none */
	uint32_t dos_time;
};

struct zip_reader;

/* zip_open: reads and checks the whole directory. Refused with ERR_INTEGRITY (file, entry, offset):
 * local and central headers that differ, duplicate or unsafe names, overlapping entries, bytes that
 * belong to nothing, encryption, other methods than stored and deflate, data descriptors that
 * disagree, zip64 fields that are missing or superfluous, symbolic links, comments. A directory
 * entry (its name ends in '/') is fine. */
int zip_open(const char *path, struct arena *a, struct zip_reader **ret, struct err *e) MUST_CHECK;
/* zip_close: the reader itself lives in the arena. NULL is fine. */
void zip_close(struct zip_reader *z);
size_t zip_count(const struct zip_reader *z);
const struct zip_entry *zip_at(const struct zip_reader *z, size_t i);
const struct zip_entry *zip_find(const struct zip_reader *z, const char *name); /* NULL */
/* zip_read: the contents appended to `out`; CRC and size are checked; more than `max` bytes is
 * refused before anything is inflated. */
int zip_read(const struct zip_reader *z, const struct zip_entry *en, uint64_t max, struct buf *out,
	     struct err *e) MUST_CHECK;
/* zip_extract_fd: streams the contents into `fd` (-1: nowhere) and gives the sha256 (ret may be
 * NULL); checked as zip_read. */
int zip_extract_fd(const struct zip_reader *z, const struct zip_entry *en, int fd, uint8_t ret_sha256[32],
		   struct err *e) MUST_CHECK;
/* zip_extract_all: every entry below `dir` (created, must be empty), modes 0644 or 0755 only. */
int zip_extract_all(const struct zip_reader *z, const char *dir, const struct run *run, struct err *e) MUST_CHECK;
/* zip_extract_into: the same beside what is there; an entry whose file is there already is an
 * error. */
int zip_extract_into(const struct zip_reader *z, const char *dir, const struct run *run, struct err *e) MUST_CHECK;

struct zip_writer;

/* zip_writer_id: what the bytes depend on beside the contents: "4 libdeflate 1.14". Part of
 * whatever key promises the same bytes. */
const char *zip_writer_id(void);

/* zip_create: a new file at `path` (must not exist). `epoch` is the time of every entry, clamped to
 * 1980. `threads` deflate in parallel; the bytes do not depend on their number. `level` 0..9: 0
 * stores, else of libdeflate, see zip_deflate.h. */
int zip_create(const char *path, uint64_t epoch, unsigned threads, int level, struct zip_writer **ret,
	       struct err *e) MUST_CHECK;
/* zip_add_file: one regular file; gives its sha256 and size, computed in the same pass. Mode
 * becomes 0755 if the owner may execute it, else 0644. Memory is bounded whatever the size. */
int zip_add_file(struct zip_writer *w, const char *name, const char *path, uint8_t ret_sha256[32], uint64_t *ret_size,
		 struct err *e) MUST_CHECK;
/* zip_add_data: bytes as an entry of mode 0644. */
int zip_add_data(struct zip_writer *w, const char *name, const void *data, size_t len, struct err *e) MUST_CHECK;
/* zip_copy: takes `count` entries over from another archive without inflating them (copy_file_range
 * where it can): those at `first` and behind in its directory, which must lie so in the file too,
 * and be such as this writer writes (headers, modes, its epoch): ERR_INTEGRITY names the entry that
 * is not. zip_epoch: the time of an entry, as zip_create takes it. */
int zip_copy(struct zip_writer *w, const struct zip_reader *z, size_t first, size_t count, struct err *e) MUST_CHECK;
uint64_t zip_epoch(const struct zip_entry *en);
/* zip_finish: central directory, fsync, close; frees the writer also on failure. The sha256 of the
 * whole file. */
int zip_finish(struct zip_writer *w, uint8_t ret_sha256[32], struct err *e) MUST_CHECK;
/* zip_abort: closes and deletes the file. NULL is fine. */
void zip_abort(struct zip_writer *w);
