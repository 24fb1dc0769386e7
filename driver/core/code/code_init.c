/* What the loader runs: DT_INIT, and the arrays, whose addresses are in relocations or (DT_RELR) in the arrays. */
#include <string.h>

#include "core/code/code_parts.h"

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
