/* An ELF file in memory, addressed as the loader does it: by program headers, never by sections. */
#pragma once
#include <gelf.h>

#include "base/sys/fs.h"

#ifndef DT_RELR /* glibc before 2.36 */
#define DT_RELR 36
#define DT_RELRSZ 35
#define DT_RELRENT 37
#endif

struct elf_map {
	const char *name; /* for messages; the caller's; NULL: "the file" */
	const uint8_t *data;
	size_t size;
	struct fs_mapping file; /* elf_map_open: where data is from */
	Elf *elf;
	GElf_Ehdr header;
	GElf_Phdr *segments; /* file ranges of PT_LOAD and PT_DYNAMIC lie inside the file */
	size_t segments_count;
	Elf64_Dyn *dyn; /* entries before DT_NULL; NULL if not dynamic */
	size_t dyn_count;
	size_t dyn_room;     /* entries that fit, the last of which is a DT_NULL */
	uint64_t dyn_offset; /* of the first entry in the file */
	uint64_t strings;    /* file offset of the dynamic string table */
	uint64_t strings_size;
	struct arena arena;
};

/* elf_map_open: header, segments, dynamic entries and string table of a file. elf_map_memory: the
 * same of bytes that outlive the map. ERR_INTEGRITY for what is malformed, 32-bit or big-endian.
 * Close it also after a failure. */
int elf_map_open(const char *path, struct elf_map *ret, struct err *e) MUST_CHECK;
int elf_map_memory(const struct file_bytes *in, struct elf_map *ret, struct err *e) MUST_CHECK;
void elf_map_close(struct elf_map *m);
#define AUTO_ELF_MAP CLEANUP(elf_map_close)

/* elf_map_info: elf_read of it. elf_map_all: elf_read_all of it. */
struct elf_info;
int elf_map_info(struct elf_map *m, struct arena *a, struct elf_info *ret,
		 struct err *e) MUST_CHECK;
int elf_map_all(struct elf_map *m, struct arena *a, struct elf_info *ret, struct err *e) MUST_CHECK;
/* elf_map_bad: ERR_INTEGRITY "'name': text at offset 0x..."; -1. */
int elf_map_bad(const struct elf_map *m, uint64_t offset, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* elf_map_find: returns the file offset of an address, and how many bytes the loader maps from
 * there on: to the end of its segment, the rest of the last page, or the segment that follows at
 * once. False if nothing of the file is mapped there. elf_map_need: finds a table of `size` bytes;
 * ERR_INTEGRITY names `what`. */
bool elf_map_find(const struct elf_map *m, uint64_t address, uint64_t *ret_offset,
		  uint64_t *ret_room);
int elf_map_need(const struct elf_map *m, uint64_t address, uint64_t size, const char *what,
		 uint64_t *ret_offset, struct err *e) MUST_CHECK;
/* elf_map_dyn: returns a dynamic entry's value; of several the last, like the loader. */
bool elf_map_dyn(const struct elf_map *m, int64_t tag, uint64_t *ret);
/* A table, and the two dynamic entries with its address and size. */
struct elf_table {
	int64_t tag, size_tag;
	const char *what; /* for messages */
};

struct elf_range { /* of a file */
	uint64_t offset, size;
};

extern const struct elf_table ELF_RELA, ELF_JMPREL, ELF_RELR;

/* elf_map_table: finds the bytes of a table; ret->size: 0 without one. ERR_INTEGRITY like
 * elf_map_need. */
int elf_map_table(const struct elf_map *m, const struct elf_table *t, struct elf_range *ret,
		  struct err *e) MUST_CHECK;
/* elf_map_string: from the dynamic string table. `where`: file offset of what refers to it. */
int elf_map_string(const struct elf_map *m, uint64_t index, uint64_t where, const char **ret,
		   struct err *e) MUST_CHECK;
/* elf_map_loadable: whether the loader would take it: segments that are ascending, disjoint and
 * aligned; dynamic entries and relocations that lie where they must. ERR_INTEGRITY. */
int elf_map_loadable(const struct elf_map *m, struct err *e) MUST_CHECK;

/* elf_map_symbols: file offset and number of the dynamic symbols, counted from the hash tables, or
 * from relocations where the GNU hash is empty; 0 without a table. */
int elf_map_symbols(const struct elf_map *m, uint64_t *ret_offset, uint64_t *ret_count,
		    struct err *e) MUST_CHECK;
/* elf_map_symbol: `index` is below the count. */
Elf64_Sym elf_map_symbol(const struct elf_map *m, uint64_t table, uint64_t index);

struct elf_need {        /* a version wanted of a library, or defined */
	uint64_t offset; /* of the library's record in the file */
	uint32_t file;   /* string indexes */
	uint32_t name;
	unsigned index; /* wanted: as symbols have it; defined: 0, or a parent's name */
	bool weak;
};

/* elf_map_needs, elf_map_definitions: in file order, in the map's arena. */
int elf_map_needs(struct elf_map *m, struct elf_need **ret, size_t *ret_count,
		  struct err *e) MUST_CHECK;
int elf_map_definitions(struct elf_map *m, struct elf_need **ret, size_t *ret_count,
			struct err *e) MUST_CHECK;
/* elf_map_path_room: returns the length of the string at `index` of DT_RPATH or DT_RUNPATH, before
 * a tail that a symbol, a version or another dynamic entry refers to: that many bytes and a NUL fit
 * there. */
int elf_map_path_room(struct elf_map *m, uint64_t index, size_t *ret, struct err *e) MUST_CHECK;

/* A shared library with other bytes in some places, and without the pages of some sections' ends or
 * with a segment more: what is there keeps its address, but for notes and tables of symbols. */

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
 * second in memory alone. Where their headers have no room, notes and tables of symbols behind the
 * headers move into a tail. What cannot go is zeroed (`kept`). Call it once, last.
 * ERR_INTEGRITY for patches that overlap and for malformed sections. */
int elf_cut_tails(struct elf_cut *c, const struct elf_tail *tails, size_t count,
		  struct err *e) MUST_CHECK;
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
/* elf_sections: the section headers, in the arena, and their names' string table;
 * ERR_INTEGRITY. */
int elf_sections(const struct elf_map *m, struct arena *a, Elf64_Shdr **ret, size_t *ret_count,
		 struct err *e) MUST_CHECK;
/* elf_section_name: "" where it cannot be read. */
const char *elf_section_name(const struct elf_map *m, const Elf64_Shdr *sections, size_t count,
			     size_t i);
