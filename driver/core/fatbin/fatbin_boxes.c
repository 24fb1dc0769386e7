#include "core/code/code.h"
#include "core/fatbin/fatbin_parts.h"

enum fatbin_section fatbin_section(const char *name)
{
	if (strcmp(name, ".nv_fatbin") == 0)
		return FATBIN_LINKED;
	if (strcmp(name, "__nv_relfatbin") == 0)
		return FATBIN_RELOCATABLE;
	if (strcmp(name, ".cask_resource") == 0)
		return FATBIN_AMONG; /* cuBLASLt, cuDNN, cuSPARSELt */
	if (strcmp(name, ".ldata") == 0)
		return FATBIN_AMONG; /* cuFFT: one image each */
	return FATBIN_NONE;
}

/* A library, and the boxes that are found in it. */
struct boxing {
	const struct elf_map *m;
	struct fatbin_boxes *b;
	struct arena *a;
};

static struct fatbin_file file_of(const struct boxing *x, struct err *e)
{
	return (struct fatbin_file){.data = x->m->data,
				    .size = x->m->size,
				    .name = x->m->name,
				    .member = "",
				    .b = x->b,
				    .a = x->a,
				    .e = e};
}

/* The section's bytes must be loaded without gaps, or pointers into it would mean others. */
static int read_section(const struct boxing *x, size_t i, struct err *e)
{
	const struct elf_map *m = x->m;
	const struct fatbin_boxes *b = x->b;
	const Elf64_Shdr *s = &b->sections[i];
	enum fatbin_section kind =
		fatbin_section(elf_section_name(m, b->sections, b->sections_count, i));
	struct fatbin_file f = file_of(x, e);
	uint64_t offset, room;

	f.section = i;
	f.among = kind == FATBIN_AMONG;
	f.relocatable = kind == FATBIN_RELOCATABLE;
	if (!elf_map_find(m, s->sh_addr, &offset, &room) || offset != s->sh_offset ||
	    room < s->sh_size)
		return elf_map_bad(m, s->sh_offset, e,
				   "the section of GPU code is not loaded as it is in the file");
	const uint64_t aligned = (s->sh_offset + 7) & ~7ULL, end = s->sh_offset + s->sh_size;
	if (f.among)
		return aligned < end ? fatbin_search(&f, aligned, end) : 0;
	return fatbin_containers(&f, s->sh_offset, end);
}

struct fatbin_box *fatbin_box_at(const struct fatbin_boxes *b, const struct elf_map *m,
				 uint64_t address, bool *ret_start)
{
	uint64_t offset, room;

	if (!elf_map_find(m, address, &offset, &room))
		return NULL;
	size_t low = 0, high = b->count;
	/* boxes are in the order of their sections, which is that of the file */
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (b->items[middle].to <= offset)
			low = middle + 1;
		else
			high = middle;
	}

	if (low == b->count || offset < b->items[low].from)
		return NULL;
	*ret_start = offset == b->items[low].from;
	return &b->items[low];
}

static void take_pointer(const struct boxing *x, uint64_t value, uint64_t at, uint64_t where)
{
	struct fatbin_boxes *b = x->b;
	bool start;
	struct fatbin_box *box = fatbin_box_at(b, x->m, value, &start);

	if (!box)
		return;
	if (!start) {
		box->pinned = box->whole = true;
		return;
	}

	b->pointers = arena_room(x->a, b->pointers, b->pointers_count, &b->pointers_cap, 512,
				 sizeof(*b->pointers));
	b->pointers[b->pointers_count++] =
		(struct fatbin_pointer){at, where, (size_t)(box - b->items)};
	box->pointed = true;
}

static uint64_t number_at(const struct elf_map *m, uint64_t offset)
{
	uint64_t v;
	memcpy(&v, m->data + offset, sizeof(v));
	return v;
}

static int read_rela(const struct boxing *x, struct err *e)
{
	const struct elf_map *m = x->m;
	const unsigned relative =
		m->header.e_machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
	struct elf_range table;
	uint64_t where, room;

	if (elf_map_table(m, &ELF_RELA, &table, e) < 0)
		return -1;
	for (uint64_t i = 0; table.size - i >= sizeof(Elf64_Rela); i += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		memcpy(&r, m->data + table.offset + i, sizeof(r));
		if (ELF64_R_TYPE(r.r_info) != relative)
			continue;
		/* Some linkers also write the address where the relocation writes it. */
		bool in_place = elf_map_find(m, r.r_offset, &where, &room) &&
				room >= sizeof(uint64_t) &&
				number_at(m, where) == (uint64_t)r.r_addend;
		const uint64_t at = table.offset + i + offsetof(Elf64_Rela, r_addend);
		take_pointer(x, (uint64_t)r.r_addend, at, in_place ? where : 0);
	}

	return 0;
}

static void take_place(const struct boxing *x, uint64_t address)
{
	const struct elf_map *m = x->m;
	uint64_t where, room;
	if (elf_map_find(m, address, &where, &room) && room >= sizeof(uint64_t))
		take_pointer(x, number_at(m, where), where, 0);
}

/* An address, or a bit for each of the 63 places behind the last one. */
static int read_relr(const struct boxing *x, struct err *e)
{
	const struct elf_map *m = x->m;
	struct elf_range table;
	uint64_t next = 0;

	if (elf_map_table(m, &ELF_RELR, &table, e) < 0)
		return -1;
	for (uint64_t i = 0; table.size - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
		uint64_t v = number_at(m, table.offset + i);
		if ((v & 1) == 0) {
			take_place(x, v);
			next = v + sizeof(uint64_t);
			continue;
		}

		for (unsigned bit = 1; bit < 64; bit++)
			if (v >> bit & 1)
				take_place(x, next + (bit - 1) * sizeof(uint64_t));
		next += 63 * sizeof(uint64_t);
	}

	return 0;
}

/* A symbol is an address that other files may have. */
static int read_symbols(const struct elf_map *m, struct fatbin_boxes *b, struct err *e)
{
	uint64_t table, count;
	bool start;

	if (elf_map_symbols(m, &table, &count, e) < 0)
		return -1;
	for (uint64_t i = 1; i < count; i++) {
		Elf64_Sym s = elf_map_symbol(m, table, i);
		struct fatbin_box *box = s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS
						 ? NULL
						 : fatbin_box_at(b, m, s.st_value, &start);
		if (box)
			box->pinned = box->whole = true;
	}

	return 0;
}

static void take_code(const struct elf_map *m, struct fatbin_boxes *b, uint64_t address)
{
	bool start;
	struct fatbin_box *box = fatbin_box_at(b, m, address, &start);

	if (box) {
		box->pinned = true;
		box->whole = box->whole || !start;
	}
}

/* "lea target(%rip), register": REX.W, 8d, a register and no base. The same bytes inside of
 * other instructions lead anywhere; what leads into the middle of a fat binary is decoded. */
static void read_x86(const struct elf_map *m, struct fatbin_boxes *b, const Elf64_Shdr *s)
{
	const uint8_t *code = m->data + s->sh_offset, *end = code + s->sh_size;

	for (const uint8_t *p = code; (p = memchr(p, 0x8d, (size_t)(end - p))); p++) {
		int32_t distance;
		bool start;
		if (p == code || end - p < 6 || (p[-1] & 0xfb) != 0x48 || (p[1] & 0xc7) != 0x05)
			continue;
		memcpy(&distance, p + 2, sizeof(distance));
		const uint64_t to =
			s->sh_addr + (uint64_t)(p + 6 - code) + (uint64_t)(int64_t)distance;
		if (fatbin_box_at(b, m, to, &start) &&
		    (start || decode_may_start(code, s->sh_size, (size_t)(p - 1 - code))))
			take_code(m, b, to);
	}
}

/* The medium code model: "movabs distance, register", from the global offset table to large data.
 * What begins there is named by it. */
static void read_large_data(const struct elf_map *m, struct fatbin_boxes *b, const Elf64_Shdr *s)
{
	const uint8_t *code = m->data + s->sh_offset;
	uint64_t table, distance;
	bool start;

	if (!elf_map_dyn(m, DT_PLTGOT, &table))
		return;
	for (uint64_t i = 0; i + 10 <= s->sh_size; i++) {
		if ((code[i] & 0xfe) != 0x48 || (code[i + 1] & 0xf8) != 0xb8)
			continue;
		memcpy(&distance, code + i + 2, sizeof(distance));
		struct fatbin_box *box = fatbin_box_at(b, m, table + distance, &start);
		if (!box || !box->among)
			continue;
		box->pointed = box->pointed || start;
		box->whole = box->whole || !start;
	}
}

static bool any_unpointed(const struct fatbin_boxes *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->items[i].among && !b->items[i].pointed)
			return true;
	return false;
}

/* "adrp register, page" and "add register, register, #rest" behind it. */
static void read_aarch64(const struct elf_map *m, struct fatbin_boxes *b, const Elf64_Shdr *s)
{
	for (uint64_t i = 0; i + 8 <= s->sh_size; i += 4) {
		uint32_t page, add;
		memcpy(&page, m->data + s->sh_offset + i, sizeof(page));
		memcpy(&add, m->data + s->sh_offset + i + 4, sizeof(add));
		if ((page & 0x9f000000) != 0x90000000 || (add & 0xffc00000) != 0x91000000 ||
		    (add >> 5 & 31) != (page & 31))
			continue;
		int64_t pages = (int64_t)((uint64_t)(page >> 5 & 0x7ffff) << 45 |
					  (uint64_t)(page >> 29 & 3) << 43) >>
				43;
		take_code(m, b,
			  ((s->sh_addr + i) & ~0xfffULL) + (uint64_t)(pages * 4096) +
				  (add >> 10 & 0xfff));
	}
}

/* Code that has an address without a relocation: what it names must stay. */
static void read_code(const struct elf_map *m, struct fatbin_boxes *b)
{
	const bool large = any_unpointed(b);

	for (size_t i = 0; i < b->sections_count; i++) {
		const Elf64_Shdr *s = &b->sections[i];
		if (s->sh_type != SHT_PROGBITS || !(s->sh_flags & SHF_EXECINSTR))
			continue;
		if (m->header.e_machine == EM_AARCH64)
			read_aarch64(m, b, s);
		else
			read_x86(m, b, s);
		if (large && m->header.e_machine == EM_X86_64)
			read_large_data(m, b, s);
	}
}

static int check_order(const struct elf_map *m, const struct fatbin_boxes *b, struct err *e)
{
	for (size_t i = 1; i < b->count; i++)
		if (b->items[i].from < b->items[i - 1].to)
			return elf_map_bad(m, b->items[i].from, e,
					   "two sections of GPU code lie over each other");
	return 0;
}

/* Cubins that no fat binary holds begin with an ELF header. The boxes from `first` on are those of
 * the section, ascending. */
static void find_cubins(struct fatbin_file *f, size_t first, uint64_t at, uint64_t end)
{
	const struct fatbin_boxes *b = f->b;
	const size_t boxes = b->count;
	const uint8_t *hit;

	for (size_t i = first;
	     at < end && (hit = memmem(f->data + at, end - at, ELFMAG, SELFMAG));) {
		at = (uint64_t)(hit - f->data);
		while (i < boxes && b->items[i].to <= at)
			i++;
		const bool inside = i < boxes && b->items[i].from <= at;
		if (!inside)
			(void)fatbin_cubin_at(f, at, end);
		at = inside ? b->items[i].to : at + SELFMAG;
	}
}

static bool section_has_boxes(const struct fatbin_boxes *b, size_t section)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->items[i].section == section)
			return true;
	return false;
}

const char *fatbin_elsewhere(const struct fatbin_boxes *b, const struct elf_map *m, struct arena *a,
			     struct fatbin_boxes *ret)
{
	const char *first = NULL;

	*ret = (struct fatbin_boxes){0};
	for (size_t i = 0; i < b->sections_count; i++) {
		const Elf64_Shdr *s = &b->sections[i];
		const char *name = elf_section_name(m, b->sections, b->sections_count, i);
		const uint64_t end = s->sh_offset + s->sh_size, at = (s->sh_offset + 7) & ~7ULL;
		const bool data = (s->sh_flags & SHF_ALLOC) && !(s->sh_flags & SHF_EXECINSTR);
		const size_t before = ret->count;
		struct fatbin_file f = file_of(&(struct boxing){m, ret, a}, ERR_IGNORED);
		const enum fatbin_section kind = fatbin_section(name);
		/* A section of large data without fat binaries may have cubins all the same. */
		const bool bare = kind == FATBIN_AMONG && !section_has_boxes(b, i);
		if (s->sh_type != SHT_PROGBITS || !data || at >= end)
			continue;
		if (kind != FATBIN_NONE && !bare)
			continue;
		(void)!fatbin_search(&f, at, end);
		find_cubins(&f, before, at, end);
		if (!first && ret->count > before)
			first = name;
	}

	return first;
}

static bool any_runs(const struct fatbin_boxes *b, const struct fatbin_wanted *w)
{
	for (size_t i = 0; i < b->count; i++)
		for (size_t g = 0; g < w->count; g++)
			if (fatbin_runs(b->entries + b->items[i].first, b->items[i].entries, w,
					w->gpus[g].number))
				return true;
	return false;
}

const char *fatbin_unread(struct fatbin_boxes *b, const struct elf_map *m,
			  const struct fatbin_wanted *w, struct arena *a)
{
	struct fatbin_boxes others;

	if (!b->count || any_runs(b, w))
		return NULL;
	const char *where = fatbin_elsewhere(b, m, a, &others);
	if (!where || !any_runs(&others, w))
		return NULL;
	for (size_t i = 0; i < b->count; i++)
		b->items[i].whole = true;
	return where;
}

int fatbin_boxes_find(const struct elf_map *m, struct arena *a, struct fatbin_boxes *ret,
		      struct err *e)
{
	struct fatbin_boxes b = {0};
	const struct boxing x = {m, &b, a};

	if (elf_sections(m, a, &b.sections, &b.sections_count, e) < 0)
		return -1;
	for (size_t i = 0; i < b.sections_count; i++) {
		const Elf64_Shdr *s = &b.sections[i];
		bool code = fatbin_section(elf_section_name(m, b.sections, b.sections_count, i)) !=
			    FATBIN_NONE;
		bool loaded = (s->sh_flags & SHF_ALLOC) && s->sh_type == SHT_PROGBITS && s->sh_size;
		if (code && loaded && read_section(&x, i, e) < 0)
			return -1;
	}

	struct fatbin_file bare = file_of(&x, e);
	bare.among = true; /* without sections, GPU code and data look alike: found code stays */
	if (!b.sections_count && fatbin_search(&bare, 0, m->size) < 0)
		return -1;
	if (b.sections_count && b.count)
		array_sort(b.items, b.count, sizeof(*b.items), number_cmp);
	if (!b.entries) /* boxes without any: callers add to it */
		b.entries = arena_array(a, 1, sizeof(*b.entries));
	*ret = b;
	return 0;
}

int fatbin_boxes_read(const struct elf_map *m, struct arena *a, struct fatbin_boxes *ret,
		      struct err *e)
{
	struct fatbin_boxes b;
	const struct boxing x = {m, &b, a};

	if (fatbin_boxes_find(m, a, &b, e) < 0)
		return -1;
	if (b.sections_count && b.count) {
		if (check_order(m, &b, e) < 0 || read_rela(&x, e) < 0 || read_relr(&x, e) < 0 ||
		    read_symbols(m, &b, e) < 0)
			return -1;
		read_code(m, &b);
	}

	for (size_t i = 0; i < b.count; i++) {
		struct fatbin_box *box = &b.items[i];
		/* What only looks like one, among other data, has no pointer. */
		box->whole = box->whole || (box->among && !box->pointed);
		box->pinned = box->pinned || box->among || !box->pointed;
	}

	*ret = b;
	return 0;
}
