/* A ring of chunks: one thread fills and empties it in order, workers deflate. Hundreds of small
 * chunks may queue, so that no worker waits; large ones are few, which bounds the memory. */
#pragma once
#include "core/zip/zip_deflate.h"

struct zip_slot {
	/* input */
	size_t entry, index; /* which chunk of which entry */
	bool last;
	bool store; /* do not deflate */
	bool whole; /* the only chunk of its entry: stored if deflate does not shrink it */
	uint8_t *raw;
	size_t raw_len;
	uint64_t origin; /* as zip_mark */
	/* output of the worker */
	uint8_t *out;
	size_t out_len; /* 0: store the raw bytes */
	uint32_t crc;   /* of the raw bytes */
	bool failed;
	struct err err;
	bool done;
	struct zip_buffers *large; /* private to the ring */
};

struct zip_ring;
struct zip_chunks;

/* zip_ring_new: `threads` workers (at least one) with `level` 0..9; 0 stores. */
int zip_ring_new(unsigned threads, int level, struct zip_ring **ret, struct err *e) MUST_CHECK;
/* zip_ring_free: drops what is queued and joins the workers. NULL is fine. */
void zip_ring_free(struct zip_ring *r);
/* zip_ring_share: before anything is submitted. */
void zip_ring_share(struct zip_ring *r, struct zip_chunks *c);
/* zip_ring_fill: the next free slot, with room for `len` (at most ZIP_CHUNK) bytes; NULL when all
 * are in use. zip_ring_submit hands it to the workers. */
struct zip_slot *zip_ring_fill(struct zip_ring *r, size_t len);
void zip_ring_submit(struct zip_ring *r);
/* zip_ring_oldest: the oldest submitted slot; NULL when there is none or, without `wait`, when it
 * is not done. zip_ring_pop frees it. */
struct zip_slot *zip_ring_oldest(struct zip_ring *r, bool wait);
void zip_ring_pop(struct zip_ring *r);
