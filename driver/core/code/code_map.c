
#include "core/code/code_parts.h"

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

static int by_region(const void *a, const void *b)
{
	const struct code_region *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
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
		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && address - p->p_vaddr < p->p_filesz)
			return true;
	}
	return false;
}

/* The executable sections, or segments where there are none, as far as their bytes are in the file. */
static size_t find_regions(const struct elf_map *m, const struct candidates *c, struct arena *a,
			   struct code_region **ret)
{
	size_t sections = 0, n = 0;
	(void)!elf_getshdrnum(m->elf, &sections);
	sections = sections <= m->size / sizeof(Elf64_Shdr) ? sections : 0;
	struct code_region *list = arena_array(a, sections + m->segments_count + 1, sizeof(*list));
	for (Elf_Scn *s = sections ? elf_nextscn(m->elf, NULL) : NULL; s && n < sections; s = elf_nextscn(m->elf, s)) {
		GElf_Shdr h;
		uint64_t offset, room;
		if (!gelf_getshdr(s, &h) || h.sh_type != SHT_PROGBITS || !(h.sh_flags & SHF_EXECINSTR) ||
		    !(h.sh_flags & SHF_ALLOC))
			continue;
		if (elf_map_find(m, h.sh_addr, &offset, &room) && h.sh_size)
			list[n++] = (struct code_region){h.sh_addr, h.sh_addr + (h.sh_size < room ? h.sh_size : room)};
	}
	/* Sections are for tools alone: where a function is in none of them, they are not to be believed. */
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
	qsort(list, n, sizeof(*list), by_region);
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
		r->flags = c->flags & CANDIDATE_DATA ? CODE_DATA : c->flags & ~(unsigned)CANDIDATE_MARK;
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

static void cut_region(struct cutting *t, const struct code_region *r, const struct candidate *items, size_t count)
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
	size_t n = drop_marks(c.items, merge(&c)), regions_count = find_regions(m, &c, &scratch, &regions);
	/* A candidate makes at most three ranges: itself, the rest of the one around it, bytes of none. */
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
