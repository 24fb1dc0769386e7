#include "core/code/code.h"

/* Where functions may be, from every source, overlapping. */
enum {
	CANDIDATE_DATA = 1 << 16, /* bytes between functions that a symbol calls an object */
	CANDIDATE_MARK = 1 << 17  /* a mapping symbol of AArch64: here data or code begins */
};

struct candidate {
	uint64_t start, size; /* size 0: up to the next one */
	const char *name, *unit;
	unsigned flags;
	unsigned order; /* makes sorting by start stable */
};

struct candidates {
	struct candidate *items;
	size_t count, cap;
	struct arena *a;
};

static void code_add(struct candidates *c, struct candidate one)
{
	c->items = arena_room(c->a, c->items, c->count, &c->cap, 256, sizeof(*c->items));
	one.order = (unsigned)c->count;
	c->items[c->count++] = one;
}

struct code_region {
	uint64_t start, end;
};

static int by_start(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Which name to keep: one that is defined once, then one of several units, then a local one. */
static unsigned rank(const struct candidate *c)
{
	if (!c->name)
		return 0;
	return c->flags & CODE_STRONG ? 3 : c->flags & CODE_WEAK ? 2 : 1;
}

/* All candidates of one start become one; a mark gives way to what a symbol declares. */
static size_t merge(struct candidates *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++) {
		struct candidate *one = &c->items[i], *last = n ? &c->items[n - 1] : NULL;
		if (!last || last->start != one->start) {
			c->items[n++] = *one;
			continue;
		}

		if ((last->flags ^ one->flags) & CANDIDATE_MARK) {
			*last = last->flags & CANDIDATE_MARK ? *one : *last;
			continue;
		}

		unsigned flags = last->flags | one->flags;
		if (rank(one) > rank(last)) {
			last->name = one->name;
			last->unit = one->unit;
		}

		/* A symbol of a function wins over one of data. */
		if (!(last->flags & one->flags & CANDIDATE_DATA))
			flags &= ~(unsigned)CANDIDATE_DATA;
		if (flags & CODE_STRONG)
			flags &= ~(unsigned)CODE_WEAK;
		last->flags = flags;
		last->size = one->size > last->size ? one->size : last->size;
	}

	return n;
}

static uint64_t end_of(const struct candidate *c, uint64_t limit)
{
	return c->size < limit - c->start ? c->start + c->size : limit;
}

/* Marks inside of a function are left out: it stays one range. */
static size_t drop_marks(struct candidate *items, size_t count)
{
	uint64_t end = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if ((items[i].flags & CANDIDATE_MARK) && items[i].start < end)
			continue;
		items[n] = items[i];
		uint64_t its = end_of(&items[n++], UINT64_MAX);
		end = its > end ? its : end;
	}

	return n;
}

static bool is_inside(const struct code_region *list, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (address >= list[i].start && address < list[i].end)
			return true;
	return false;
}

static bool is_executable(const struct elf_map *m, uint64_t address)
{
	for (size_t i = 0; i < m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i];
		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) &&
		    address - p->p_vaddr < p->p_filesz)
			return true;
	}

	return false;
}

/* The executable sections, or segments where there
 * are none, as far as their bytes are in the file. */
static size_t find_regions(const struct elf_map *m, const struct candidates *c, struct arena *a,
			   struct code_region **ret)
{
	size_t sections = 0, n = 0;

	(void)!elf_getshdrnum(m->elf, &sections);
	sections = sections <= m->size / sizeof(Elf64_Shdr) ? sections : 0;
	struct code_region *list = arena_array(a, sections + m->segments_count + 1, sizeof(*list));
	for (Elf_Scn *s = sections ? elf_nextscn(m->elf, NULL) : NULL; s && n < sections;
	     s = elf_nextscn(m->elf, s)) {
		GElf_Shdr h;
		uint64_t offset, room;
		if (!gelf_getshdr(s, &h) || h.sh_type != SHT_PROGBITS ||
		    !(h.sh_flags & SHF_EXECINSTR) || !(h.sh_flags & SHF_ALLOC))
			continue;
		if (elf_map_find(m, h.sh_addr, &offset, &room) && h.sh_size)
			list[n++] = (struct code_region){
				h.sh_addr, h.sh_addr + (h.sh_size < room ? h.sh_size : room)};
	}

	/* Sections are for tools alone: where a function
	 * is in none of them, they are not to be believed. */
	for (size_t i = 0; i < c->count && n; i++)
		if ((c->items[i].flags & CODE_DECLARED) && !is_inside(list, n, c->items[i].start) &&
		    is_executable(m, c->items[i].start))
			n = 0;
	for (size_t i = 0; n == 0 && i < m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i];
		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && p->p_filesz &&
		    p->p_filesz <= UINT64_MAX - p->p_vaddr)
			list[n++] = (struct code_region){p->p_vaddr, p->p_vaddr + p->p_filesz};
	}

	array_sort(list, n, sizeof(*list), number_cmp);
	*ret = list;
	return n;
}

struct cutting {
	struct code_map *map;
	const struct candidate *outer; /* the one that ends last so far */
	uint64_t outer_end;
};

static void put(struct cutting *t, uint64_t start, uint64_t end, const struct candidate *c)
{
	struct code_range *r = &t->map->ranges[t->map->count];

	if (start >= end || (c && (c->flags & CANDIDATE_DATA) && (c->flags & CANDIDATE_MARK)))
		return;
	*r = (struct code_range){.start = start, .end = end};
	if (c) {
		r->name = c->name;
		r->unit = c->unit;
		r->flags = c->flags & CANDIDATE_DATA ? CODE_DATA
						     : c->flags & ~(unsigned)CANDIDATE_MARK;
	}

	t->map->count++;
}

/* Bytes between two functions: of the function around both, else of none. */
static void put_between(struct cutting *t, uint64_t at, uint64_t next)
{
	if (t->outer && t->outer_end > at) {
		uint64_t end = t->outer_end < next ? t->outer_end : next;
		put(t, at, end, t->outer);
		at = end;
	}

	put(t, at, next, NULL);
}

static void cut_region(struct cutting *t, const struct code_region *r,
		       const struct candidate *items, size_t count)
{
	uint64_t at = r->start;

	t->outer = NULL;
	t->outer_end = 0;
	for (size_t i = 0; i < count; i++) {
		const struct candidate *c = &items[i];
		uint64_t next = i + 1 < count ? items[i + 1].start : r->end;
		if (i == 0)
			put(t, at, c->start, NULL);
		uint64_t end = c->size ? end_of(c, r->end) : next;
		at = end < next ? end : next;
		put(t, c->start, at, c);
		if (end > t->outer_end) {
			t->outer = c;
			t->outer_end = end;
		}

		put_between(t, at, next);
		at = next;
	}

	if (count == 0)
		put(t, at, r->end, NULL);
}

/* .eh_frame, the only source of functions in a stripped library: LSB Core, "Exception Frames";
 * encodings are DWARF's DW_EH_PE_*. */

enum {
	PE_ABSPTR = 0,
	PE_UDATA4 = 3,
	PE_UDATA8 = 4,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_OMIT = 0xff
};
enum {
	HEADER_TABLE = 0x3b /* pairs of 32-bit offsets from the header */,
	HEADER_COUNT = PE_UDATA4
};

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t take(struct cursor *c, size_t n)
{
	uint64_t v = 0;

	if (c->bad || (size_t)(c->end - c->p) < n) {
		c->bad = true;
		return 0;
	}

	memcpy(&v, c->p, n);
	c->p += n;
	return v;
}

static uint64_t take_leb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = take(c, 1);
		v |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}

	c->bad = true;
	return 0;
}

/* 0: of another size. */
static size_t size_of(unsigned encoding)
{
	encoding &= 0x0f;
	if (encoding == PE_UDATA4 || encoding == PE_SDATA4)
		return 4;
	return encoding == PE_ABSPTR || encoding == PE_UDATA8 || encoding == PE_SDATA8 ? 8 : 0;
}

static bool cursor_at(const struct elf_map *m, uint64_t address, struct cursor *ret)
{
	uint64_t offset, room;

	if (!elf_map_find(m, address, &offset, &room))
		return false;
	*ret = (struct cursor){m->data + offset, m->data + offset + room, false};
	return true;
}

/* Returns the size of addresses in the descriptions (FDEs) of this CIE; 0 if it is unknown. */
static size_t address_size(const struct elf_map *m, uint64_t cie)
{
	struct cursor c;

	if (!cursor_at(m, cie, &c))
		return 0;
	uint64_t length = take(&c, 4), id = take(&c, 4), version = take(&c, 1);
	if (c.bad || length == 0 || length > 4096)
		return 0;
	if (id != 0 || (version != 1 && version != 3))
		return 0;
	const char *augmentation = (const char *)c.p;
	size_t letters = strnlen(augmentation, (size_t)(c.end - c.p));
	if (letters > 16 || letters == (size_t)(c.end - c.p))
		return 0;
	c.p += letters + 1;
	take_leb(&c);
	take_leb(&c);
	if (version == 1)
		take(&c, 1);
	else
		take_leb(&c);
	if (augmentation[0] != 'z')
		return augmentation[0] == '\0' && !c.bad ? 8 : 0;
	take_leb(&c);
	for (size_t i = 1; i < letters && !c.bad; i++) {
		if (augmentation[i] == 'R')
			return size_of((unsigned)take(&c, 1));
		if (augmentation[i] == 'L')
			take(&c, 1);
		else if (augmentation[i] == 'P')
			take(&c, size_of((unsigned)take(&c, 1)));
		else if (augmentation[i] != 'S' && augmentation[i] != 'B')
			return 0;
	}

	return 0;
}

struct cie {
	uint64_t address;
	size_t size;
};

/* The size of the function that a description is about; 0 if it is malformed. */
static uint64_t frame_size(const struct elf_map *m, uint64_t address, struct cie *last)
{
	struct cursor c;

	if (!cursor_at(m, address, &c))
		return 0;
	uint64_t length = take(&c, 4), back = take(&c, 4);
	if (c.bad || length == 0 || length == UINT32_MAX)
		return 0;
	if (back == 0 || back > address + 4)
		return 0;
	uint64_t cie = address + 4 - back;
	if (cie != last->address || !last->size)
		*last = (struct cie){cie, address_size(m, cie)};
	if (!last->size)
		return 0;
	take(&c, last->size);
	uint64_t n = take(&c, last->size);
	return c.bad ? 0 : n;
}

/* Functions that have a frame description; none if the table is of an unusual kind. */
static void code_frames(const struct elf_map *m, struct candidates *list)
{
	for (size_t i = 0; i < m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i];
		struct cursor c;
		struct cie last = {0, 0};
		if (p->p_type != PT_GNU_EH_FRAME || !cursor_at(m, p->p_vaddr, &c))
			continue;
		uint64_t version = take(&c, 1), pointer = take(&c, 1), count_encoding = take(&c, 1),
			 table = take(&c, 1);
		if (version != 1 || count_encoding != HEADER_COUNT || table != HEADER_TABLE ||
		    pointer == PE_OMIT)
			return;
		take(&c, size_of((unsigned)pointer));
		uint64_t count = take(&c, 4);
		for (uint64_t k = 0; k < count && !c.bad; k++) {
			uint64_t start = p->p_vaddr + (uint64_t)(int64_t)(int32_t)take(&c, 4);
			uint64_t frame = p->p_vaddr + (uint64_t)(int64_t)(int32_t)take(&c, 4);
			uint64_t size = c.bad ? 0 : frame_size(m, frame, &last);
			if (size)
				code_add(list, (struct candidate){.start = start,
								  .size = size,
								  .flags = CODE_DECLARED});
		}

		return;
	}
}

/* A symbol table and its strings, both inside the file. */
struct table {
	uint64_t symbols, count;
	const char *strings;
	uint64_t strings_size;
	bool is_static;
};

static const char *string_at(const struct table *t, uint64_t index)
{
	if (index >= t->strings_size || !memchr(t->strings + index, '\0', t->strings_size - index))
		return NULL;
	return t->strings + index;
}

/* Whether compilers give this name to what runs before main. */
static bool is_initialiser(const char *name)
{
	static const char *const starts[] = {"_GLOBAL__sub_I_", "_GLOBAL__I_",
					     "__cxx_global_var_init",
					     "_Z41__static_initialization_and_destruction_0",
					     "_ZL41__static_initialization_and_destruction_0"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(starts) && !found; i++)
		found = strncmp(name, starts[i], strlen(starts[i])) == 0;
	return found;
}

static unsigned flags_of(const Elf64_Sym *s)
{
	unsigned bind = ELF64_ST_BIND(s->st_info), type = ELF64_ST_TYPE(s->st_info), flags = 0;

	if (type == STT_OBJECT)
		return CANDIDATE_DATA;
	if (bind == STB_GLOBAL)
		flags |= CODE_STRONG;
	else if (bind == STB_WEAK || bind == STB_GNU_UNIQUE)
		flags |= CODE_WEAK;
	if (type == STT_GNU_IFUNC)
		flags |= CODE_RESOLVER;
	return flags | (s->st_size ? CODE_DECLARED : 0);
}

/* Local symbols follow the symbol of their source file. Hidden ones, made local by the
 * linker, follow a file without a name or the last one, which is the start-up code's. */
static const char *unit_of(const char *file)
{
	return file && *file && strcmp(file, "crtstuff.c") != 0 ? file : NULL;
}

/* "$d" and "$x", also as "$d.7". Functions hold such data as well, so these marks only classify
 * bytes between functions. */
static bool is_mark(const struct elf_map *m, const char *name)
{
	if (m->header.e_machine != EM_AARCH64 || !name || name[0] != '$')
		return false;
	return (name[1] == 'd' || name[1] == 'x') && (!name[2] || name[2] == '.');
}

static void take_mark(const Elf64_Sym *s, const char *name, struct candidates *c)
{
	const unsigned data = name[1] == 'd' ? (unsigned)CANDIDATE_DATA : 0;

	code_add(c, (struct candidate){.start = s->st_value, .flags = CANDIDATE_MARK | data});
}

static void take_table(const struct elf_map *m, const struct table *t, struct candidates *c,
		       bool *full)
{
	const char *unit = NULL;

	for (uint64_t i = 1; i < t->count; i++) {
		Elf64_Sym s = elf_map_symbol(m, t->symbols, i);
		unsigned type = ELF64_ST_TYPE(s.st_info), bind = ELF64_ST_BIND(s.st_info);
		if (type == STT_FILE)
			unit = unit_of(string_at(t, s.st_name));
		/* BOLT splits functions and gives the cold part each name of the hot one, so that
		 * "$x.cold.0" is a function in libtorch_cpu.so of the official 2.15.0. The ABI has
		 * such names for marks alone. */
		const bool mark = is_mark(m, string_at(t, s.st_name));
		if (mark && bind == STB_LOCAL && s.st_shndx != SHN_UNDEF)
			take_mark(&s, string_at(t, s.st_name), c);
		if (mark)
			continue;
		/* Assembler leaves the type out. */
		bool function = type == STT_FUNC || type == STT_GNU_IFUNC ||
				(type == STT_NOTYPE && bind != STB_LOCAL);
		if (!function && type != STT_OBJECT)
			continue;
		if (s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS || s.st_shndx == SHN_COMMON)
			continue;
		const char *name = string_at(t, s.st_name);
		if (!name || !*name)
			continue;
		struct candidate one = {.start = s.st_value,
					.size = s.st_size,
					.name = name,
					.flags = flags_of(&s)};
		one.unit = bind == STB_LOCAL ? unit : NULL;
		if (type != STT_OBJECT && is_initialiser(name))
			one.flags |= CODE_INIT;
		*full = *full || (t->is_static && bind == STB_LOCAL && type == STT_FUNC);
		if (type != STT_OBJECT || s.st_size)
			code_add(c, one);
	}
}

/* Sections are for tools only: a table that cannot be read counts as none. */
static void static_table(const struct elf_map *m, struct table *t)
{
	for (Elf_Scn *s = elf_nextscn(m->elf, NULL); s; s = elf_nextscn(m->elf, s)) {
		GElf_Shdr h, strings;
		Elf_Scn *link;
		if (!gelf_getshdr(s, &h) || h.sh_type != SHT_SYMTAB)
			continue;
		link = elf_getscn(m->elf, h.sh_link);
		if (!link || !gelf_getshdr(link, &strings) || strings.sh_type != SHT_STRTAB)
			continue;
		if (h.sh_offset > m->size || h.sh_size > m->size - h.sh_offset ||
		    strings.sh_offset > m->size || strings.sh_size > m->size - strings.sh_offset)
			continue;
		*t = (struct table){h.sh_offset, h.sh_size / sizeof(Elf64_Sym),
				    (const char *)m->data + strings.sh_offset, strings.sh_size,
				    true};
		return;
	}
}

/* Functions of both symbol tables; *ret_full as code_map.full_names. */
static int code_symbols(struct elf_map *m, struct candidates *c, bool *ret_full, struct err *e)
{
	struct table fixed = {0}, dynamic = {.strings = (const char *)m->data + m->strings,
					     .strings_size = m->strings_size};

	*ret_full = false;
	if (m->dyn && elf_map_symbols(m, &dynamic.symbols, &dynamic.count, e) < 0)
		return -1;
	static_table(m, &fixed);
	take_table(m, &fixed, c, ret_full);
	take_table(m, &dynamic, c, ret_full);
	return 0;
}

/* What the loader runs: DT_INIT, and the arrays, whose
 * addresses are in relocations or (DT_RELR) in the arrays. */
struct slots { /* one array of addresses */
	uint64_t start, size;
};

struct slot_list {
	struct slots items[2]; /* DT_PREINIT_ARRAY, DT_INIT_ARRAY */
	size_t count;
};

static void add(struct candidates *c, uint64_t address)
{
	if (address)
		code_add(c, (struct candidate){.start = address, .flags = CODE_INIT});
}

/* The address that a relocation writes; 0 if another library decides. */
static uint64_t value_of(const struct elf_map *m, const Elf64_Rela *r, uint64_t symbols,
			 uint64_t count)
{
	uint32_t type = ELF64_R_TYPE(r->r_info);
	uint64_t symbol = ELF64_R_SYM(r->r_info);
	bool arm = m->header.e_machine == EM_AARCH64;

	if (type == (arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE))
		return (uint64_t)r->r_addend;
	if (type != (arm ? R_AARCH64_ABS64 : R_X86_64_64) || symbol == 0 || symbol >= count)
		return 0;
	Elf64_Sym s = elf_map_symbol(m, symbols, symbol);
	return s.st_shndx == SHN_UNDEF ? 0 : s.st_value + (uint64_t)r->r_addend;
}

static int take_relocations(struct elf_map *m, const struct slot_list *all, struct candidates *c,
			    struct err *e)
{
	struct elf_range table;
	uint64_t symbols, count;

	if (elf_map_table(m, &ELF_RELA, &table, e) < 0 ||
	    elf_map_symbols(m, &symbols, &count, e) < 0)
		return -1;
	for (uint64_t i = 0; i + sizeof(Elf64_Rela) <= table.size; i += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		memcpy(&r, m->data + table.offset + i, sizeof(r));
		for (size_t k = 0; k < all->count; k++) {
			if (r.r_offset - all->items[k].start < all->items[k].size)
				add(c, value_of(m, &r, symbols, count));
		}
	}

	return 0;
}

/* Addresses to which the loader only adds its base. */
static void take_contents(const struct elf_map *m, const struct slots *s, struct candidates *c)
{
	uint64_t offset, room;

	if (!elf_map_find(m, s->start, &offset, &room))
		return;
	for (uint64_t i = 0; i + 8 <= s->size && i + 8 <= room; i += 8) {
		uint64_t v;
		memcpy(&v, m->data + offset + i, sizeof(v));
		if (v != UINT64_MAX)
			add(c, v);
	}
}

/* What the loader runs. */
static int code_initialisers(struct elf_map *m, struct candidates *c, struct err *e)
{
	static const int64_t tags[][2] = {{DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ},
					  {DT_INIT_ARRAY, DT_INIT_ARRAYSZ}};
	struct slot_list all = {0};
	uint64_t init;

	if (!m->dyn)
		return 0;
	if (elf_map_dyn(m, DT_INIT, &init))
		add(c, init);
	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		struct slots *s = &all.items[all.count];
		if (!elf_map_dyn(m, tags[i][0], &s->start) || !elf_map_dyn(m, tags[i][1], &s->size))
			continue;
		take_contents(m, s, c);
		all.count++;
	}

	return take_relocations(m, &all, c, e);
}

int code_map_read(struct elf_map *m, struct arena *a, struct code_map *ret, struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	struct candidates c = {.a = &scratch};
	struct code_map map = {0};
	struct code_region *regions;

	if (code_symbols(m, &c, &map.full_names, e) < 0 || code_initialisers(m, &c, e) < 0)
		return -1;
	code_frames(m, &c);
	array_sort(c.items, c.count, sizeof(*c.items), by_start);
	size_t n = drop_marks(c.items, merge(&c)),
	       regions_count = find_regions(m, &c, &scratch, &regions);
	/* A candidate makes at most three ranges: itself,
	 * the rest of the one around it, bytes of none. */
	map.ranges = arena_array(a, 3 * n + 2 * regions_count + 1, sizeof(*map.ranges));
	struct cutting t = {.map = &map};
	uint64_t done = 0;
	for (size_t i = 0, from = 0, to; i < regions_count; i++, from = to) {
		struct code_region r = regions[i];
		r.start = r.start > done ? r.start : done;
		while (from < n && c.items[from].start < r.start)
			from++;
		for (to = from; to < n && c.items[to].start < r.end;)
			to++;
		if (r.start >= r.end)
			continue;
		cut_region(&t, &r, to > from ? c.items + from : NULL, to - from);
		done = r.end;
	}

	*ret = map;
	return 0;
}

struct code_range *code_map_at(const struct code_map *c, uint64_t address)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (c->ranges[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}

	return low < c->count && c->ranges[low].start <= address ? &c->ranges[low] : NULL;
}
