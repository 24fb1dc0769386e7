/* Which function each byte of an ELF file's code belongs to, by its symbols, frame descriptions
 * (.eh_frame) and initialisers. */
#pragma once
#include "core/elf/elf_map.h"

enum code_flag {
	/* the file states start and end; else it is what lies between others */
	CODE_DECLARED = 1,
	CODE_STRONG = 2,      /* a global symbol that is defined once */
	CODE_WEAK = 4,        /* weak or unique symbols only: one copy of several units' */
	CODE_INIT = 8,        /* runs while the library is loaded */
	CODE_RESOLVER = 16,   /* an indirect function's resolver */
	CODE_DISPATCHED = 32, /* what such a resolver may choose (set by isa_scan) */
	CODE_INIT_PART = 64,  /* nameless and called directly by an initialiser (set by isa_scan) */
	CODE_DATA = 128       /* what a symbol calls an object: code or not, nothing tells */
};

struct code_range {
	uint64_t start, end; /* addresses */
	const char *name;    /* mangled, NULL */
	/* source file of a local symbol, as the symbol table has it; else NULL */
	const char *unit;
	unsigned flags;
};

struct code_map {
	/* ascending, disjoint; all code, but not what marks call data */
	struct code_range *ranges;
	size_t count;
	bool full_names; /* local functions have names */
};

/* code_map_read: strings in it live as long as `m`. ERR_INTEGRITY for tables that leave the file;
 * frame descriptions that cannot be read count as absent. */
int code_map_read(struct elf_map *m, struct arena *a, struct code_map *ret, struct err *e) MUST_CHECK;
/* code_map_at: the range that holds an address, NULL. */
struct code_range *code_map_at(const struct code_map *c, uint64_t address);
