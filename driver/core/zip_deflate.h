/* Deflate in pieces: each chunk of an entry is deflated on its own, so that they run in parallel and the bytes do not depend on how many threads do it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Entries are cut here. libdeflate has no preset dictionary, so every cut costs up to 32 KiB of history: 0.03 % of a library at this size, 0.2 % at 1 MiB. */
#define ZIP_CHUNK ((size_t)8 << 20)

struct zip_deflater; /* one per thread */

/* zip_deflater_new: `level` 1..9 of libdeflate. Every fourth chunk of an entry, the first included, is deflated one level higher: on a torch tree level 5 alone comes out 0.2 % larger than zlib's level 6 and level 6 alone 20 % slower. */
struct zip_deflater *zip_deflater_new(int level) __attribute__((returns_nonnull));
void zip_deflater_free(struct zip_deflater *d);
/* zip_deflate_bound: how large `out` must be for a chunk of `len` bytes. */
size_t zip_deflate_bound(size_t len);
/* zip_deflate_chunk: chunk number `index` (at most ZIP_CHUNK bytes) of an entry. Chunks put behind one another are one deflate stream; only the `last` ends it, the others end on a byte boundary.
 * The block whose end was changed is inflated and compared first. */
int zip_deflate_chunk(struct zip_deflater *d, const void *raw, size_t len, size_t index, bool last, void *out, size_t *ret_len,
		      struct err *e) MUST_CHECK;
