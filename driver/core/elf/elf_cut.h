/* A shared library with other bytes in some places, and without the pages of some sections' ends or
 * with a segment more: what is there keeps its address, but for notes and tables of symbols. */
#pragma once
#include "core/elf/elf_map.h"

struct elf_patch {
	uint64_t at, len;    /* in the file as it was */
	const uint8_t *from; /* NULL: zeros */
};

struct elf_hole { /* bytes that leave the file */
	uint64_t from, to;
};

/* The end of a section that is not used any more. */
struct elf_tail {
	size_t section; /* its number */
	uint64_t used;  /* file offset of the first byte that is not used */
};

struct elf_cut {
	const struct elf_map *map;
	struct arena *a;
	struct elf_patch *patches; /* disjoint; sorted by elf_cut_tails */
	size_t count, cap;
	struct elf_hole *holes; /* ascending */
	size_t holes_count;
	uint64_t size;    /* of the new file */
	const char *kept; /* why pages stay that could go; NULL */
};

/* elf_cut_add: these bytes at that place; `from` outlives the cut. */
void elf_cut_add(struct elf_cut *c, uint64_t at, const void *from, uint64_t len);
/* elf_cut_tails: takes the pages of the tails out, in the loader's pages of the machine (4 or
 * 64 KiB) and the file's alignment: a PT_LOAD becomes two, the first of which reaches to the
 * second in memory alone. Where their headers have no room, notes and hash tables behind the
 * headers move into a tail. What cannot go is zeroed (`kept`). Call it once, last.
 * ERR_INTEGRITY for patches that overlap and for malformed sections. */
int elf_cut_tails(struct elf_cut *c, const struct elf_tail *tails, size_t count, struct err *e) MUST_CHECK;
/* elf_cut_grow: instead of the tails: the dynamic string table gets `more` zeros, in a segment
 * behind the end of the file; its old place is zeroed. So do the dynamic entries, where they have
 * no room for `entries` more. ERR_INTEGRITY also where no room can be made for the program
 * header. */
int elf_cut_grow(struct elf_cut *c, uint64_t more, size_t entries, struct err *e) MUST_CHECK;
/* elf_cut_write: the new file into an empty one; zeros are left out as holes of the file
 * system. */
int elf_cut_write(const struct elf_cut *c, int fd, const char *name, struct err *e) MUST_CHECK;
/* elf_cut_blank: bytes of the new file in whole pages of 4 KiB that became zeros. */
uint64_t elf_cut_blank(const struct elf_cut *c);
struct elf_mark {
	uint64_t at; /* in the new file */
	/* where the bytes behind it are in the old one; UINT64_MAX: in no long part */
	uint64_t old;
};
/* elf_cut_marks: where long parts of the old file begin and end, ascending, some twice. */
struct elf_mark *elf_cut_marks(const struct elf_cut *c, struct arena *a, size_t *ret_count);
/* elf_cut_offset: where a byte of the old file is in the new one. */
uint64_t elf_cut_offset(const struct elf_cut *c, uint64_t offset);
/* elf_sections: the section headers, in the arena, and their names' string table;
 * ERR_INTEGRITY. */
int elf_sections(const struct elf_map *m, struct arena *a, Elf64_Shdr **ret, size_t *ret_count,
		 struct err *e) MUST_CHECK;
/* elf_section_name: "" where it cannot be read. */
const char *elf_section_name(const struct elf_map *m, const Elf64_Shdr *sections, size_t count, size_t i);
