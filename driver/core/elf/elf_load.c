/* What the loader does with a file before any of its code runs: it maps the segments, takes the tables that the dynamic
 * entries name on trust, and applies the relocations. */

#include "core/elf/elf_map.h"

enum { PAGE_SMALLEST = 0x1000 };

#ifndef DT_RELR /* glibc before 2.36 */
#define DT_RELR 36
#define DT_RELRSZ 35
#define DT_RELRENT 37
#endif

static int check_header(const struct elf_map *m, struct err *e)
{
	const GElf_Ehdr *h = &m->header;
	unsigned abi = m->data[EI_OSABI];
	if (abi != ELFOSABI_SYSV && abi != ELFOSABI_GNU)
		return elf_map_bad(m, EI_OSABI, e, "it is for the operating system %u, not for Linux,", abi);
	/* glibc's elf/dl-load.c wants these to be 0 and 1, too. */
	for (unsigned i = abi == ELFOSABI_GNU ? EI_PAD : EI_ABIVERSION; i < EI_NIDENT; i++)
		if (m->data[i])
			return elf_map_bad(m, i, e, "a byte of its identification is %u, not 0,", m->data[i]);
	if (h->e_version != EV_CURRENT)
		return elf_map_bad(m, offsetof(Elf64_Ehdr, e_version), e, "it has the version %u",
				   (unsigned)h->e_version);
	if (h->e_machine == EM_NONE)
		return elf_map_bad(m, offsetof(Elf64_Ehdr, e_machine), e, "it is for no machine");
	/* The loader needs no sections, which are last: without them the file is not what the linker wrote. */
	if (h->e_shoff && (h->e_shoff > m->size || h->e_shnum > (m->size - h->e_shoff) / sizeof(Elf64_Shdr)))
		return elf_map_bad(m, h->e_shoff, e, "it is truncated: it has %zu bytes, and its section headers are",
				   m->size);
	return 0;
}

static int check_segments(const struct elf_map *m, struct err *e)
{
	uint64_t end = 0;
	bool any = false;
	for (size_t i = 0; i < m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i];
		if (p->p_type != PT_LOAD)
			continue;
		uint64_t align = p->p_align ? p->p_align : 1;
		if (align & (align - 1))
			return elf_map_bad(m, p->p_offset, e, "segment %zu is aligned to 0x%llx, not a power of two,",
					   i, (unsigned long long)align);
		/* No loader maps less than a page, whatever the file says. */
		uint64_t unit = align < PAGE_SMALLEST ? PAGE_SMALLEST : align;
		if ((p->p_offset ^ p->p_vaddr) & (unit - 1))
			return elf_map_bad(m, p->p_offset, e,
					   "segment %zu: address 0x%llx does not fit the alignment 0x%llx of data", i,
					   (unsigned long long)p->p_vaddr, (unsigned long long)unit);
		if (p->p_filesz > p->p_memsz || p->p_memsz > UINT64_MAX - p->p_vaddr)
			return elf_map_bad(m, p->p_offset, e, "segment %zu is larger in the file than in memory", i);
		if (any && p->p_vaddr < end)
			return elf_map_bad(m, p->p_offset, e,
					   "segment %zu overlaps the one before it or is out of order", i);
		end = p->p_vaddr + p->p_memsz;
		any = true;
	}
	return 0;
}

/* Whether `size` bytes in memory lie in a segment that has one of the flags. */
static bool is_mapped(const struct elf_map *m, uint64_t address, uint64_t size, unsigned flags)
{
	for (size_t i = 0; i < m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i];
		if (p->p_type == PT_LOAD && (p->p_flags & flags) && address - p->p_vaddr < p->p_memsz &&
		    size <= p->p_memsz - (address - p->p_vaddr))
			return true;
	}
	return false;
}

static int bad_entry(const struct elf_map *m, const char *tag, uint64_t value, struct err *e, const char *what)
{
	return elf_map_bad(m, m->dyn_offset, e, "%s 0x%llx %s in the dynamic entries", tag, (unsigned long long)value,
			   what);
}

struct loader_table { /* dynamic entries that belong together */
	const char *name;
	int64_t address, size, entry;
	uint64_t unit; /* what `entry` must say, and `size` be a multiple of */
	bool filled;   /* its bytes are in the file */
};

static const struct loader_table tables[] = {
	{"DT_RELA", DT_RELA, DT_RELASZ, DT_RELAENT, sizeof(Elf64_Rela), true},
	{"DT_JMPREL", DT_JMPREL, DT_PLTRELSZ, DT_NULL, sizeof(Elf64_Rela), true},
	{"DT_RELR", DT_RELR, DT_RELRSZ, DT_RELRENT, sizeof(Elf64_Xword), true},
	{"DT_PREINIT_ARRAY", DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, DT_NULL, sizeof(Elf64_Addr), false},
	{"DT_INIT_ARRAY", DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_NULL, sizeof(Elf64_Addr), false},
	{"DT_FINI_ARRAY", DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_NULL, sizeof(Elf64_Addr), false},
};

/* *ret_offset: of its bytes in the file; *ret_size 0: there is none. */
static int check_table(const struct elf_map *m, const struct loader_table *t, uint64_t *ret_offset, uint64_t *ret_size,
		       struct err *e)
{
	uint64_t address, size, entry;
	*ret_size = *ret_offset = 0;
	if (!elf_map_dyn(m, t->address, &address))
		return 0;
	if (!elf_map_dyn(m, t->size, &size))
		return bad_entry(m, t->name, address, e, "has no size");
	if (t->entry != DT_NULL && elf_map_dyn(m, t->entry, &entry) && entry != t->unit)
		return bad_entry(m, t->name, entry, e, "is not the size of its parts");
	if (size % t->unit)
		return bad_entry(m, t->name, size, e, "is not a whole number of its parts");
	if (size == 0)
		return 0;
	if (t->filled && elf_map_need(m, address, size, t->name, ret_offset, e) < 0)
		return -1;
	if (!is_mapped(m, address, size, PF_R | PF_W | PF_X))
		return bad_entry(m, t->name, address, e, "leaves the segments");
	*ret_size = size;
	return 0;
}

/* Types that glibc's loader takes: its sysdeps/x86_64 and sysdeps/aarch64, dl-machine.h. */
static bool is_dynamic_type(unsigned machine, uint32_t type)
{
	static const uint32_t intel[] = {
		R_X86_64_NONE,     R_X86_64_64,        R_X86_64_PC32,      R_X86_64_COPY,
		R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_RELATIVE,  R_X86_64_32,
		R_X86_64_DTPMOD64, R_X86_64_DTPOFF64,  R_X86_64_TPOFF64,   R_X86_64_SIZE32,
		R_X86_64_SIZE64,   R_X86_64_TLSDESC,   R_X86_64_IRELATIVE, R_X86_64_RELATIVE64};
	if (machine == EM_AARCH64)
		return type == R_AARCH64_NONE || type == 256 /* NONE of old tools */ || type == R_AARCH64_ABS64 ||
		       (type >= R_AARCH64_COPY && type <= R_AARCH64_IRELATIVE);
	bool found = machine != EM_X86_64;
	for (size_t i = 0; i < ARRAY_LEN(intel) && !found; i++)
		found = intel[i] == type;
	return found;
}

/* 0: not known. */
static uint32_t relative_type(unsigned machine)
{
	return machine == EM_X86_64    ? R_X86_64_RELATIVE
	       : machine == EM_AARCH64 ? R_AARCH64_RELATIVE
	       : machine == EM_PPC64   ? R_PPC64_RELATIVE
	       : machine == EM_RISCV   ? R_RISCV_RELATIVE
				       : 0;
}

/* `relative`: the first ones that DT_RELACOUNT says are relative, which the loader does not look at. */
static int check_relocations(const struct elf_map *m, uint64_t offset, uint64_t size, uint64_t relative, struct err *e)
{
	uint64_t flags, text, symbols, count;
	uint32_t own = relative_type(m->header.e_machine);
	bool text_too = elf_map_dyn(m, DT_TEXTREL, &text) || (elf_map_dyn(m, DT_FLAGS, &flags) && (flags & DF_TEXTREL));
	if (elf_map_symbols(m, &symbols, &count, e) < 0)
		return -1;
	if (relative > size / sizeof(Elf64_Rela))
		return bad_entry(m, "DT_RELACOUNT", relative, e, "is more than there are");
	for (uint64_t i = 0; i < size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela r;
		uint64_t at = offset + i * sizeof(r);
		memcpy(&r, m->data + at, sizeof(r));
		uint32_t type = ELF64_R_TYPE(r.r_info);
		if (!is_dynamic_type(m->header.e_machine, type))
			return elf_map_bad(m, at, e, "a relocation of the type %u, which the loader does not know,",
					   type);
		if (i < relative && own && type != own)
			return elf_map_bad(m, at, e, "a relocation that is not relative, as DT_RELACOUNT says,");
		if (ELF64_R_SYM(r.r_info) && ELF64_R_SYM(r.r_info) >= count)
			return elf_map_bad(m, at, e, "a relocation with symbol %llu of %llu",
					   (unsigned long long)ELF64_R_SYM(r.r_info), (unsigned long long)count);
		if (type && !is_mapped(m, r.r_offset, 1, text_too ? PF_R | PF_W | PF_X : PF_W))
			return elf_map_bad(m, at, e, "a relocation of 0x%llx, which is in no writable segment,",
					   (unsigned long long)r.r_offset);
	}
	return 0;
}

static int check_dynamic(const struct elf_map *m, struct err *e)
{
	static const struct {
		const char *name;
		int64_t tag;
	} functions[] = {{"DT_INIT", DT_INIT}, {"DT_FINI", DT_FINI}};
	uint64_t value, offset[ARRAY_LEN(tables)], size[ARRAY_LEN(tables)], relative = 0;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		if (check_table(m, &tables[i], &offset[i], &size[i], e) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		if (elf_map_dyn(m, functions[i].tag, &value) && !is_mapped(m, value, 1, PF_X))
			return bad_entry(m, functions[i].name, value, e, "is in no executable segment");
	if (elf_map_dyn(m, DT_PLTREL, &value) && value != DT_RELA)
		return bad_entry(m, "DT_PLTREL", value, e, "is not DT_RELA");
	if (size[1] && elf_map_dyn(m, DT_PLTGOT, &value) && !is_mapped(m, value, 3 * sizeof(Elf64_Addr), PF_W))
		return bad_entry(m, "DT_PLTGOT", value, e, "is in no writable segment");
	if (elf_map_dyn(m, DT_FLAGS_1, &value) && (value & DF_1_NOOPEN))
		return bad_entry(m, "DT_FLAGS_1", value, e, "forbids dlopen (-z nodlopen)");
	(void)elf_map_dyn(m, DT_RELACOUNT, &relative);
	return check_relocations(m, offset[0], size[0], relative, e) < 0 ||
			       check_relocations(m, offset[1], size[1], 0, e) < 0
		       ? -1
		       : 0;
}

int elf_map_loadable(const struct elf_map *m, struct err *e)
{
	return check_header(m, e) < 0 || check_segments(m, e) < 0 || (m->dyn && check_dynamic(m, e) < 0) ? -1 : 0;
}
