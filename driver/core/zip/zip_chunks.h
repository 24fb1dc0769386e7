/* Deflated chunks of archives, found by where their bytes come from. From any thread. */
#pragma once
#include "core/zip/zip.h"
#include "core/zip/zip_ring.h"

/* zip_chunks_join: the archive that is written to `fd`, as zip_chunks_add takes it; -1: its chunks
 * cannot be shared. */
int zip_chunks_join(struct zip_chunks *c, int fd);
/* zip_chunks_worth: whether a deflated chunk is to be added. */
bool zip_chunks_worth(const struct zip_slot *s);
/* zip_chunks_find: fills out and out_len of a slot; false where there is none. */
bool zip_chunks_find(struct zip_chunks *c, struct zip_slot *s);
/* zip_chunks_add: a chunk that is in the file at this place. */
void zip_chunks_add(struct zip_chunks *c, const struct zip_slot *s, int fd, uint64_t offset);
