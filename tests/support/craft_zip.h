/* Archives made byte by byte, so that each byte can be wrong. All entries are stored. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { CRAFT_MAX = 8 };

struct craft_entry {
	const char *name;
	const char *data;
	unsigned flags;
	uint32_t mode; /* st_mode, 0: no Unix attributes */
	/* bytes of extra fields, and bytes behind the data; NULL: none */
	const void *local_extra, *central_extra, *behind;
	size_t local_extra_len, central_extra_len, behind_len;
};

struct craft_zip {
	struct buf bytes;
	size_t local[CRAFT_MAX], central[CRAFT_MAX]; /* where the headers are */
	size_t end;                                  /* where the end record is */
};

/* craft_zip: a valid archive of `count` entries, but for what the entries ask for. */
void craft_zip(struct craft_zip *z, const struct craft_entry *entries, size_t count);
/* craft_put16, craft_put32, craft_put64: overwrite at an offset. */
void craft_put16(struct craft_zip *z, size_t at, unsigned v);
void craft_put32(struct craft_zip *z, size_t at, uint32_t v);
void craft_put64(struct craft_zip *z, size_t at, uint64_t v);
/* craft_insert: bytes before offset `at`; offsets inside the archive stay as they were. */
void craft_insert(struct craft_zip *z, size_t at, const void *data, size_t len);
