#include "core/elf/elf_strip.h"

/* A part of the file that stays: a section, a segment, the program headers. */
struct extent {
	uint64_t from, to, align;
	bool fixed; /* loaded: its offset stays congruent to its address */
};

enum { SECTIONS_MAX = 4096 };

struct stripping {
	struct elf_strip *s;
	const struct elf_map *m;
	struct arena *a;
	Elf64_Shdr *sections;
	size_t count;
	bool *gone;
	size_t *map;           /* old number of a section -> new one */
	const uint8_t **bytes; /* of sections whose contents change; else NULL */
	struct extent *extents;
	size_t extents_count;
	uint64_t first; /* offset of the first section that goes: what is below does not move */
};

static uint64_t up(uint64_t v, uint64_t align)
{
	return align > 1 ? (v + align - 1) / align * align : v;
}

static bool has_bytes(const Elf64_Shdr *s)
{
	return s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS && s->sh_size;
}

static bool is_relocations(const Elf64_Shdr *s)
{
	return s->sh_type == SHT_REL || s->sh_type == SHT_RELA;
}

static bool overlaps(const Elf64_Shdr *s, uint64_t from, uint64_t to)
{
	return has_bytes(s) && s->sh_offset < to && s->sh_offset + s->sh_size > from;
}

static bool debug_name(const char *name)
{
	return strncmp(name, ".debug_", strlen(".debug_")) == 0 ||
	       strncmp(name, ".zdebug_", strlen(".zdebug_")) == 0 ||
	       strcmp(name, ".gdb_index") == 0;
}

/* Whether a segment loads a byte of it, or another section shares one. */
static bool is_used(const struct stripping *x, size_t i)
{
	const Elf64_Shdr *s = &x->sections[i];

	if (s->sh_flags & SHF_ALLOC)
		return true;
	for (size_t k = 0; k < x->m->segments_count; k++) {
		const GElf_Phdr *p = &x->m->segments[k];
		if (p->p_filesz && overlaps(s, p->p_offset, p->p_offset + p->p_filesz))
			return true;
	}

	for (size_t k = 1; k < x->count; k++)
		if (k != i && has_bytes(s) &&
		    overlaps(&x->sections[k], s->sh_offset, s->sh_offset + s->sh_size))
			return true;
	return false;
}

static void choose_debug(struct stripping *x)
{
	for (size_t i = 1; i < x->count; i++) {
		const Elf64_Shdr *s = &x->sections[i];
		const char *name = elf_section_name(x->m, x->sections, x->count, i);
		x->gone[i] = s->sh_type == SHT_PROGBITS && debug_name(name) && !is_used(x, i);
	}

	for (size_t i = 1; i < x->count; i++) {
		const Elf64_Shdr *s = &x->sections[i];
		if (is_relocations(s) && s->sh_info < x->count && x->gone[s->sh_info] &&
		    !is_used(x, i))
			x->gone[i] = true;
	}
}

/* Whether a section that stays names section `i` as its table. */
static bool is_linked(const struct stripping *x, size_t i)
{
	for (size_t k = 1; k < x->count; k++)
		if (!x->gone[k] && x->sections[k].sh_link == i)
			return true;
	return i == x->m->header.e_shstrndx;
}

static void choose_symbols(struct stripping *x)
{
	for (size_t i = 1; i < x->count; i++) {
		const Elf64_Shdr *s = &x->sections[i];
		if (s->sh_type != SHT_SYMTAB || is_used(x, i))
			continue;
		for (size_t k = 1; k < x->count; k++)
			if (x->sections[k].sh_type == SHT_SYMTAB_SHNDX &&
			    x->sections[k].sh_link == i)
				x->gone[k] = !is_used(x, k);
		if (is_linked(x, i)) { /* ld --emit-relocs */
			x->s->left = "relocations for linkers refer to the symbols";
			continue;
		}

		x->gone[i] = true;
		if (s->sh_link && s->sh_link < x->count && !is_linked(x, s->sh_link) &&
		    !is_used(x, s->sh_link))
			x->gone[s->sh_link] = true;
	}
}

/* Gives symbols the new numbers of their sections; symbols of removed sections (the sections' own
 * names) go. false if one of those is needed. */
static bool renumber(struct stripping *x, size_t table)
{
	Elf64_Shdr *s = &x->sections[table];
	const size_t n = s->sh_size / sizeof(Elf64_Sym);
	Elf64_Sym *symbols = arena_array(x->a, n + 1, sizeof(*symbols));
	size_t kept = 0, locals = 0;
	bool changed = false;

	for (size_t i = 0; i < n; i++) {
		Elf64_Sym y;
		memcpy(&y, x->m->data + s->sh_offset + i * sizeof(y), sizeof(y));
		const bool real = y.st_shndx != SHN_UNDEF && y.st_shndx < x->count;
		const size_t to = real ? x->map[y.st_shndx] : y.st_shndx;
		changed = changed || to != y.st_shndx || (real && x->gone[y.st_shndx]);
		if (real && x->gone[y.st_shndx])
			continue;
		y.st_shndx = (Elf64_Section)to;
		locals += i < s->sh_info;
		symbols[kept++] = y;
	}

	if (!changed)
		return true;
	if (kept < n && (s->sh_type == SHT_DYNSYM || is_linked(x, table)))
		return false;
	s->sh_size = kept * sizeof(*symbols);
	s->sh_info = s->sh_type == SHT_SYMTAB ? (Elf64_Word)locals : s->sh_info;
	x->bytes[table] = (const uint8_t *)symbols;
	return true;
}

static bool renumber_all(struct stripping *x)
{
	size_t next = 0;

	for (size_t i = 0; i < x->count; i++)
		x->map[i] = x->gone[i] ? 0 : next++;
	for (size_t i = 1; i < x->count; i++) {
		const Elf64_Shdr *s = &x->sections[i];
		const bool symbols = s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM;
		if (!x->gone[i] && symbols && !renumber(x, i))
			return false;
	}

	return true;
}

static void put_extent(struct stripping *x, struct extent t)
{
	if (t.to > t.from && t.to > x->first)
		x->extents[x->extents_count++] = t;
}

static int by_offset(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to < y->to) - (x->to > y->to);
}

/* Those that overlap are one, aligned as the strictest of them. */
static void merge(struct stripping *x)
{
	size_t n = 0;

	qsort(x->extents, x->extents_count, sizeof(*x->extents), by_offset);
	for (size_t i = 0; i < x->extents_count; i++) {
		const struct extent *t = &x->extents[i];
		struct extent *last = n ? &x->extents[n - 1] : NULL;
		if (!last || t->from >= last->to) {
			x->extents[n++] = *t;
			continue;
		}

		last->to = t->to > last->to ? t->to : last->to;
		last->align = t->align > last->align ? t->align : last->align;
		last->fixed = last->fixed || t->fixed;
	}

	x->extents_count = n;
}

static bool is_zero(const uint8_t *p, uint64_t n)
{
	return !n || (!p[0] && memcmp(p, p + 1, n - 1) == 0);
}

/* patchelf leaves the section headers as they were before it at their old place. */
static bool is_old_headers(const struct stripping *x, uint64_t from, uint64_t to)
{
	Elf64_Shdr s;
	uint64_t at = up(from, 8);

	if (at > to || to - at < sizeof(s) || !is_zero(x->m->data + from, at + sizeof(s) - from))
		return false;
	for (at += sizeof(s); to - at >= sizeof(s); at += sizeof(s)) {
		memcpy(&s, x->m->data + at, sizeof(s));
		/* Its offsets may be those of a longer file: GPU code was removed since. */
		const bool known = s.sh_type < SHT_NUM || s.sh_type >= SHT_LOOS;
		const bool aligned = (s.sh_addralign & (s.sh_addralign - 1)) == 0;
		if (!known || !aligned || s.sh_name > UINT16_MAX)
			return false;
		if (s.sh_flags && !s.sh_type)
			return false;
	}

	return is_zero(x->m->data + at, to - at);
}

/* The end of the parts at `at`, and where the next one begins. */
struct outlook {
	uint64_t at, end, next;
};

static void look(struct outlook *o, uint64_t from, uint64_t len)
{
	if (from <= o->at && from + len > o->at)
		o->end = from + len > o->end ? from + len : o->end;
	else if (from > o->at && from < o->next)
		o->next = from;
}

/* Whether all bytes that would be lost are those of removed sections, section headers, or zeros. A
 * program may read what was appended to it. */
static bool covers(const struct stripping *x)
{
	uint64_t at = x->first;
	const GElf_Ehdr *h = &x->m->header;

	while (at < x->m->size) {
		struct outlook o = {.at = at, .end = at, .next = x->m->size};
		for (size_t i = 0; i < x->extents_count; i++)
			look(&o, x->extents[i].from, x->extents[i].to - x->extents[i].from);
		for (size_t i = 1; i < x->count; i++)
			if (x->gone[i] && has_bytes(&x->sections[i]))
				look(&o, x->sections[i].sh_offset, x->sections[i].sh_size);
		look(&o, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr));
		const bool zeros = o.end > at || is_zero(x->m->data + at, o.next - at);
		if (!zeros && (o.next == x->m->size || !is_old_headers(x, at, o.next)))
			return false;
		at = o.end > at ? o.end : o.next;
	}

	return true;
}

/* Where a byte of the old file is in the new one. */
static uint64_t moved(const struct stripping *x, uint64_t offset)
{
	for (size_t i = 0; i < x->s->count; i++) {
		const struct elf_strip_move *t = &x->s->moves[i];
		if (!t->bytes && offset >= t->from && offset - t->from < t->len)
			return offset - t->from + t->to;
	}

	return offset;
}

static void add_move(struct stripping *x, struct elf_strip_move t)
{
	x->s->moves[x->s->count++] = t;
}

/* Segments move to the next offset that is congruent to their
 * address, as the loader requires; other sections follow closely. */
static uint64_t lay_out(struct stripping *x)
{
	uint64_t at = x->first;

	for (size_t i = 0; i < x->extents_count; i++) {
		const struct extent *t = &x->extents[i];
		const uint64_t rest = t->fixed && t->align > 1 ? t->from % t->align : 0;
		if (t->from < x->first) { /* one that begins below stays at its place */
			at = t->to;
			add_move(x, (struct elf_strip_move){x->first, x->first, t->to - x->first,
							    NULL});
			continue;
		}

		at = at > rest ? up(at - rest, t->align) + rest : rest;
		add_move(x, (struct elf_strip_move){t->from, at, t->to - t->from, NULL});
		at += t->to - t->from;
	}

	return at;
}

static bool contents_change(const struct stripping *x, size_t i)
{
	return !x->gone[i] && x->bytes[i];
}

/* Tables of symbols that changed: a loaded one has its old size, the other its own place. */
static void put_tables(struct stripping *x, uint64_t *at)
{
	for (size_t i = 1; i < x->count; i++) {
		Elf64_Shdr *s = &x->sections[i];
		if (!contents_change(x, i))
			continue;
		const bool stays = (s->sh_flags & SHF_ALLOC) || s->sh_offset < x->first;
		const uint64_t to = stays ? moved(x, s->sh_offset) : up(*at, 8);
		add_move(x, (struct elf_strip_move){s->sh_offset, to, s->sh_size, x->bytes[i]});
		if (!stays)
			*at = to + s->sh_size;
	}
}

static uint64_t new_place(const struct stripping *x, size_t i)
{
	for (size_t k = 0; k < x->s->count && x->bytes[i]; k++)
		if (x->s->moves[k].bytes == x->bytes[i])
			return x->s->moves[k].to;
	return x->sections[i].sh_offset < x->first ? x->sections[i].sh_offset
						   : moved(x, x->sections[i].sh_offset);
}

static void put_headers(struct stripping *x, uint64_t at)
{
	const struct elf_map *m = x->m;
	Elf64_Ehdr *h = arena_alloc(x->a, sizeof(*h));
	Elf64_Phdr *p = arena_array(x->a, m->segments_count + 1, sizeof(*p));
	Elf64_Shdr *s = arena_array(x->a, x->count, sizeof(*s));
	size_t n = 0;

	memcpy(h, m->data, sizeof(*h));
	memcpy(p, m->data + h->e_phoff, m->segments_count * sizeof(*p));
	for (size_t i = 0; i < m->segments_count; i++)
		p[i].p_offset = moved(x, p[i].p_offset);
	for (size_t i = 0; i < x->count; i++) {
		if (x->gone[i])
			continue;
		s[n] = x->sections[i];
		if (has_bytes(&s[n]))
			s[n].sh_offset = new_place(x, i);
		if (s[n].sh_link < x->count)
			s[n].sh_link = (Elf64_Word)x->map[s[n].sh_link];
		if (((s[n].sh_flags & SHF_INFO_LINK) || is_relocations(&s[n])) &&
		    s[n].sh_info < x->count)
			s[n].sh_info = (Elf64_Word)x->map[s[n].sh_info];
		n++;
	}

	const uint64_t table = up(at, 8), phoff = moved(x, h->e_phoff);
	add_move(x, (struct elf_strip_move){h->e_phoff, phoff, m->segments_count * sizeof(*p),
					    (const uint8_t *)p});
	add_move(x, (struct elf_strip_move){h->e_shoff, table, n * sizeof(*s), (const uint8_t *)s});
	h->e_phoff = phoff;
	h->e_shoff = table;
	h->e_shnum = (Elf64_Half)n;
	h->e_shstrndx = h->e_shstrndx < x->count ? (Elf64_Half)x->map[h->e_shstrndx] : SHN_UNDEF;
	add_move(x, (struct elf_strip_move){0, 0, sizeof(*h), (const uint8_t *)h});
	x->s->size = table + n * sizeof(*s);
}

/* Everything that stays beyond the first section that goes. */
static void gather(struct stripping *x)
{
	const GElf_Ehdr *h = &x->m->header;

	put_extent(x, (struct extent){.from = h->e_phoff,
				      .to = h->e_phoff + (uint64_t)h->e_phnum * sizeof(Elf64_Phdr),
				      .align = 8,
				      .fixed = true});
	for (size_t i = 0; i < x->m->segments_count; i++) {
		const GElf_Phdr *p = &x->m->segments[i];
		put_extent(x, (struct extent){.from = p->p_offset,
					      .to = p->p_offset + p->p_filesz,
					      .align = p->p_align,
					      .fixed = true});
	}

	for (size_t i = 1; i < x->count; i++) {
		const Elf64_Shdr *s = &x->sections[i];
		const bool loaded = s->sh_flags & SHF_ALLOC;
		/* A table that changes is written at another
		 * place, and its old bytes are nobody's. */
		const uint64_t align = s->sh_addralign > 1 ? s->sh_addralign : 1;
		if (!x->gone[i] && has_bytes(s) && (loaded || !x->bytes[i]))
			put_extent(x, (struct extent){.from = s->sh_offset,
						      .to = s->sh_offset + s->sh_size,
						      .align = align,
						      .fixed = loaded});
	}
}

static void count_gone(struct stripping *x)
{
	x->first = UINT64_MAX;
	for (size_t i = 1; i < x->count; i++) {
		const Elf64_Shdr *s = &x->sections[i];
		if (!x->gone[i] || !has_bytes(s))
			continue;
		const bool debug = debug_name(elf_section_name(x->m, x->sections, x->count, i)) ||
				   is_relocations(s);
		*(debug ? &x->s->debug : &x->s->symbols) += s->sh_size;
		x->first = s->sh_offset < x->first ? s->sh_offset : x->first;
	}
}

/* The old bytes of a table that is rewritten must be among those that may be lost. */
static void forget_old_tables(struct stripping *x, const Elf64_Shdr *old)
{
	for (size_t i = 1; i < x->count; i++)
		if (contents_change(x, i) && !(x->sections[i].sh_flags & SHF_ALLOC))
			put_extent(x, (struct extent){.from = old[i].sh_offset,
						      .to = old[i].sh_offset + old[i].sh_size,
						      .align = 1,
						      .fixed = false});
}

static void leave(struct elf_strip *s, const char *why)
{
	s->count = 0;
	s->debug = s->symbols = 0;
	s->size = s->map->size;
	s->left = why;
}

static bool is_linked_file(const struct elf_map *m)
{
	return (m->header.e_type == ET_DYN || m->header.e_type == ET_EXEC) && m->segments_count;
}

static bool segments_inside(const struct elf_map *m)
{
	for (size_t i = 0; i < m->segments_count; i++)
		if (m->segments[i].p_offset > m->size ||
		    m->segments[i].p_filesz > m->size - m->segments[i].p_offset)
			return false;
	return true;
}

static void choose(struct stripping *x, unsigned what)
{
	if (what & ELF_STRIP_DEBUG)
		choose_debug(x);
	if (what & ELF_STRIP_SYMBOLS)
		choose_symbols(x);
	count_gone(x);
}

static void strip_sections(struct stripping *x)
{
	struct elf_strip *s = x->s;
	Elf64_Shdr *old = arena_array(x->a, x->count, sizeof(*old));

	memcpy(old, x->sections, x->count * sizeof(*old));
	if (!renumber_all(x))
		return leave(s, "symbols of sections to remove are in use");
	gather(x);
	const size_t staying = x->extents_count;
	forget_old_tables(x, old);
	if (!covers(x))
		return leave(s, "it has bytes that belong to no section");
	x->extents_count = staying;
	merge(x);
	add_move(x, (struct elf_strip_move){0, 0, x->first, NULL});
	uint64_t at = lay_out(x);
	put_tables(x, &at);
	put_headers(x, at);
	if (s->size >= x->m->size)
		leave(s, NULL);
}

int elf_strip_plan(const struct elf_map *m, unsigned what, struct arena *a, struct elf_strip *ret,
		   struct err *e)
{
	struct elf_strip s = {.map = m, .a = a, .size = m->size};
	struct stripping x = {.s = &s, .m = m, .a = a};

	*ret = s;
	if (!is_linked_file(m))
		return 0;
	if (elf_map_loadable(m, e) < 0 || elf_sections(m, a, &x.sections, &x.count, e) < 0)
		return -1;
	if (x.count > SECTIONS_MAX || !segments_inside(m)) {
		ret->left = x.count > SECTIONS_MAX ? "it has too many sections"
						   : "a segment leaves the file";
		return 0;
	}

	const size_t room = x.count + m->segments_count + 8;
	x.gone = arena_array(a, x.count + 1, sizeof(*x.gone));
	x.map = arena_array(a, x.count + 1, sizeof(*x.map));
	x.bytes = arena_array(a, x.count + 1, sizeof(*x.bytes));
	x.extents = arena_array(a, room * 2, sizeof(*x.extents));
	s.moves = arena_array(a, room * 2, sizeof(*s.moves));
	choose(&x, what);
	if (x.first != UINT64_MAX)
		strip_sections(&x);
	*ret = s;
	return 0;
}

struct writing {
	const struct elf_strip *s;
	int fd;
	const char *name; /* of the file that is written */
};

/* Pages of zeros stay unwritten: the file was made longer before. */
static int write_sparse(const struct writing *w, const struct elf_strip_move *t, struct err *e)
{
	const uint8_t *from = w->s->map->data + t->from;
	const uint64_t page = 4096;
	uint64_t len = t->len, to = t->to;

	while (len) {
		uint64_t n = 0;
		while (n < len) {
			const uint64_t step = page - (to + n) % page,
				       part = step < len - n ? step : len - n;
			if (part == page && is_zero(from + n, part))
				break;
			n += part;
		}

		if (n && fs_write_at(w->fd, from, n, to, w->name, e) < 0)
			return -1;
		if (n < len) /* the page that stopped it */
			n += page;
		from += n;
		to += n;
		len -= n;
	}

	return 0;
}

int elf_strip_write(const struct elf_strip *s, int fd, const char *name, struct err *e)
{
	const struct writing w = {s, fd, name};

	if (ftruncate(fd, (off_t)s->size) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot write '%s'", name);
	for (size_t i = 0; i < s->count; i++) {
		const struct elf_strip_move *t = &s->moves[i];
		if (!t->bytes && write_sparse(&w, t, e) < 0)
			return -1;
	}

	/* Headers and tables last: they lie inside of what was copied. */
	for (size_t i = 0; i < s->count; i++) {
		const struct elf_strip_move *t = &s->moves[i];
		if (t->bytes && fs_write_at(fd, t->bytes, t->len, t->to, name, e) < 0)
			return -1;
	}

	return 0;
}
