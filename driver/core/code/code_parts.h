/* What the files of the code map share: candidates for functions, from every source, not yet
 * disjoint. */
#pragma once
#include "core/code/code_map.h"

enum { CANDIDATE_DATA = 1 << 16 }; /* bytes between functions that a symbol calls an object */

struct candidate {
	uint64_t start, size; /* size 0: up to the next one */
	const char *name, *unit;
	unsigned flags;
	unsigned order; /* as it was found, so that sorting is total */
};

struct candidates {
	struct candidate *items;
	size_t count, cap;
	struct arena *a;
};

struct code_region {
	uint64_t start, end;
};

/* code_add: appends one. */
void code_add(struct candidates *c, struct candidate one);
/* code_symbols: functions of both symbol tables; *ret_full as code_map.full_names. */
int code_symbols(struct elf_map *m, struct candidates *c, bool *ret_full, struct err *e) MUST_CHECK;
/* code_frames: functions that frame descriptions tell of; none where the table is of a kind that
 * nobody writes. */
void code_frames(const struct elf_map *m, struct candidates *c);
/* code_initialisers: the functions of the initialiser lists, by relocations where the lists are
 * filled by the loader. */
int code_initialisers(struct elf_map *m, struct candidates *c, struct err *e) MUST_CHECK;
/* code_is_initialiser: whether compilers give this name to what they run before main. */
bool code_is_initialiser(const char *name);
