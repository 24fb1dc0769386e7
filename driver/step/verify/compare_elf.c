/* Where two ELF files differ, by section and symbol. */

#include "step/verify/verify.h"

enum { NAMES_MAX = 10 };

struct symbol {
	const char *name;
	uint64_t address, size;
};

struct section {
	const char *name;
	GElf_Shdr header;
	struct compare_bytes bytes; /* empty for one without bytes in the file */
};

struct file {
	Elf *elf;
	struct section *sections;
	size_t count;
	struct symbol *symbols; /* with a size, by address */
	size_t symbols_count;
};

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return strcmp(x->name, y->name);
}

static const struct section *find_type(const struct file *f, uint32_t type)
{
	for (size_t i = 0; i < f->count; i++) {
		if (f->sections[i].header.sh_type == type)
			return &f->sections[i];
	}
	return NULL;
}

/* The static table, else what the dynamic one has. */
static void read_symbols(struct file *f, struct arena *a)
{
	const struct section *table = find_type(f, SHT_SYMTAB);
	table = table ? table : find_type(f, SHT_DYNSYM);
	Elf_Scn *scn = table ? elf_getscn(f->elf, (size_t)(table - f->sections) + 1) : NULL;
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t n = data && table->header.sh_entsize ? data->d_size / table->header.sh_entsize : 0;
	f->symbols = arena_array(a, n, sizeof(*f->symbols));
	for (size_t i = 0; i < n && i < INT32_MAX; i++) {
		GElf_Sym s;
		if (!gelf_getsym(data, (int)i, &s) || !s.st_size || s.st_shndx == SHN_UNDEF)
			continue;
		const char *name = elf_strptr(f->elf, table->header.sh_link, s.st_name);
		if (name && *name)
			f->symbols[f->symbols_count++] = (struct symbol){name, s.st_value, s.st_size};
	}
	qsort(f->symbols, f->symbols_count, sizeof(*f->symbols), by_address);
}

static bool read_file(struct file *f, const struct compare_bytes *b, struct arena *a)
{
	size_t names, count;
	if (elf_version(EV_CURRENT) == EV_NONE || b->len < EI_NIDENT || memcmp(b->data, ELFMAG, SELFMAG) != 0)
		return false;
	f->elf = elf_memory((char *)(uintptr_t)b->data, b->len);
	if (!f->elf || elf_getshdrstrndx(f->elf, &names) != 0 || elf_getshdrnum(f->elf, &count) != 0 || count < 2)
		return false;
	f->sections = arena_array(a, count - 1, sizeof(*f->sections));
	for (size_t i = 1; i < count; i++) {
		struct section *s = &f->sections[i - 1];
		Elf_Scn *scn = elf_getscn(f->elf, i);
		if (!scn || !gelf_getshdr(scn, &s->header))
			return false;
		const char *name = elf_strptr(f->elf, names, s->header.sh_name);
		s->name = name ? name : "";
		bool inside = s->header.sh_offset <= b->len && s->header.sh_size <= b->len - s->header.sh_offset;
		if (s->header.sh_type != SHT_NOBITS && inside)
			s->bytes = (struct compare_bytes){b->data + s->header.sh_offset, s->header.sh_size};
	}
	f->count = count - 1;
	read_symbols(f, a);
	return true;
}

static const struct section *find_section(const struct file *f, const char *name)
{
	return text_search(name, f->sections, f->count, sizeof(*f->sections));
}

static const struct symbol *symbol_at(const struct file *f, uint64_t address)
{
	size_t low = 0, high = f->symbols_count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (f->symbols[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	while (low-- > 0) {
		const struct symbol *s = &f->symbols[low];
		if (address - s->address < s->size)
			return s;
		if (address - s->address > (1U << 20))
			break;
	}
	return NULL;
}

/* Sections of equal size: which symbols differ. */
static void compare_contents(struct comparing *x, const struct file *f, const struct section *one,
			     const struct section *other)
{
	size_t len = one->bytes.len, bytes = 0, first = len, last_end = 0;
	struct strlist names = {0};
	for (size_t i = 0; i < len; i++) {
		if (one->bytes.data[i] == other->bytes.data[i])
			continue;
		first = first == len ? i : first;
		bytes++;
		if (i < last_end || names.count == NAMES_MAX || !(one->header.sh_flags & SHF_ALLOC))
			continue;
		const struct symbol *s = symbol_at(f, one->header.sh_addr + i);
		last_end = s ? (size_t)(s->address + s->size - one->header.sh_addr) : i + 16;
		if (s)
			strlist_once(&names, x->a, s->name);
	}
	compare_note(x, arena_printf(x->a, "section %s", one->name), "%zu of %zu bytes differ, the first at 0x%zx",
		     bytes, len, first);
	for (size_t i = 0; i < names.count; i++)
		compare_note(x, arena_printf(x->a, "symbol %s", names.items[i]), "has other bytes in %s", one->name);
}

static int by_name(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	int c = strcmp(x->name, y->name);
	return c ? c : (x->size > y->size) - (x->size < y->size);
}

/* Symbols that only one has, or of another size. Leaves the symbols sorted by name. */
static void compare_symbols(struct comparing *x, const struct file *one, const struct file *other)
{
	size_t i = 0, k = 0, shown = 0;
	struct symbol *p = one->symbols, *q = other->symbols;
	qsort(p, one->symbols_count, sizeof(*p), by_name);
	qsort(q, other->symbols_count, sizeof(*q), by_name);
	while ((i < one->symbols_count || k < other->symbols_count) && shown < NAMES_MAX) {
		int c = i == one->symbols_count ? 1 : k == other->symbols_count ? -1 : strcmp(p[i].name, q[k].name);
		if (c != 0) {
			compare_note(x, arena_printf(x->a, "symbol %s", c < 0 ? p[i].name : q[k].name),
				     "is in the %s only", c < 0 ? "first" : "second");
			shown++;
		} else if (p[i].size != q[k].size) {
			compare_note(x, arena_printf(x->a, "symbol %s", p[i].name),
				     "has %llu bytes in the first, %llu in the second", (unsigned long long)p[i].size,
				     (unsigned long long)q[k].size);
			shown++;
		}
		i += c <= 0;
		k += c >= 0;
	}
}

bool compare_same(const struct compare_bytes *one, const struct compare_bytes *other)
{
	return one->len == other->len && (one->len == 0 || memcmp(one->data, other->data, one->len) == 0);
}

static bool compare_files(struct comparing *x, const struct file *one, const struct file *other)
{
	bool sizes = false, any = false;
	for (size_t i = 0; i < one->count; i++) {
		const struct section *s = &one->sections[i], *t = find_section(other, s->name);
		if (t && compare_same(&s->bytes, &t->bytes))
			continue;
		any = true;
		const char *where = arena_printf(x->a, "section %s", s->name);
		if (!t)
			compare_note(x, where, "is in the first only");
		else if (s->bytes.len != t->bytes.len)
			compare_note(x, where, "has %zu bytes in the first, %zu in the second", s->bytes.len,
				     t->bytes.len);
		else
			compare_contents(x, one, s, t);
		sizes = sizes || !t || s->bytes.len != t->bytes.len;
	}
	for (size_t i = 0; i < other->count; i++) {
		if (find_section(one, other->sections[i].name))
			continue;
		compare_note(x, arena_printf(x->a, "section %s", other->sections[i].name), "is in the second only");
		any = sizes = true;
	}
	if (sizes)
		compare_symbols(x, one, other);
	return any;
}

bool compare_elf(struct comparing *x, const struct compare_bytes *one, const struct compare_bytes *other)
{
	struct file f = {0}, g = {0};
	bool differ = read_file(&f, one, x->a) && read_file(&g, other, x->a) && compare_files(x, &f, &g);
	elf_end(f.elf);
	elf_end(g.elf);
	return differ;
}
