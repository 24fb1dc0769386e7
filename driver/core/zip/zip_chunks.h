/* Deflated chunks of finished archives, found by where their bytes come from. */
#pragma once
#include "core/zip/zip.h"
#include "core/zip/zip_ring.h"

/* zip_chunks_find: by workers: fills out and out_len of a slot; false where there is none. */
bool zip_chunks_find(const struct zip_chunks *c, struct zip_slot *s);
/* zip_chunks_add: a chunk that will be at this place of the archive that is written now.
 * zip_chunks_finish: it is written; no worker runs. */
void zip_chunks_add(struct zip_chunks *c, const struct zip_slot *s, uint64_t offset);
void zip_chunks_finish(struct zip_chunks *c, int fd);
