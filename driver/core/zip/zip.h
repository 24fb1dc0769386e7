/* ZIP as wheels need it: a strict reader and a deterministic writer. */
#pragma once
#include "base/base.h"

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

/* zip_open: reads and checks the whole directory. ERR_INTEGRITY (file, entry, offset) for local and
 * central headers that differ, duplicate or unsafe names, overlapping entries, bytes of no entry,
 * encryption, methods other than stored and deflate, wrong data descriptors, missing or superfluous
 * zip64 fields, symbolic links, comments of entries. Directory entries ("name/") and a comment of
 * the archive are fine. */
int zip_open(const char *path, struct arena *a, struct zip_reader **ret, struct err *e) MUST_CHECK;
/* zip_open_fd: like zip_open, for an open file, which the reader then owns, also on failure; `name`
 * is for messages. */
int zip_open_fd(int fd, const char *name, struct arena *a, struct zip_reader **ret,
		struct err *e) MUST_CHECK;
/* zip_close: closes the file; the reader lives in the arena. NULL is fine. */
void zip_close(struct zip_reader *z);

static inline void zip_cleanup(struct zip_reader **z)
{
	zip_close(*z);
}
#define AUTO_ZIP CLEANUP(zip_cleanup)

size_t zip_count(const struct zip_reader *z);
const struct zip_entry *zip_at(const struct zip_reader *z, size_t i);
const struct zip_entry *zip_sorted(const struct zip_reader *z, size_t i);       /* by name */
const struct zip_entry *zip_find(const struct zip_reader *z, const char *name); /* NULL */
/* zip_read: appends the contents to `out`; CRC and size are checked. More than `max` bytes are
 * refused before inflating. */
int zip_read(const struct zip_reader *z, const struct zip_entry *en, uint64_t max, struct buf *out,
	     struct err *e) MUST_CHECK;
/* zip_extract_fd: writes the contents to `fd` (-1: nowhere) and gives the sha256 (may be NULL);
 * checked as zip_read. */
int zip_extract_fd(const struct zip_reader *z, const struct zip_entry *en, int fd,
		   uint8_t ret_sha256[32], struct err *e) MUST_CHECK;
/* zip_extract: every entry below `dir` (created), with mode 0644 or 0755. A file that is there
 * already is an error or, with `keep`, stays as it is. */
int zip_extract(const struct zip_reader *z, const char *dir, bool keep, const struct run *run,
		struct err *e) MUST_CHECK;

struct zip_writer;
struct zip_chunks;

/* zip_writer_id: what the bytes depend on beside the contents: "4 libdeflate 1.14". For keys. */
const char *zip_writer_id(void);

/* An archive to be made. */
struct zip_new {
	const char *path;
	uint64_t epoch;   /* the time of every entry, 1980 at least */
	unsigned threads; /* that deflate; the bytes do not depend on their number */
	int level;        /* 0 stores, 1..9 see zip_deflate.h */
};

/* zip_create: a new file. */
int zip_create(const struct zip_new *n, struct zip_writer **ret, struct err *e) MUST_CHECK;
/* zip_create_fd: like zip_create, for an open empty file, which the writer closes; on failure the
 * caller closes it. */
int zip_create_fd(int fd, const struct zip_new *n, struct zip_writer **ret,
		  struct err *e) MUST_CHECK;
/* zip_chunks_new: chunks of archives that are written with it (zip_share, before the first entry),
 * also by other threads: one of an origin that another has written is copied, not deflated again.
 * Free it after them. */
struct zip_chunks *zip_chunks_new(void) __attribute__((returns_nonnull));
void zip_chunks_free(struct zip_chunks *c);
void zip_share(struct zip_writer *w, struct zip_chunks *c);
struct zip_mark {
	uint64_t at; /* offset in the file */
	/* of the byte there; 0: not shared. Equal ones, counted on, promise equal bytes. */
	uint64_t origin;
};
/* zip_add_parts: one regular file, read once; gives its sha256 and size. The mode is 0755 if the
 * owner may execute it, else 0644. The parts between the marks (ascending) are deflated each on its
 * own. */
int zip_add_parts(struct zip_writer *w, const char *name, const char *path,
		  const struct zip_mark *marks, size_t count, uint8_t ret_sha256[32],
		  uint64_t *ret_size, struct err *e) MUST_CHECK;
/* zip_add_data: an entry of mode 0644. */
int zip_add_data(struct zip_writer *w, const char *name, const void *data, size_t len,
		 struct err *e) MUST_CHECK;
/* zip_copy: copies `count` entries from `first` on without inflating them (copy_file_range where
 * possible). They must be in the file in this order, with the headers, modes and epoch that this
 * writer would write: ERR_INTEGRITY names the first entry that is not. */
int zip_copy(struct zip_writer *w, const struct zip_reader *z, size_t first, size_t count,
	     struct err *e) MUST_CHECK;
/* zip_copy_as: one entry of any archive under this name, with mode and time as this writer has
 * them; its packed bytes are copied as they are. */
int zip_copy_as(struct zip_writer *w, const struct zip_reader *z, const struct zip_entry *en,
		const char *name, struct err *e) MUST_CHECK;
/* zip_epoch: returns the time of an entry, for zip_create. */
uint64_t zip_epoch(const struct zip_entry *en);
/* zip_finish: writes the directory, syncs, closes and frees the writer (also on failure); gives the
 * sha256 of the file. */
int zip_finish(struct zip_writer *w, uint8_t ret_sha256[32], struct err *e) MUST_CHECK;
/* zip_abort: closes and deletes the file. NULL is fine. */
void zip_abort(struct zip_writer *w);
