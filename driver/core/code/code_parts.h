/* What the code_map files share: where functions may be, from every source, overlapping. */
#pragma once
#include "core/code/code.h"

enum {
	CANDIDATE_DATA = 1 << 16, /* bytes between functions that a symbol calls an object */
	CANDIDATE_MARK = 1 << 17  /* a mapping symbol of AArch64: here data or code begins */
};

struct candidate {
	uint64_t start, size; /* size 0: up to the next one */
	const char *name, *unit;
	unsigned flags;
	unsigned order; /* makes sorting by start stable */
};

struct candidates {
	struct candidate *items;
	size_t count, cap;
	struct arena *a;
};

static inline void code_add(struct candidates *c, struct candidate one)
{
	if (c->count == c->cap)
		c->items = arena_grow(c->a, c->items, &c->cap, 256, sizeof(*c->items));
	one.order = (unsigned)c->count;
	c->items[c->count++] = one;
}

/* code_symbols: functions of both symbol tables; *ret_full as code_map.full_names. */
int code_symbols(struct elf_map *m, struct candidates *c, bool *ret_full, struct err *e) MUST_CHECK;
/* code_frames: functions that have a frame description; none if the table is of an unusual kind. */
void code_frames(const struct elf_map *m, struct candidates *c);
/* code_initialisers: what the loader runs. */
int code_initialisers(struct elf_map *m, struct candidates *c, struct err *e) MUST_CHECK;
