/* Deflate in chunks, each on its own: they run in parallel, and the bytes do not depend on the
 * number of threads. */
#pragma once

#include "base/base.h"

/* Entries are cut here. libdeflate has no preset dictionary, so every cut costs up to 32 KiB of
 * history: 0.03 % of a library at this size, 0.2 % at 1 MiB. */
#define ZIP_CHUNK ((size_t)8 << 20)

struct zip_deflater; /* one per thread */

/* zip_deflater_new: `level` 1..9 of libdeflate, adapted to each chunk by size and entropy: one
 * level higher where that pays, level 1 from 7.75 bits a byte on. On a torch tree level 5 alone is
 * 0.2 % larger than zlib's level 6, and level 6 alone takes 20 % longer. */
struct zip_deflater *zip_deflater_new(int level) __attribute__((returns_nonnull));
void zip_deflater_free(struct zip_deflater *d);
/* zip_entropy: of single bytes, in 1/256 bits a byte (0..2048); above 64 KiB of a sixteenth of
 * them. The same on every machine. */
unsigned zip_entropy(const void *data, size_t len);
/* zip_deflate_bound: how large `out` must be for a chunk of `len` bytes. */
size_t zip_deflate_bound(size_t len);
/* zip_deflate_chunk: at most ZIP_CHUNK bytes of an entry. The concatenated chunks are one deflate
 * stream: the `last` ends it, the others end on a byte boundary. A block whose end is changed is
 * inflated and compared first. */
int zip_deflate_chunk(struct zip_deflater *d, const void *raw, size_t len, bool last, void *out, size_t *ret_len,
		      struct err *e) MUST_CHECK;
