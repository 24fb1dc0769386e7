#include "core/elf/elf_strip.h"

struct side {
	const struct elf_map *m;
	Elf64_Shdr *sections;
	size_t count;
};

struct proving {
	struct side before, after;
	unsigned what;
	size_t *match; /* number of a section of `after` in `before` */
	bool *kept;    /* of `before` */
};

static const char *name_of(const struct side *s, size_t i)
{
	return i < s->count ? elf_section_name(s->m, s->sections, s->count, i) : "";
}

static bool has_bytes(const Elf64_Shdr *s)
{
	return s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS && s->sh_size;
}

static bool same_bytes(const struct proving *x, uint64_t before, uint64_t after, uint64_t len)
{
	const struct elf_map *m = x->before.m, *n = x->after.m;

	if (before > m->size || len > m->size - before || after > n->size || len > n->size - after)
		return false;
	return !len || memcmp(m->data + before, n->data + after, len) == 0;
}

static bool may_go(const struct proving *x, size_t i)
{
	if (i >= x->before.count)
		return false;
	const Elf64_Shdr *s = &x->before.sections[i];
	const char *name = name_of(&x->before, i);
	const bool debug = strstr(name, "debug_") || strcmp(name, ".gdb_index") == 0;
	const bool symbols = s->sh_type == SHT_SYMTAB || s->sh_type == SHT_STRTAB ||
			     s->sh_type == SHT_SYMTAB_SHNDX;
	if (s->sh_flags & SHF_ALLOC)
		return false;
	return ((x->what & ELF_STRIP_DEBUG) && debug) || ((x->what & ELF_STRIP_SYMBOLS) && symbols);
}

static bool same_section(const struct proving *x, size_t before, size_t after)
{
	const Elf64_Shdr *s = &x->before.sections[before], *t = &x->after.sections[after];

	if (strcmp(name_of(&x->before, before), name_of(&x->after, after)) != 0)
		return false;
	if (s->sh_type != t->sh_type || s->sh_flags != t->sh_flags || s->sh_addr != t->sh_addr)
		return false;
	return s->sh_addralign == t->sh_addralign && s->sh_entsize == t->sh_entsize;
}

/* Whether two references name the same section, or none. */
static bool same_reference(const struct proving *x, size_t before, size_t after)
{
	if (before >= x->before.count || after >= x->after.count || !before || !after)
		return before == after;
	return x->match[after] == before;
}

static bool same_symbol(const struct proving *x, const Elf64_Sym *s, const Elf64_Sym *t)
{
	if (s->st_name != t->st_name || s->st_info != t->st_info || s->st_other != t->st_other)
		return false;
	if (s->st_value != t->st_value || s->st_size != t->st_size)
		return false;
	return same_reference(x, s->st_shndx, t->st_shndx);
}

static bool is_gone(const struct proving *x, const Elf64_Sym *s)
{
	return s->st_shndx != SHN_UNDEF && s->st_shndx < x->before.count && !x->kept[s->st_shndx];
}

/* All symbols but those of sections that are gone, in their order. */
static bool same_symbols(const struct proving *x, const Elf64_Shdr *s, const Elf64_Shdr *t)
{
	const uint8_t *p = x->before.m->data + s->sh_offset, *q = x->after.m->data + t->sh_offset;
	size_t n = s->sh_size / sizeof(Elf64_Sym), m = t->sh_size / sizeof(Elf64_Sym), k = 0;

	for (size_t i = 0; i < n; i++) {
		Elf64_Sym a, b;
		memcpy(&a, p + i * sizeof(a), sizeof(a));
		if (is_gone(x, &a))
			continue;
		if (k == m)
			return false;
		memcpy(&b, q + k++ * sizeof(b), sizeof(b));
		if (!same_symbol(x, &a, &b))
			return false;
	}

	return k == m;
}

static int check_section(const struct proving *x, size_t before, size_t after, struct err *e)
{
	const Elf64_Shdr *s = &x->before.sections[before], *t = &x->after.sections[after];
	const bool table = s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM;
	const char *name = name_of(&x->before, before);

	if (!same_reference(x, s->sh_link, t->sh_link) && !may_go(x, s->sh_link))
		return elf_map_bad(x->after.m, t->sh_offset, e, "section %s names another section",
				   name);
	if (table)
		return same_symbols(x, s, t)
			       ? 0
			       : elf_map_bad(x->after.m, t->sh_offset, e, "%s differs", name);
	if (s->sh_size != t->sh_size ||
	    (has_bytes(s) && !same_bytes(x, s->sh_offset, t->sh_offset, s->sh_size)))
		return elf_map_bad(x->after.m, t->sh_offset, e, "section %s has other bytes", name);
	return 0;
}

static int check_sections(struct proving *x, struct err *e)
{
	size_t i = 1, k = 1;

	for (; i < x->before.count; i++) {
		if (k < x->after.count && same_section(x, i, k)) {
			x->kept[i] = true;
			x->match[k++] = i;
			continue;
		}

		if (!may_go(x, i))
			return elf_map_bad(x->before.m, x->before.sections[i].sh_offset, e,
					   "section %s is missing", name_of(&x->before, i));
	}

	if (k < x->after.count)
		return elf_map_bad(x->after.m, x->after.sections[k].sh_offset, e,
				   "section %s is new", name_of(&x->after, k));
	for (k = 1; k < x->after.count; k++)
		if (check_section(x, x->match[k], k, e) < 0)
			return -1;
	return 0;
}

/* The end of what may differ at this offset: the header, the program headers, and the dynamic
 * symbols, which check_section compares. `next`: where the next such part begins. */
static uint64_t differs_until(const struct proving *x, uint64_t at, uint64_t *next)
{
	const GElf_Ehdr *h = &x->before.m->header;
	uint64_t from[3] = {0, h->e_phoff, UINT64_MAX}, to[3] = {sizeof(Elf64_Ehdr), 0, 0},
		 end = at;

	to[1] = h->e_phoff + (uint64_t)h->e_phnum * sizeof(Elf64_Phdr);
	for (size_t i = 1; i < x->before.count; i++) {
		const Elf64_Shdr *s = &x->before.sections[i];
		if (s->sh_type != SHT_DYNSYM || from[2] != UINT64_MAX)
			continue;
		from[2] = s->sh_offset;
		to[2] = s->sh_offset + s->sh_size;
	}

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		if (from[i] <= at && to[i] > at)
			end = to[i] > end ? to[i] : end;
		if (from[i] > at && from[i] < *next)
			*next = from[i];
	}

	return end;
}

static int check_segment(const struct proving *x, size_t i, struct err *e)
{
	const GElf_Phdr *p = &x->before.m->segments[i], *q = &x->after.m->segments[i];
	uint64_t at = p->p_offset, to = p->p_offset + p->p_filesz;

	if (p->p_type != q->p_type || p->p_vaddr != q->p_vaddr || p->p_filesz != q->p_filesz)
		return elf_map_bad(x->after.m, q->p_offset, e, "segment %zu is another", i);
	if (p->p_memsz != q->p_memsz || p->p_flags != q->p_flags || p->p_align != q->p_align)
		return elf_map_bad(x->after.m, q->p_offset, e, "segment %zu is loaded differently",
				   i);
	while (at < to) {
		uint64_t next = to, skip = differs_until(x, at, &next);
		if (skip > at) {
			at = skip;
			continue;
		}

		if (!same_bytes(x, at, q->p_offset + (at - p->p_offset), next - at))
			return elf_map_bad(x->after.m, q->p_offset, e,
					   "segment %zu has other bytes", i);
		at = next;
	}

	return 0;
}

static bool same_header(const GElf_Ehdr *h, const GElf_Ehdr *k)
{
	if (memcmp(h->e_ident, k->e_ident, sizeof(h->e_ident)) != 0 || h->e_phnum != k->e_phnum)
		return false;
	return h->e_type == k->e_type && h->e_machine == k->e_machine && h->e_entry == k->e_entry &&
	       h->e_flags == k->e_flags;
}

int elf_strip_prove(const struct elf_map *before, const struct elf_map *after, unsigned what,
		    struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct proving x = {.before.m = before, .after.m = after, .what = what};

	if (elf_map_loadable(after, e) < 0 ||
	    elf_sections(before, &a, &x.before.sections, &x.before.count, e) < 0 ||
	    elf_sections(after, &a, &x.after.sections, &x.after.count, e) < 0)
		return -1;
	if (!same_header(&before->header, &after->header))
		return elf_map_bad(after, 0, e, "its header is another");
	x.kept = arena_array(&a, x.before.count + 1, sizeof(*x.kept));
	x.match = arena_array(&a, x.after.count + 1, sizeof(*x.match));
	if (check_sections(&x, e) < 0)
		return -1;
	for (size_t i = 0; i < before->segments_count; i++)
		if (check_segment(&x, i, e) < 0)
			return -1;
	return 0;
}
