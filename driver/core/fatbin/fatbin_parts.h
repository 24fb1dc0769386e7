/* What the fatbin files share. */
#pragma once
#include "core/fatbin/fatbin.h"

struct fatbin_box;
struct fatbin_boxes;

struct fatbin_file {
	const uint8_t *data;
	uint64_t size;
	const char *name;
	const char *member;     /* of a static archive, "" elsewhere */
	struct fatbin_boxes *b; /* what is found, in the arena */
	struct arena *a;
	size_t section; /* of the boxes */
	bool among;
	bool relocatable;           /* what is read now is code of __nv_relfatbin */
	uint64_t at;                /* where fatbin_containers reads */
	uint64_t names, names_size; /* the long names of a static archive */
	struct err *e;              /* what all of these set on failure */
};

/* fatbin_count_for: the count of what an entry is, added where it is the first.
 * fatbin_count_cmp: of two, by target, then kind. */
struct fatbin_count *fatbin_count_for(struct arena *a, struct fatbin_count **items, size_t *count,
				      size_t *cap, const struct fatbin_entry *entry);
int fatbin_count_cmp(const void *a, const void *b);
/* fatbin_number: reads a little-endian number; the caller has checked that it is inside. */
uint64_t fatbin_number(const struct fatbin_file *f, uint64_t at, size_t bytes);
/* fatbin_bad: ERR_INTEGRITY "'name': text at offset 0x..."; -1. */
int fatbin_bad(const struct fatbin_file *f, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* fatbin_containers: the fat binaries of a section, one after the other, with zeros between.
 * fatbin_wrappers: checks the records by which a program hands them to the runtime. */
int fatbin_containers(struct fatbin_file *f, uint64_t at, uint64_t end) MUST_CHECK;
int fatbin_wrappers(struct fatbin_file *f, uint64_t at, uint64_t end) MUST_CHECK;
/* fatbin_search: fat binaries among other data, found by how they begin. */
int fatbin_search(struct fatbin_file *f, uint64_t at, uint64_t end) MUST_CHECK;
bool fatbin_is_container(const struct fatbin_file *f, uint64_t at, uint64_t end);
/* fatbin_add: an entry. fatbin_close: the box of those from box->first on; sets the rest of it. */
void fatbin_add(struct fatbin_file *f, const struct fatbin_entry *entry);
void fatbin_close(struct fatbin_file *f, const struct fatbin_box *box);

/* The fat binaries of a library with all that points to them. */
enum fatbin_section { FATBIN_NONE, FATBIN_LINKED, FATBIN_RELOCATABLE, FATBIN_AMONG };

/* fatbin_section: what a section of this name holds. */
enum fatbin_section fatbin_section(const char *name);

struct fatbin_box {
	uint64_t from, body, to; /* file offsets: header, entries, end */
	size_t section;          /* its number */
	size_t first, entries;   /* in fatbin_boxes.entries */
	bool pointed;            /* a relocation points to its first byte */
	bool pinned;             /* must stay at its address */
	bool among;              /* among other data: it is reduced without moving */
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

/* fatbin_boxes_find: those of the sections .nv_fatbin and __nv_relfatbin, and those among the data
 * of .cask_resource and .ldata; of a file without section headers all, whole. fatbin_boxes_read:
 * with what points to them. ERR_INTEGRITY. */
int fatbin_boxes_find(const struct elf_map *m, struct arena *a, struct fatbin_boxes *ret,
		      struct err *e) MUST_CHECK;
int fatbin_boxes_read(const struct elf_map *m, struct arena *a, struct fatbin_boxes *ret,
		      struct err *e) MUST_CHECK;
/* fatbin_elsewhere: fat binaries and bare cubins in all other sections of data, which are not read
 * as code that may be cut; the name of the first such section, NULL: none. */
const char *fatbin_elsewhere(const struct fatbin_boxes *b, const struct elf_map *m, struct arena *a,
			     struct fatbin_boxes *ret);
/* fatbin_unread: where nothing that was read runs on the GPUs: another section, as the .lrodata of
 * torch, that has code which does. Then all stays whole. NULL: none. */
const char *fatbin_unread(struct fatbin_boxes *b, const struct elf_map *m,
			  const struct fatbin_wanted *w, struct arena *a);
/* fatbin_cubin_at: adds the cubin whose ELF header begins at `at`, by the target that it states.
 * Returns false if no cubin begins there. */
bool fatbin_cubin_at(struct fatbin_file *f, uint64_t at, uint64_t end);

enum { FATBIN_ARCHS_MAX = 64 };

/* "sm_75 sm_90 compute_120" in a library of torch's. */
struct fatbin_archs {
	uint64_t at, len; /* in the file, without its NUL */
	/* kind and target of each word, and where it is in the text */
	struct fatbin_entry entries[FATBIN_ARCHS_MAX];
	size_t count;
};

struct fatbin_archs_list {
	struct fatbin_archs *items;
	size_t count, cap;
	struct arena *arena; /* of the items */
};

/* fatbin_archs_find: in a library called libtorch_*; ERR_INTEGRITY for malformed sections. */
int fatbin_archs_find(const struct elf_map *m, struct fatbin_archs_list *ret,
		      struct err *e) MUST_CHECK;

/* fatbin_box_at: the one that holds an address; *ret_start: it is its first byte. NULL: none
 * does. */
struct fatbin_box *fatbin_box_at(const struct fatbin_boxes *b, const struct elf_map *m,
				 uint64_t address, bool *ret_start);
