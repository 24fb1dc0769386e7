/* An ELF file without what only debuggers and linkers read. */
#pragma once
#include "core/elf/elf_map.h"

enum {
	ELF_STRIP_DEBUG = 1,   /* .debug_*, .zdebug_*, .gdb_index: lines, types and variables */
	ELF_STRIP_SYMBOLS = 2, /* .symtab and its strings; .dynsym, the exported names, stays */
};

struct elf_strip_move { /* bytes that stay */
	uint64_t from, to, len;
	const uint8_t *bytes; /* instead of those of the old file; NULL */
};

struct elf_strip {
	const struct elf_map *map;
	struct arena *a;
	uint64_t size;           /* of the new file */
	uint64_t debug, symbols; /* bytes of the removed sections */
	const char *left;        /* why sections that were asked for stay; NULL */
	struct elf_strip_move *moves;
	size_t count;
};

/* elf_strip_plan: which sections go and where the rest will be. Sections go that no segment loads
 * and nothing that stays refers to; segments keep their addresses, bytes and alignment, and move in
 * the file alone. `what`: ELF_STRIP_ flags. Without such a section, and for objects, count is 0.
 * The result borrows from `m` and `a`. ERR_INTEGRITY if headers or tables are malformed. */
int elf_strip_plan(const struct elf_map *m, unsigned what, struct arena *a, struct elf_strip *ret,
		   struct err *e) MUST_CHECK;
/* elf_strip_write: the new file into the empty file `fd`; pages of zeros become holes. */
int elf_strip_write(const struct elf_strip *s, int fd, const char *name, struct err *e) MUST_CHECK;
/* elf_strip_prove: compares both files: each segment at its address with its bytes, each section of
 * `after` as it was, and nothing missing but sections of the kinds in `what`. ERR_INTEGRITY says
 * what differs. */
int elf_strip_prove(const struct elf_map *before, const struct elf_map *after, unsigned what,
		    struct err *e) MUST_CHECK;
