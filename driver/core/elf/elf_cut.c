#include "core/elf/elf_map.h"

#ifndef PT_GNU_PROPERTY /* glibc before 2.32 */
#define PT_GNU_PROPERTY 0x6474e553
#endif

struct cutting {
	struct elf_cut *c;
	const struct elf_map *m;
	struct arena *a;
	Elf64_Phdr *segments;
	size_t segments_count;
	Elf64_Shdr *sections;
	const Elf64_Shdr *before; /* the same sections as the file has them */
	size_t sections_count;
	uint64_t page, align;
	uint64_t *starts, *ends; /* of each tail: what may leave the file */
	const Elf64_Phdr *grown; /* a segment behind the end of the file; NULL: none */
	Elf64_Dyn *dyn;          /* as they will be */
	size_t dyn_room;
	uint64_t dyn_at;
	/* the last section that moved away from behind the headers; 0: none did */
	size_t moved_last;
	uint64_t moved; /* bytes after the headers up to here have moved away */
};

static uint64_t up(uint64_t v, uint64_t align)
{
	return (v + align - 1) / align * align;
}

void elf_cut_add(struct elf_cut *c, uint64_t at, const void *from, uint64_t len)
{
	if (!len)
		return;
	c->patches = arena_room(c->a, c->patches, c->count, &c->cap, 64, sizeof(*c->patches));
	c->patches[c->count++] = (struct elf_patch){at, len, from};
}

/* Where a byte of the old file is in the new one. */
static uint64_t elf_cut_offset(const struct elf_cut *c, uint64_t offset)
{
	uint64_t gone = 0;

	for (size_t i = 0; i < c->holes_count && c->holes[i].to <= offset; i++)
		gone += c->holes[i].to - c->holes[i].from;
	return offset - gone;
}

uint64_t elf_cut_blank(const struct elf_cut *c)
{
	const uint64_t page = 4096;
	uint64_t sum = 0;

	for (size_t i = 0; i < c->count; i++) {
		const struct elf_patch *p = &c->patches[i];
		uint64_t from = up(elf_cut_offset(c, p->at), page),
			 to = elf_cut_offset(c, p->at + p->len) / page * page;
		sum += !p->from && to > from ? to - from : 0;
	}

	return sum;
}

struct elf_mark *elf_cut_marks(const struct elf_cut *c, struct arena *a, size_t *ret_count)
{
	const uint64_t long_part = UINT64_C(128) << 10;
	struct elf_mark *marks = arena_array(a, (c->count + 1) * (size_t)4, sizeof(*marks));
	uint64_t from = 0;
	size_t n = 0;

	for (size_t i = 0; i <= c->count; i++) {
		const struct elf_patch end = {.at = c->map->size},
				       *p = i < c->count ? &c->patches[i] : &end;
		/* A hole follows a patch directly. */
		for (size_t h = 0; h < c->holes_count; h++)
			from = c->holes[h].from == from ? c->holes[h].to : from;
		if (p->at >= from + long_part) {
			marks[n++] = (struct elf_mark){elf_cut_offset(c, from), from};
			marks[n++] = (struct elf_mark){elf_cut_offset(c, p->at), UINT64_MAX};
		}

		if (p->len >= long_part &&
		    (uintptr_t)p->from - (uintptr_t)c->map->data < c->map->size) {
			marks[n++] = (struct elf_mark){elf_cut_offset(c, p->at),
						       (uint64_t)(p->from - c->map->data)};
			marks[n++] =
				(struct elf_mark){elf_cut_offset(c, p->at + p->len), UINT64_MAX};
		}

		from = p->at + p->len;
	}

	*ret_count = n;
	return marks;
}

int elf_sections(const struct elf_map *m, struct arena *a, Elf64_Shdr **ret, size_t *ret_count,
		 struct err *e)
{
	const GElf_Ehdr *h = &m->header;

	*ret = NULL;
	*ret_count = 0;
	if (h->e_shoff == 0 || h->e_shnum == 0)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff > m->size ||
	    h->e_shnum > (m->size - h->e_shoff) / sizeof(Elf64_Shdr))
		return elf_map_bad(m, h->e_shoff, e, "%u section headers leave the file",
				   h->e_shnum);
	Elf64_Shdr *s = arena_array(a, h->e_shnum, sizeof(*s));
	memcpy(s, m->data + h->e_shoff, h->e_shnum * sizeof(*s));
	for (size_t i = 0; i < h->e_shnum; i++)
		if (s[i].sh_type != SHT_NULL && s[i].sh_type != SHT_NOBITS &&
		    (s[i].sh_offset > m->size || s[i].sh_size > m->size - s[i].sh_offset))
			return elf_map_bad(m, h->e_shoff + i * sizeof(*s), e,
					   "section %zu leaves the file", i);
	*ret = s;
	*ret_count = h->e_shnum;
	return 0;
}

const char *elf_section_name(const struct elf_map *m, const Elf64_Shdr *sections, size_t count,
			     size_t i)
{
	size_t names = m->header.e_shstrndx;

	if (names >= count || sections[names].sh_type != SHT_STRTAB ||
	    sections[i].sh_name >= sections[names].sh_size)
		return "";
	const char *s = (const char *)m->data + sections[names].sh_offset + sections[i].sh_name;
	return memchr(s, '\0', sections[names].sh_size - sections[i].sh_name) ? s : "";
}

static uint64_t headers_end(const struct cutting *x, size_t more)
{
	return x->m->header.e_phoff + (x->segments_count + more) * sizeof(Elf64_Phdr);
}

static void lower(uint64_t *limit, uint64_t from, uint64_t to, uint64_t end)
{
	if (from < *limit && to > end)
		*limit = from < end ? end : from;
}

/* The first byte behind the program headers that something uses: a section,
 * a segment that is not PT_LOAD, what a dynamic entry points to. Linkers
 * leave none free, tools that moved a table away do. */
static uint64_t room_end(const struct cutting *x)
{
	static const int64_t tables[] = {DT_HASH,       DT_GNU_HASH, DT_STRTAB,  DT_SYMTAB,
					 DT_RELA,       DT_REL,      DT_JMPREL,  DT_INIT_ARRAY,
					 DT_FINI_ARRAY, DT_VERSYM,   DT_VERNEED, DT_VERDEF,
					 DT_RELR,       DT_PLTGOT,   DT_INIT,    DT_FINI};
	uint64_t end = headers_end(x, 0), limit = 0, value, offset, room;

	for (size_t i = 0; i < x->segments_count; i++)
		if (x->segments[i].p_type == PT_LOAD && x->segments[i].p_offset < end &&
		    x->segments[i].p_offset + x->segments[i].p_filesz >= end)
			limit = x->segments[i].p_offset + x->segments[i].p_filesz;
	for (size_t i = 0; i < x->segments_count; i++)
		if (x->segments[i].p_type != PT_LOAD && x->segments[i].p_type != PT_PHDR &&
		    x->segments[i].p_filesz)
			lower(&limit, x->segments[i].p_offset,
			      x->segments[i].p_offset + x->segments[i].p_filesz, end);
	for (size_t i = 0; i < x->sections_count; i++)
		if (x->sections[i].sh_type != SHT_NULL && x->sections[i].sh_type != SHT_NOBITS &&
		    x->sections[i].sh_size)
			lower(&limit, x->sections[i].sh_offset,
			      x->sections[i].sh_offset + x->sections[i].sh_size, end);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		if (elf_map_dyn(x->m, tables[i], &value) &&
		    elf_map_find(x->m, value, &offset, &room) && offset >= x->moved)
			lower(&limit, offset, offset + 1, end);
	if (x->m->header.e_shoff >= end)
		lower(&limit, x->m->header.e_shoff, x->m->header.e_shoff + 1, end);
	return limit;
}

static const Elf64_Phdr *load_of(const struct cutting *x, uint64_t offset)
{
	for (size_t i = 0; i < x->segments_count; i++) {
		const Elf64_Phdr *p = &x->segments[i];
		if (p->p_type == PT_LOAD && offset >= p->p_offset &&
		    offset - p->p_offset < p->p_filesz)
			return p;
	}

	return x->grown && offset >= x->grown->p_offset ? x->grown : NULL;
}

/* The dynamic entries of these tags whose values are below `to`, and not below `from`. */
struct pointing {
	const int64_t *tags;
	size_t count;
	uint64_t from, to;
	uint64_t more; /* is added to them */
};

static void point(const struct cutting *x, const struct pointing *p)
{
	for (size_t i = 0; i < x->m->dyn_count; i++) {
		const uint64_t value = x->m->dyn[i].d_un.d_val;
		if (value < p->from || value >= p->to)
			continue;
		for (size_t k = 0; k < p->count; k++)
			if (x->m->dyn[i].d_tag == p->tags[k])
				x->dyn[i].d_un.d_val = value + p->more;
	}
}

static bool moves(uint32_t segment)
{
	return segment == PT_NOTE || segment == PT_GNU_PROPERTY || segment == PT_INTERP;
}

/* Whether program headers and dynamic entries alone name its place. */
static bool section_moves(const struct cutting *x, const Elf64_Shdr *s)
{
	if (s->sh_type == SHT_NOTE || s->sh_type == SHT_HASH || s->sh_type == SHT_GNU_HASH)
		return true;
	for (size_t i = 0; i < x->segments_count && s->sh_type == SHT_PROGBITS; i++)
		if (x->segments[i].p_type == PT_INTERP && x->segments[i].p_offset == s->sh_offset)
			return true;
	const bool versions = s->sh_type == SHT_GNU_verneed || s->sh_type == SHT_GNU_verdef;
	return versions || s->sh_type == SHT_DYNSYM || s->sh_type == SHT_GNU_versym;
}

static bool section_within(const Elf64_Shdr *s, uint64_t from, uint64_t to)
{
	const bool has_bytes = s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS && s->sh_size;
	return has_bytes && s->sh_offset < to && s->sh_offset + s->sh_size > from;
}

static bool segment_within(const Elf64_Phdr *p, uint64_t from, uint64_t to)
{
	return moves(p->p_type) && p->p_filesz && p->p_offset < to &&
	       p->p_offset + p->p_filesz > from;
}

/* The end of what must move as one with the byte at `from`; 0 where something of it cannot. */
static uint64_t block_end(const struct cutting *x, uint64_t from)
{
	uint64_t to = from + 1, last;
	const Elf64_Shdr *first = NULL;

	do {
		last = to;
		for (size_t i = 0; i < x->sections_count; i++) {
			const Elf64_Shdr *s = &x->sections[i];
			if (!section_within(s, from, to))
				continue;
			first = first ? first : s;
			if (s->sh_offset < from || !section_moves(x, s) ||
			    s->sh_addr - s->sh_offset != first->sh_addr - first->sh_offset)
				return 0;
			to = s->sh_offset + s->sh_size > to ? s->sh_offset + s->sh_size : to;
		}

		for (size_t i = 0; i < x->segments_count; i++) {
			const Elf64_Phdr *p = &x->segments[i];
			if (!segment_within(p, from, to))
				continue;
			if (p->p_offset < from)
				return 0;
			to = p->p_offset + p->p_filesz > to ? p->p_offset + p->p_filesz : to;
		}
	} while (to != last);
	return first ? to : 0;
}

/* Notes and tables right behind the headers go to a place
 * in a tail or the new segment, which are loaded as well. */
static bool evict(struct cutting *x, uint64_t from, uint64_t *used, uint64_t end)
{
	static const int64_t tags[] = {DT_HASH,   DT_GNU_HASH, DT_SYMTAB,
				       DT_VERSYM, DT_VERNEED,  DT_VERDEF};
	const uint64_t to = block_end(x, from), at = up(*used, 16) + from % 16;
	const Elf64_Phdr *load = load_of(x, at);

	if (!to || !load || at > end || to - from > end - at)
		return false;
	uint64_t address = 0, place = load->p_vaddr + (at - load->p_offset);
	for (size_t i = 0; i < x->sections_count; i++) {
		Elf64_Shdr *s = &x->sections[i];
		if (!section_within(s, from, to))
			continue;
		address = s->sh_addr - (s->sh_offset - from);
		s->sh_offset += at - from;
		s->sh_addr += place - address;
		x->moved_last = i > x->moved_last ? i : x->moved_last;
	}

	for (size_t i = 0; i < x->segments_count; i++) {
		Elf64_Phdr *p = &x->segments[i];
		if (!segment_within(p, from, to))
			continue;
		p->p_offset += at - from;
		p->p_vaddr = p->p_paddr = p->p_vaddr + (place - address);
	}

	point(x, &(struct pointing){.tags = tags,
				    .count = ARRAY_LEN(tags),
				    .from = address,
				    .to = address + (to - from),
				    .more = place - address});
	elf_cut_add(x->c, *used, NULL, at - *used);
	elf_cut_add(x->c, at, x->m->data + from, to - from);
	*used = at + (to - from);
	x->moved = to;
	return true;
}

/* The pages of tail `i` that can go, from `used` on;
 * false where they are less than a step of the alignment. */
static bool find_hole(struct cutting *x, size_t i, uint64_t used, uint64_t end)
{
	uint64_t from = up(used, x->page);

	x->starts[i] = x->ends[i] = end;
	if (from >= end || end - from < x->align)
		return false;
	x->starts[i] = from;
	x->ends[i] = from + (end - from) / x->align * x->align;
	return true;
}

static size_t largest(const struct cutting *x, size_t count, const bool *taken)
{
	size_t best = count;

	for (size_t i = 0; i < count; i++)
		if (!taken[i] && x->ends[i] > x->starts[i] &&
		    (best == count || x->ends[i] - x->starts[i] > x->ends[best] - x->starts[best]))
			best = i;
	return best;
}

/* Makes room for a program header for each hole; those without stay zeros. */
static void choose_holes(struct cutting *x, const struct elf_tail *tails, size_t count)
{
	bool *taken = arena_array(x->a, count, sizeof(*taken));
	uint64_t *used = arena_array(x->a, count, sizeof(*used)),
		 *ends = arena_array(x->a, count, sizeof(*ends));
	size_t wanted = 0, holes = 0;

	if (!x->sections || !taken || !used || !ends)
		return; /* a tail is a section's */
	for (size_t i = 0; i < count; i++) {
		const Elf64_Shdr *s = &x->sections[tails[i].section];
		used[i] = tails[i].used;
		ends[i] = s->sh_offset + s->sh_size;
		wanted += find_hole(x, i, used[i], ends[i]);
	}

	for (size_t i;
	     (i = largest(x, count, taken)) < count && room_end(x) < headers_end(x, wanted);) {
		uint64_t from = room_end(x);
		if (from < headers_end(x, 0) || !evict(x, from, &used[i], ends[i]))
			break;
		find_hole(x, i, used[i], ends[i]);
	}

	for (size_t i;
	     (i = largest(x, count, taken)) < count && room_end(x) >= headers_end(x, holes + 1);
	     holes++)
		taken[i] = true;
	for (size_t i = 0; i < count; i++) {
		if (!taken[i] && x->ends[i] > x->starts[i]) {
			x->c->kept = "the program headers have no room for another segment";
			x->starts[i] = x->ends[i] = ends[i];
		}

		elf_cut_add(x->c, used[i], NULL, x->starts[i] - used[i]);
		elf_cut_add(x->c, x->ends[i], NULL, ends[i] - x->ends[i]);
		x->sections[tails[i].section].sh_size =
			tails[i].used - x->sections[tails[i].section].sh_offset;
		if (!taken[i])
			continue;
		x->c->holes[x->c->holes_count++] = (struct elf_hole){x->starts[i], x->ends[i]};
		x->c->size -= x->ends[i] - x->starts[i];
	}
}

/* The segment, as so many as its holes leave. */
static size_t split(const struct cutting *x, const Elf64_Phdr *p, Elf64_Phdr *to)
{
	const struct elf_cut *c = x->c;
	size_t n = 0;

	to[n] = *p;
	for (size_t i = 0; i < c->holes_count; i++) {
		const struct elf_hole *h = &c->holes[i];
		if (p->p_type != PT_LOAD || h->from < p->p_offset ||
		    h->to > p->p_offset + p->p_filesz)
			continue;
		uint64_t address = p->p_vaddr + (h->to - p->p_offset),
			 gone = h->to - to[n].p_offset;
		to[n + 1] = to[n];
		to[n].p_filesz = h->from - to[n].p_offset;
		to[n].p_memsz = gone;
		n++;
		to[n].p_offset = h->to;
		to[n].p_vaddr = to[n].p_paddr = address;
		to[n].p_filesz -= gone;
		to[n].p_memsz -= gone;
	}

	return n + 1;
}

/* Whether a symbol names a section before `end`. Tables of symbols are read where
 * the file has them: one that moves is only written to its new place later. */
static bool symbols_name(const struct cutting *x, size_t end)
{
	for (size_t i = 1; i < x->sections_count; i++) {
		const Elf64_Shdr *s = &x->before[i];
		Elf64_Sym symbol;
		if (s->sh_type != SHT_SYMTAB && s->sh_type != SHT_DYNSYM)
			continue;
		for (uint64_t at = 0; s->sh_size - at >= sizeof(symbol); at += sizeof(symbol)) {
			memcpy(&symbol, x->m->data + s->sh_offset + at, sizeof(symbol));
			if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < end)
				return true;
		}
	}

	return false;
}

/* patchelf, which others may run later, uses the first sections up to a later one as room for its
 * new program headers: so sections that moved away come after those that are there now. Offsets are
 * still the old ones. */
static void order_sections(struct cutting *x, Elf64_Ehdr *h)
{
	enum { MORE = 4 };
	const uint64_t near = headers_end(x, x->c->holes_count + MORE);
	size_t end = x->moved_last + 1, n = 1;

	while (end < x->sections_count && x->sections[end].sh_offset <= near)
		end++;
	if (!x->moved_last || symbols_name(x, end))
		return;
	Elf64_Shdr *old = arena_array(x->a, x->sections_count, sizeof(*old));
	size_t *map = arena_array(x->a, x->sections_count, sizeof(*map));
	memcpy(old, x->sections, x->sections_count * sizeof(*old));
	for (int far = 0; far < 2; far++)
		for (size_t i = 1; i < end; i++)
			if ((old[i].sh_offset > near) == far)
				map[i] = n++;
	for (size_t i = end; i < x->sections_count; i++)
		map[i] = i;
	for (size_t i = 0; i < x->sections_count; i++) {
		Elf64_Shdr *s = &x->sections[map[i]];
		*s = old[i];
		s->sh_link =
			s->sh_link < x->sections_count ? (Elf64_Word)map[s->sh_link] : s->sh_link;
		if ((s->sh_flags & SHF_INFO_LINK) && s->sh_info < x->sections_count)
			s->sh_info = (Elf64_Word)map[s->sh_info];
	}

	if (h->e_shstrndx < x->sections_count)
		h->e_shstrndx = (Elf64_Half)map[h->e_shstrndx];
}

static void put_headers(struct cutting *x)
{
	struct elf_cut *c = x->c;
	Elf64_Phdr *segments =
		arena_array(x->a, x->segments_count + c->holes_count + 1, sizeof(*segments));
	Elf64_Ehdr *h = arena_alloc(x->a, sizeof(*h));
	size_t n = 0;

	memcpy(h, x->m->data, sizeof(*h));
	for (size_t i = 0; i < x->segments_count; i++)
		n += split(x, &x->segments[i], segments + n);
	if (x->grown)
		segments[n++] = *x->grown;
	for (size_t i = 0; i < n; i++) {
		segments[i].p_offset = elf_cut_offset(c, segments[i].p_offset);
		if (segments[i].p_type == PT_PHDR)
			segments[i].p_filesz = segments[i].p_memsz = n * sizeof(*segments);
	}

	if (x->m->dyn_count && (x->dyn_at != x->m->dyn_offset ||
				memcmp(x->dyn, x->m->dyn, x->m->dyn_count * sizeof(*x->dyn)) != 0))
		elf_cut_add(c, x->dyn_at, x->dyn, x->dyn_room * sizeof(*x->dyn));
	order_sections(x, h);
	for (size_t i = 0; i < x->sections_count; i++)
		x->sections[i].sh_offset = elf_cut_offset(c, x->sections[i].sh_offset);
	elf_cut_add(c, h->e_phoff, segments, n * sizeof(*segments));
	elf_cut_add(c, h->e_shoff, x->sections, x->sections_count * sizeof(*x->sections));
	h->e_phnum = (Elf64_Half)n;
	/* BOLT writes them into a segment of its own, far behind */
	h->e_phoff = elf_cut_offset(c, h->e_phoff);
	h->e_shoff = elf_cut_offset(c, h->e_shoff);
	elf_cut_add(c, 0, h, sizeof(*h));
}

static int check_patches(const struct elf_cut *c, struct err *e)
{
	uint64_t size = c->size > c->map->size ? c->size : c->map->size;

	for (size_t i = 0; i < c->count; i++) {
		const struct elf_patch *p = &c->patches[i];
		if (p->at > size || p->len > size - p->at ||
		    (i && p->at < c->patches[i - 1].at + c->patches[i - 1].len))
			return elf_map_bad(c->map, p->at, e,
					   "two parts of the file lie over each other");
	}

	return 0;
}

static int begin(struct cutting *x, struct elf_cut *c, struct err *e)
{
	*x = (struct cutting){.c = c, .m = c->map, .a = c->a, .align = 1};
	x->page = c->map->header.e_machine == EM_X86_64 ? 4096 : 65536;
	Elf64_Shdr *before;
	if (elf_map_loadable(c->map, e) < 0 ||
	    elf_sections(c->map, c->a, &before, &x->sections_count, e) < 0 ||
	    elf_sections(c->map, c->a, &x->sections, &x->sections_count, e) < 0)
		return -1;
	x->before = before;
	x->segments_count = c->map->segments_count;
	x->segments = arena_array(c->a, x->segments_count, sizeof(*x->segments));
	memcpy(x->segments, c->map->data + c->map->header.e_phoff,
	       x->segments_count * sizeof(*x->segments));
	for (size_t i = 0; i < x->segments_count; i++)
		if (x->segments[i].p_type == PT_LOAD && x->segments[i].p_align > x->align)
			x->align = x->segments[i].p_align;
	x->align = up(x->align, x->page);
	x->dyn = arena_array(c->a, c->map->dyn_count + 1, sizeof(*x->dyn));
	if (c->map->dyn_count)
		memcpy(x->dyn, c->map->dyn, c->map->dyn_count * sizeof(*x->dyn));
	x->dyn_room = c->map->dyn_count;
	x->dyn_at = c->map->dyn_offset;
	return 0;
}

int elf_cut_tails(struct elf_cut *c, const struct elf_tail *tails, size_t count, struct err *e)
{
	struct cutting x;

	c->size = c->map->size;
	c->holes = arena_array(c->a, count + 1, sizeof(*c->holes));
	if (count) {
		if (begin(&x, c, e) < 0)
			return -1;
		x.starts = arena_array(c->a, count + 1, sizeof(*x.starts));
		x.ends = arena_array(c->a, count + 1, sizeof(*x.ends));
		choose_holes(&x, tails, count);
		array_sort(c->holes, c->holes_count, sizeof(*c->holes), number_cmp);
		put_headers(&x);
	}

	array_sort(c->patches, c->count, sizeof(*c->patches), number_cmp);
	return check_patches(c, e);
}

/* The dynamic entries and room for more go behind the
 * string table; loaders before glibc 2.35 write to them. */
static void move_dynamic(struct cutting *x, Elf64_Phdr *load, size_t entries)
{
	const struct elf_map *m = x->m;
	const uint64_t at = up(x->c->size, 16), address = load->p_vaddr + (at - load->p_offset);
	Elf64_Dyn *dyn = arena_array(x->a, m->dyn_count + entries + 1, sizeof(*dyn));

	memcpy(dyn, x->dyn, m->dyn_count * sizeof(*dyn));
	x->dyn = dyn;
	x->dyn_room = m->dyn_count + entries + 1;
	x->dyn_at = at;
	x->c->size = at + x->dyn_room * sizeof(*dyn);
	load->p_flags |= PF_W;
	for (size_t i = 0; i < x->segments_count; i++) {
		Elf64_Phdr *p = &x->segments[i];
		if (p->p_type != PT_DYNAMIC)
			continue;
		p->p_offset = at;
		p->p_vaddr = p->p_paddr = address;
		p->p_filesz = p->p_memsz = x->dyn_room * sizeof(*dyn);
	}

	for (size_t i = 0; i < x->sections_count; i++) {
		Elf64_Shdr *s = &x->sections[i];
		if (s->sh_type != SHT_DYNAMIC)
			continue;
		s->sh_offset = at;
		s->sh_addr = address;
		s->sh_size = x->dyn_room * sizeof(*dyn);
	}
}

int elf_cut_grow(struct elf_cut *c, uint64_t more, size_t entries, struct err *e)
{
	static const int64_t table[] = {DT_STRTAB}, size[] = {DT_STRSZ};
	const struct elf_map *m = c->map;
	struct cutting x;
	uint64_t old = 0, end = 0;

	if (begin(&x, c, e) < 0)
		return -1;
	for (size_t i = 0; i < x.segments_count; i++)
		if (x.segments[i].p_type == PT_LOAD &&
		    x.segments[i].p_vaddr + x.segments[i].p_memsz > end)
			end = x.segments[i].p_vaddr + x.segments[i].p_memsz;
	Elf64_Phdr load = {
		.p_type = PT_LOAD, .p_flags = PF_R, .p_align = x.page, .p_offset = up(m->size, 16)};
	load.p_vaddr = load.p_paddr = up(end, x.page) + load.p_offset % x.page;
	x.grown = &load;
	for (size_t i = 0; i < x.sections_count; i++) {
		Elf64_Shdr *s = &x.sections[i];
		if (s->sh_type != SHT_STRTAB || s->sh_offset != m->strings)
			continue;
		s->sh_offset = load.p_offset;
		s->sh_addr = load.p_vaddr;
		s->sh_size = m->strings_size + more;
	}

	if (elf_map_dyn(m, DT_STRTAB, &old))
		point(&x, &(struct pointing){table, 1, old, old + 1, load.p_vaddr - old});
	point(&x, &(struct pointing){size, 1, m->strings_size, m->strings_size + 1, more});
	elf_cut_add(c, m->strings, NULL, m->strings_size);
	elf_cut_add(c, load.p_offset, m->data + m->strings, m->strings_size);
	c->size = load.p_offset + m->strings_size + more;
	if (m->dyn_count + entries >= m->dyn_room)
		move_dynamic(&x, &load, entries);
	while (room_end(&x) < headers_end(&x, 1))
		if (!evict(&x, room_end(&x), &c->size, UINT64_MAX))
			return elf_map_bad(m, headers_end(&x, 0), e,
					   "no room for another program header");
	load.p_filesz = load.p_memsz = c->size - load.p_offset;
	put_headers(&x);
	array_sort(c->patches, c->count, sizeof(*c->patches), number_cmp);
	return check_patches(c, e);
}

struct writing {
	const struct elf_cut *c;
	int fd;
	const char *name; /* of the file that is written */
};

/* Bytes of the old file between two places, without the holes. */
static int write_old(const struct writing *w, uint64_t from, uint64_t to, struct err *e)
{
	const struct elf_cut *c = w->c;

	to = to < c->map->size ? to : c->map->size;
	for (size_t i = 0; from < to; i++) {
		while (i < c->holes_count && c->holes[i].to <= from)
			i++;
		uint64_t end = i < c->holes_count && c->holes[i].from < to ? c->holes[i].from : to;
		if (end > from && fs_write_at(w->fd, c->map->data + from, end - from,
					      elf_cut_offset(c, from), w->name, e) < 0)
			return -1;
		from = i < c->holes_count ? c->holes[i].to : to;
	}

	return 0;
}

int elf_cut_write(const struct elf_cut *c, int fd, const char *name, struct err *e)
{
	const struct writing w = {c, fd, name};
	uint64_t at = 0;

	if (ftruncate(fd, (off_t)c->size) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", name);
	for (size_t i = 0; i < c->count; i++) {
		const struct elf_patch *p = &c->patches[i];
		if (write_old(&w, at, p->at, e) < 0 ||
		    (p->from &&
		     fs_write_at(fd, p->from, p->len, elf_cut_offset(c, p->at), name, e) < 0))
			return -1;
		at = p->at + p->len;
	}

	return write_old(&w, at, c->map->size, e);
}
