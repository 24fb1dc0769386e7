
#include "core/code/code_parts.h"

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
	static const char *const starts[] = {"_GLOBAL__sub_I_", "_GLOBAL__I_", "__cxx_global_var_init",
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

/* Local symbols follow the symbol of their source file. Hidden ones, made local by the linker, follow a file without a
 * name or the last one, which is the start-up code's. */
static const char *unit_of(const char *file)
{
	return file && *file && strcmp(file, "crtstuff.c") != 0 ? file : NULL;
}

/* "$d" and "$x", also as "$d.7". Functions hold such data as well; only what lies between them is told by it. */
static void take_mark(const struct elf_map *m, const Elf64_Sym *s, const char *name, struct candidates *c)
{
	bool data = name && name[0] == '$' && name[1] == 'd', code = name && name[0] == '$' && name[1] == 'x';
	if (m->header.e_machine == EM_AARCH64 && (data || code) && (!name[2] || name[2] == '.'))
		code_add(c, (struct candidate){.start = s->st_value,
					       .flags = CANDIDATE_MARK | (data ? (unsigned)CANDIDATE_DATA : 0)});
}

static void take_table(const struct elf_map *m, const struct table *t, struct candidates *c, bool *full)
{
	const char *unit = NULL;
	for (uint64_t i = 1; i < t->count; i++) {
		Elf64_Sym s = elf_map_symbol(m, t->symbols, i);
		unsigned type = ELF64_ST_TYPE(s.st_info), bind = ELF64_ST_BIND(s.st_info);
		if (type == STT_FILE)
			unit = unit_of(string_at(t, s.st_name));
		if (type == STT_NOTYPE && bind == STB_LOCAL && s.st_shndx != SHN_UNDEF)
			take_mark(m, &s, string_at(t, s.st_name), c);
		/* Assembler leaves the type out. */
		bool function = type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && bind != STB_LOCAL);
		if ((!function && type != STT_OBJECT) || s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS ||
		    s.st_shndx == SHN_COMMON)
			continue;
		const char *name = string_at(t, s.st_name);
		if (!name || !*name)
			continue;
		struct candidate one = {.start = s.st_value, .size = s.st_size, .name = name, .flags = flags_of(&s)};
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
		if (h.sh_offset > m->size || h.sh_size > m->size - h.sh_offset || strings.sh_offset > m->size ||
		    strings.sh_size > m->size - strings.sh_offset)
			continue;
		*t = (struct table){h.sh_offset, h.sh_size / sizeof(Elf64_Sym),
				    (const char *)m->data + strings.sh_offset, strings.sh_size, true};
		return;
	}
}

int code_symbols(struct elf_map *m, struct candidates *c, bool *ret_full, struct err *e)
{
	struct table fixed = {0},
		     dynamic = {.strings = (const char *)m->data + m->strings, .strings_size = m->strings_size};
	*ret_full = false;
	if (m->dyn && elf_map_symbols(m, &dynamic.symbols, &dynamic.count, e) < 0)
		return -1;
	static_table(m, &fixed);
	take_table(m, &fixed, c, ret_full);
	take_table(m, &dynamic, c, ret_full);
	return 0;
}

/* What the loader runs: DT_INIT, and the arrays, whose addresses are in relocations or (DT_RELR) in the arrays. */
struct slots { /* one array of addresses */
	uint64_t start, size;
};

static void add(struct candidates *c, uint64_t address)
{
	if (address)
		code_add(c, (struct candidate){.start = address, .flags = CODE_INIT});
}

/* The address that a relocation writes; 0 if another library decides. */
static uint64_t value_of(const struct elf_map *m, const Elf64_Rela *r, uint64_t symbols, uint64_t count)
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

static int take_relocations(struct elf_map *m, const struct slots *list, size_t n, struct candidates *c, struct err *e)
{
	uint64_t table, size, offset, symbols, count;
	if (!elf_map_dyn(m, DT_RELA, &table) || !elf_map_dyn(m, DT_RELASZ, &size) || size == 0)
		return 0;
	if (elf_map_need(m, table, size, "relocation table", &offset, e) < 0 ||
	    elf_map_symbols(m, &symbols, &count, e) < 0)
		return -1;
	for (uint64_t i = 0; i + sizeof(Elf64_Rela) <= size; i += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		memcpy(&r, m->data + offset + i, sizeof(r));
		for (size_t k = 0; k < n; k++) {
			if (r.r_offset - list[k].start < list[k].size)
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

int code_initialisers(struct elf_map *m, struct candidates *c, struct err *e)
{
	static const int64_t tags[][2] = {{DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ}, {DT_INIT_ARRAY, DT_INIT_ARRAYSZ}};
	struct slots list[ARRAY_LEN(tags)];
	size_t n = 0;
	uint64_t init;
	if (!m->dyn)
		return 0;
	if (elf_map_dyn(m, DT_INIT, &init))
		add(c, init);
	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		if (elf_map_dyn(m, tags[i][0], &list[n].start) && elf_map_dyn(m, tags[i][1], &list[n].size))
			take_contents(m, &list[n++], c);
	}
	return take_relocations(m, list, n, c, e);
}
