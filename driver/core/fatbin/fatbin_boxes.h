/* The fat binaries of a library with all that points to them. */
#pragma once
#include "core/elf/elf_cut.h"
#include "core/fatbin/fatbin_parts.h"

enum fatbin_section { FATBIN_NONE, FATBIN_LINKED, FATBIN_RELOCATABLE, FATBIN_AMONG };

/* fatbin_section: what a section of this name holds. */
enum fatbin_section fatbin_section(const char *name);

struct fatbin_box {
	size_t section;          /* its number */
	uint64_t from, body, to; /* file offsets: header, entries, end */
	size_t first, entries;   /* in fatbin_boxes.entries */
	bool pointed;            /* a relocation points to its first byte */
	bool pinned;             /* must stay at its address */
	bool among;              /* other data lies around it: it is cut where it is */
	bool whole;              /* something points into it: nothing of it may move */
};

struct fatbin_pointer {
	uint64_t at;       /* file offset of the eight bytes that hold the address */
	uint64_t in_place; /* the same where the relocation writes; 0: something else is there */
	size_t box;
};

struct fatbin_boxes {
	Elf64_Shdr *sections;
	size_t sections_count;
	struct fatbin_box *items; /* ascending */
	size_t count, cap;
	struct fatbin_entry *entries;
	size_t entries_count, entries_cap;
	struct fatbin_pointer *pointers;
	size_t pointers_count, pointers_cap;
};

/* fatbin_boxes_read: of the sections .nv_fatbin and __nv_relfatbin, and those among the data of
 * .cask_resource; of a file without section headers all, whole. ERR_INTEGRITY. */
int fatbin_boxes_read(const struct elf_map *m, struct arena *a, struct fatbin_boxes *ret, struct err *e) MUST_CHECK;
/* fatbin_box_at: the one that holds an address; *ret_start: it is its first byte. NULL: none
 * does. */
struct fatbin_box *fatbin_box_at(const struct fatbin_boxes *b, const struct elf_map *m, uint64_t address,
				 bool *ret_start);
