/* One ELF file in memory, addressed as the dynamic loader does it: through program headers, never
 * sections. For the elf modules only. */
#pragma once
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct elf_map {
	const char *name; /* for messages; the caller's */
	const uint8_t *data;
	size_t size;
	bool mapped; /* data came from mmap */
	Elf *elf;
	GElf_Ehdr header;
	GElf_Phdr *segments; /* file ranges of PT_LOAD and PT_DYNAMIC lie inside the file */
	size_t segments_count;
	Elf64_Dyn *dyn; /* entries before DT_NULL; NULL if not dynamic */
	size_t dyn_count;
	uint64_t dyn_offset; /* of the first entry in the file */
	uint64_t strings;    /* file offset of the dynamic string table */
	uint64_t strings_size;
	struct arena arena;
};

/* elf_map_open: maps the file and reads header, segments, dynamic entries and the string table's
 * place. ERR_INTEGRITY for what is malformed, also for 32-bit and big-endian files. elf_map_memory:
 * the same over bytes that outlive the map. Both: elf_map_close releases, also after a failure. */
int elf_map_open(const char *path, struct elf_map *ret, struct err *e) MUST_CHECK;
int elf_map_memory(const void *data, size_t size, const char *name, struct elf_map *ret, struct err *e) MUST_CHECK;
void elf_map_close(struct elf_map *m);
#define AUTO_ELF_MAP CLEANUP(elf_map_close)

/* elf_map_bad: ERR_INTEGRITY "'name': text at offset 0x..."; -1. */
int elf_map_bad(const struct elf_map *m, uint64_t offset, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* elf_map_find: file offset of an address and how many bytes of its segment follow in the file;
 * false when no segment's file part has it. */
bool elf_map_find(const struct elf_map *m, uint64_t address, uint64_t *ret_offset, uint64_t *ret_room);
/* elf_map_need: the same for `size` bytes of a table; ERR_INTEGRITY naming `what` when they are not
 * all there. */
int elf_map_need(const struct elf_map *m, uint64_t address, uint64_t size, const char *what, uint64_t *ret_offset,
		 struct err *e) MUST_CHECK;
/* elf_map_dyn: the value of a dynamic entry, the last one of that tag as the loader takes it. */
bool elf_map_dyn(const struct elf_map *m, int64_t tag, uint64_t *ret);
/* elf_map_string: a string of the dynamic string table; ERR_INTEGRITY when it starts outside or has
 * no end. `where` is the file offset of what refers to it. */
int elf_map_string(const struct elf_map *m, uint64_t index, uint64_t where, const char **ret, struct err *e) MUST_CHECK;
/* elf_map_loadable: what the loader asks of PT_LOAD segments: ascending, apart, alignment a power
 * of two, offset and address congruent to it. ERR_INTEGRITY names the segment. */
int elf_map_loadable(const struct elf_map *m, struct err *e) MUST_CHECK;

/* elf_map_symbols: file offset and number of the dynamic symbols, counted from the hash tables, or
 * from relocations where the GNU hash is empty; 0 without a table. */
int elf_map_symbols(const struct elf_map *m, uint64_t *ret_offset, uint64_t *ret_count, struct err *e) MUST_CHECK;
/* elf_map_symbol: one of them (the index is below the count). */
Elf64_Sym elf_map_symbol(const struct elf_map *m, uint64_t table, uint64_t index);

struct elf_need {        /* one version wanted of one library */
	uint64_t offset; /* of the library's record in the file */
	uint32_t file;   /* string indexes */
	uint32_t name;
	unsigned index; /* as in the symbols' version table */
};

/* elf_map_needs: every version need, in file order, in the map's arena. */
int elf_map_needs(struct elf_map *m, struct elf_need **ret, size_t *ret_count, struct err *e) MUST_CHECK;
/* elf_map_path_room: length of the string at `index`, which DT_RPATH or DT_RUNPATH refers to; 0
 * when anything else refers into it: another dynamic entry, a symbol, a version need or
 * definition. */
int elf_map_path_room(struct elf_map *m, uint64_t index, size_t *ret, struct err *e) MUST_CHECK;
