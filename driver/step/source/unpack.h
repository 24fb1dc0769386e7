/* Unpack: archives into a tree, trusting nothing. */
#pragma once
#include "base/sys/tar.h"

/* unpack_archive: below `dir` (created if needed; regular files in it may be replaced by regular
 * files). strip_top removes the top directory that all names share. A limit of 0 is 8 GiB, a ratio
 * of 200, 500,000 entries. Modes become 0755 or 0644, times are kept. ERR_INTEGRITY (archive and
 * entry, of which nothing is left) also for links that leave the tree or have ".." after a name,
 * writing through a link, special files, an empty archive (libarchive does not check gzip's
 * checksum; the caller has checked the digest). Text after a tar's end mark is ignored. */
int unpack_archive(const char *archive, const char *dir, bool strip_top, const struct tar_limits *limits,
		   const struct run *run, struct err *e) MUST_CHECK;
