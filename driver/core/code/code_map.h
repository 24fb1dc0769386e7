/* What is code in an ELF file, and which function each byte belongs to: symbols, frame descriptions
 * (.eh_frame), the loader's list of initialisers. */
#pragma once
#include "core/elf/elf_map.h"

enum code_flag {
	/* start and end are stated by the file; else the range is what lies between */
	CODE_DECLARED = 1,
	CODE_STRONG = 2, /* a global symbol that is defined once */
	/* a weak or unique symbol and no strong one: the linker kept one copy of several units' */
	CODE_WEAK = 4,
	CODE_INIT = 8,        /* run while the library is loaded */
	CODE_RESOLVER = 16,   /* an indirect function's resolver */
	CODE_DISPATCHED = 32, /* what such a resolver may choose; set by those who decode it */
	CODE_INIT_PART = 64   /* called directly by an initialiser, and without a name; likewise */
};

struct code_range {
	uint64_t start, end; /* addresses */
	const char *name;    /* mangled; NULL: no symbol has it. Points into the map's file */
	/* source file as the symbol table groups local symbols; NULL for global, hidden and unknown
	 * ones */
	const char *unit;
	unsigned flags;
};

struct code_map {
	/* ascending, disjoint; together all executable bytes of the file but those that symbols
	 * call data */
	struct code_range *ranges;
	size_t count;
	bool full_names; /* there is a static symbol table with names of local functions */
};

/* code_map_read: the map of a loadable file; its strings live as long as `m`. ERR_INTEGRITY for
 * tables that leave the file. What is optional (frame descriptions) and cannot be read counts as
 * absent. */
int code_map_read(struct elf_map *m, struct arena *a, struct code_map *ret, struct err *e) MUST_CHECK;
/* code_map_at: the range that holds an address, NULL. */
struct code_range *code_map_at(const struct code_map *c, uint64_t address);
