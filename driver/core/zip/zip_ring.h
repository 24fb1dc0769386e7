/* A ring of chunks: one thread fills and empties it in order, others deflate what is in it. Small
 * chunks may queue in their hundreds, so that nobody waits for a turn of the scheduler; large ones
 * are few, which bounds the memory. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/zip/zip_deflate.h"

struct zip_slot {
	/* set by who fills it */
	size_t entry, index; /* which chunk of which entry */
	bool last;
	bool store; /* as it is */
	/* the only chunk of an entry: it stays as it is when deflate does not shrink it */
	bool whole;
	uint8_t *raw; /* has the room that was asked for */
	size_t raw_len;
	/* set by who deflates it */
	uint8_t *out;
	size_t out_len; /* 0: the raw bytes are to be stored */
	uint32_t crc;   /* of the raw bytes */
	bool failed;
	struct err err;
	bool done;
	struct zip_buffers *large; /* the ring's own business */
};

struct zip_ring;

/* zip_ring_new: `threads` workers (at least one) with `level` 0..9; 0 stores. */
int zip_ring_new(unsigned threads, int level, struct zip_ring **ret, struct err *e) MUST_CHECK;
/* zip_ring_free: drops what is queued and joins the workers. NULL is fine. */
void zip_ring_free(struct zip_ring *r);
/* zip_ring_fill: the next free slot with room for `len` (at most ZIP_CHUNK) bytes, NULL when there
 * is none: empty one first. zip_ring_submit hands it to the workers. */
struct zip_slot *zip_ring_fill(struct zip_ring *r, size_t len);
void zip_ring_submit(struct zip_ring *r);
/* zip_ring_oldest: the oldest submitted slot, NULL when there is none or, without `wait`, when it
 * is not done yet. zip_ring_pop frees it. */
struct zip_slot *zip_ring_oldest(struct zip_ring *r, bool wait);
void zip_ring_pop(struct zip_ring *r);
