/* Unpack: archives into a tree, trusting nothing. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

#include "base/run.h"

struct unpack_limits {
	uint64_t max_bytes;   /* unpacked; 0 = 8 GiB */
	unsigned max_ratio;   /* unpacked : packed, looked at above 64 MiB; 0 = 200 */
	unsigned max_entries; /* 0 = 500,000 */
};

/* unpack_archive: tar (plain, gz, xz, bz2, zstd) and zip, by content, below `dir` (created, may
 * hold files already, which are not overwritten unless they are regular files being replaced by
 * regular files). strip_top removes the one top directory all names share. Owners are ours, modes
 * are 0755 or 0644, times are kept. Refused, nothing left behind of the entry: absolute names,
 * "..", links (hard or symbolic) that leave the tree or have ".." behind a name in their target,
 * writing through a link, devices, fifos, sockets, names with control bytes or not in UTF-8, too
 * many bytes (holes count) or entries, a ratio past the limit, a damaged or truncated archive (in
 * gzip, which libarchive does not check a checksum of, as far as its structure shows it: the digest
 * is checked before), an archive without a file. What follows a tar's end mark is ignored.
 * ERR_INTEGRITY names archive and entry; what the machine refuses (no space) is ERR_SYSTEM. Uses a
 * second thread, and the calling thread's locale for its time. */
int unpack_archive(const char *archive, const char *dir, bool strip_top, const struct unpack_limits *limits,
		   const struct run *run, struct err *e) MUST_CHECK;
