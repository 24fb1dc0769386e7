/* Unpack: archives into a tree, trusting nothing. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

#include "base/run.h"

struct unpack_limits {
	uint64_t max_bytes;   /* unpacked; 0 = 8 GiB */
	unsigned max_ratio;   /* unpacked : packed, checked above 64 MiB; 0 = 200 */
	unsigned max_entries; /* 0 = 500,000 */
};

/* unpack_archive: tar (plain, gz, xz, bz2, zstd) or zip, by content, below `dir` (created if
 * needed; regular files in it may be replaced by regular files). strip_top removes the top
 * directory that all names share. Modes become 0755 or 0644, times are kept. ERR_INTEGRITY (archive
 * and entry, of which nothing is left) for absolute names, "..", links that leave the tree or have
 * ".." after a name, writing through a link, special files, names with control bytes or not UTF-8,
 * exceeded limits (holes count), a damaged or empty archive (libarchive does not check gzip's
 * checksum; the caller has checked the digest). Text after a tar's end mark is ignored. Uses a
 * second thread and switches the calling thread's locale meanwhile. */
int unpack_archive(const char *archive, const char *dir, bool strip_top, const struct unpack_limits *limits,
		   const struct run *run, struct err *e) MUST_CHECK;
