#include "core/elf/elf_map.h"

int elf_map_bad(const struct elf_map *m, uint64_t offset, struct err *e, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	const char *quote = m->name ? "'" : "";
	return err_set(e, ERR_INTEGRITY, "%s%s%s: %s at offset 0x%llx", quote,
		       m->name ? m->name : "the file", quote, text, (unsigned long long)offset);
}

/* Bytes from the file at the segment's address. Whole pages are mapped, and the rest of the
 * last is cleared for a .bss alone: patchelf puts what is behind p_filesz to use. What
 * follows at once, in memory and in the file, is read on. */
static uint64_t loaded_size(const struct elf_map *m, const GElf_Phdr *p)
{
	uint64_t rest = -(p->p_vaddr + p->p_filesz) & 0xfff,
		 left = m->size - p->p_offset - p->p_filesz, more = 0;

	for (size_t i = 0; i < m->segments_count; i++) {
		const GElf_Phdr *next = &m->segments[i];
		uint64_t behind = next->p_vaddr - p->p_vaddr;
		if (next->p_type != PT_LOAD || next->p_vaddr <= p->p_vaddr)
			continue;
		if (behind == p->p_filesz && next->p_offset - p->p_offset == behind)
			more = next->p_filesz;
		if ((next->p_vaddr & ~0xfffull) - p->p_vaddr < p->p_filesz + rest)
			rest = 0;
	}

	if (p->p_memsz != p->p_filesz)
		return p->p_filesz;
	return p->p_filesz + (more ? more : rest < left ? rest : left);
}

bool elf_map_find(const struct elf_map *m, uint64_t address, uint64_t *ret_offset,
		  uint64_t *ret_room)
{
	for (size_t i = 0; i < 2 * m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i % m->segments_count];
		if (p->p_type != PT_LOAD || address < p->p_vaddr)
			continue;
		uint64_t at = address - p->p_vaddr;
		if (at >= (i < m->segments_count ? p->p_filesz : loaded_size(m, p)))
			continue;
		*ret_offset = p->p_offset + at;
		*ret_room = loaded_size(m, p) - at;
		return true;
	}

	return false;
}

int elf_map_need(const struct elf_map *m, uint64_t address, uint64_t size, const char *what,
		 uint64_t *ret_offset, struct err *e)
{
	uint64_t offset, room;

	if (!elf_map_find(m, address, &offset, &room))
		return elf_map_bad(m, m->dyn_offset, e,
				   "address 0x%llx of the %s is in no segment, used",
				   (unsigned long long)address, what);
	if (size > room)
		return elf_map_bad(m, offset, e, "the %s of %llu bytes leaves its segment", what,
				   (unsigned long long)size);
	*ret_offset = offset;
	return 0;
}

bool elf_map_dyn(const struct elf_map *m, int64_t tag, uint64_t *ret)
{
	for (size_t i = m->dyn_count; i-- > 0;) {
		if (m->dyn[i].d_tag == tag) {
			*ret = m->dyn[i].d_un.d_val;
			return true;
		}
	}

	return false;
}

const struct elf_table ELF_RELA = {DT_RELA, DT_RELASZ, "relocation table"};
const struct elf_table ELF_JMPREL = {DT_JMPREL, DT_PLTRELSZ, "relocation table"};
const struct elf_table ELF_RELR = {DT_RELR, DT_RELRSZ, "table of relative relocations"};

int elf_map_table(const struct elf_map *m, const struct elf_table *t, struct elf_range *ret,
		  struct err *e)
{
	uint64_t address;

	*ret = (struct elf_range){0};
	if (!elf_map_dyn(m, t->tag, &address) || !elf_map_dyn(m, t->size_tag, &ret->size))
		return 0;
	return ret->size ? elf_map_need(m, address, ret->size, t->what, &ret->offset, e) : 0;
}

int elf_map_string(const struct elf_map *m, uint64_t index, uint64_t where, const char **ret,
		   struct err *e)
{
	if (index >= m->strings_size)
		return elf_map_bad(
			m, where, e,
			"string index 0x%llx outside of the string table of %llu bytes, used",
			(unsigned long long)index, (unsigned long long)m->strings_size);
	const char *s = (const char *)m->data + m->strings + index;
	if (!memchr(s, '\0', m->strings_size - index))
		return elf_map_bad(m, m->strings + index, e, "string without an end");
	*ret = s;
	return 0;
}

static int read_header(struct elf_map *m, struct err *e)
{
	if (m->size < sizeof(Elf64_Ehdr))
		return elf_map_bad(m, m->size, e, "the ELF header ends early");
	if (memcmp(m->data, ELFMAG, SELFMAG) != 0)
		return elf_map_bad(m, 0, e, "no ELF magic");
	if (m->data[EI_CLASS] != ELFCLASS64)
		return elf_map_bad(m, EI_CLASS, e, "not a 64-bit ELF file (class %u)",
				   m->data[EI_CLASS]);
	if (m->data[EI_DATA] != ELFDATA2LSB)
		return elf_map_bad(m, EI_DATA, e, "not a little-endian ELF file (data encoding %u)",
				   m->data[EI_DATA]);
	elf_version(EV_CURRENT);
	/* libelf wants a writable pointer, and only reads through it unless asked to write. */
	m->elf = elf_memory((char *)(uintptr_t)m->data, m->size);
	if (!m->elf || !gelf_getehdr(m->elf, &m->header))
		return elf_map_bad(m, 0, e, "malformed ELF header (%s)", elf_errmsg(-1));
	return 0;
}

static int read_segments(struct elf_map *m, struct err *e)
{
	const GElf_Ehdr *h = &m->header;
	size_t n = 0;

	if (h->e_phnum == 0)
		return 0;
	if (h->e_phentsize != sizeof(Elf64_Phdr))
		return elf_map_bad(m, offsetof(Elf64_Ehdr, e_phentsize), e,
				   "program headers of %u bytes", h->e_phentsize);
	if (elf_getphdrnum(m->elf, &n) != 0)
		return elf_map_bad(m, h->e_phoff, e, "malformed program headers (%s)",
				   elf_errmsg(-1));
	if (h->e_phoff > m->size || n > (m->size - h->e_phoff) / sizeof(Elf64_Phdr) ||
	    (h->e_phnum != PN_XNUM && n != h->e_phnum))
		return elf_map_bad(m, h->e_phoff, e, "%u program headers leave the file",
				   h->e_phnum);
	m->segments = arena_array(&m->arena, n, sizeof(m->segments[0]));
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr *p = &m->segments[i];
		if (!gelf_getphdr(m->elf, (int)i, p))
			return elf_map_bad(m, h->e_phoff, e, "malformed program header %zu (%s)", i,
					   elf_errmsg(-1));
		if ((p->p_type == PT_LOAD || p->p_type == PT_DYNAMIC) &&
		    (p->p_filesz > m->size || p->p_offset > m->size - p->p_filesz))
			return elf_map_bad(m, p->p_offset, e,
					   "segment %zu of %llu bytes leaves the file", i,
					   (unsigned long long)p->p_filesz);
	}

	m->segments_count = n;
	return 0;
}

static int read_dynamic(struct elf_map *m, struct err *e)
{
	const GElf_Phdr *p = NULL;

	for (size_t i = 0; i < m->segments_count && !p; i++) {
		if (m->segments[i].p_type == PT_DYNAMIC)
			p = &m->segments[i];
	}

	if (!p)
		return 0;
	uint64_t offset, room;
	/* The loader goes by the address, tools by the offset: both must see the same. */
	if (!elf_map_find(m, p->p_vaddr, &offset, &room) || offset != p->p_offset ||
	    room < p->p_filesz)
		return elf_map_bad(
			m, p->p_offset, e,
			"the dynamic segment's address 0x%llx is not what is loaded from the file",
			(unsigned long long)p->p_vaddr);
	size_t n = p->p_filesz / sizeof(Elf64_Dyn), used = 0;
	m->dyn = arena_array(&m->arena, n, sizeof(m->dyn[0]));
	memcpy(m->dyn, m->data + p->p_offset, n * sizeof(m->dyn[0]));
	while (used < n && m->dyn[used].d_tag != DT_NULL)
		used++;
	if (used == n)
		return elf_map_bad(m, p->p_offset, e, "dynamic entries without DT_NULL");
	m->dyn_count = used;
	m->dyn_room = n;
	m->dyn_offset = p->p_offset;
	uint64_t address, size;
	if (!elf_map_dyn(m, DT_STRTAB, &address))
		return elf_map_bad(m, m->dyn_offset, e, "no DT_STRTAB among the dynamic entries");
	if (!elf_map_dyn(m, DT_STRSZ, &size))
		return elf_map_bad(m, m->dyn_offset, e, "no DT_STRSZ among the dynamic entries");
	if (elf_map_need(m, address, size, "string table", &m->strings, e) < 0)
		return -1;
	m->strings_size = size;
	return 0;
}

static int read_all(struct elf_map *m, struct err *e)
{
	return read_header(m, e) < 0 || read_segments(m, e) < 0 || read_dynamic(m, e) < 0 ? -1 : 0;
}

int elf_map_memory(const struct file_bytes *in, struct elf_map *ret, struct err *e)
{
	*ret = (struct elf_map){.name = in->name, .data = in->data, .size = in->size};
	return read_all(ret, e);
}

int elf_map_open(const char *path, struct elf_map *ret, struct err *e)
{
	*ret = (struct elf_map){.name = path};
	if (fs_map(path, &ret->file, e) < 0)
		return -1;
	ret->data = ret->file.data;
	ret->size = ret->file.size;
	return read_all(ret, e);
}

void elf_map_close(struct elf_map *m)
{
	if (m->elf)
		elf_end(m->elf);
	fs_unmap(&m->file);
	arena_release(&m->arena);
	*m = (struct elf_map){0};
}

/* The loader's work before any code of a file runs: it maps the segments, trusts the tables that
 * the dynamic entries name, and applies the relocations. */

enum { PAGE_SMALLEST = 0x1000 };

static int check_header(const struct elf_map *m, struct err *e)
{
	const GElf_Ehdr *h = &m->header;
	unsigned abi = m->data[EI_OSABI];

	if (abi != ELFOSABI_SYSV && abi != ELFOSABI_GNU)
		return elf_map_bad(m, EI_OSABI, e,
				   "it is for the operating system %u, not for Linux,", abi);
	/* glibc's elf/dl-load.c wants these to be 0 and 1, too. */
	for (unsigned i = abi == ELFOSABI_GNU ? EI_PAD : EI_ABIVERSION; i < EI_NIDENT; i++)
		if (m->data[i])
			return elf_map_bad(m, i, e, "a byte of its identification is %u, not 0,",
					   m->data[i]);
	if (h->e_version != EV_CURRENT)
		return elf_map_bad(m, offsetof(Elf64_Ehdr, e_version), e, "it has the version %u",
				   (unsigned)h->e_version);
	if (h->e_machine == EM_NONE)
		return elf_map_bad(m, offsetof(Elf64_Ehdr, e_machine), e, "it is for no machine");
	/* The loader needs no sections, which are last:
	 * without them the file is not what the linker wrote. */
	if (h->e_shoff &&
	    (h->e_shoff > m->size || h->e_shnum > (m->size - h->e_shoff) / sizeof(Elf64_Shdr)))
		return elf_map_bad(m, h->e_shoff, e,
				   "it is truncated: it has %zu bytes, and its section headers are",
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
			return elf_map_bad(m, p->p_offset, e,
					   "segment %zu is aligned to 0x%llx, not a power of two,",
					   i, (unsigned long long)align);
		/* No loader maps less than a page, whatever the file says. */
		uint64_t unit = align < PAGE_SMALLEST ? PAGE_SMALLEST : align;
		if ((p->p_offset ^ p->p_vaddr) & (unit - 1))
			return elf_map_bad(m, p->p_offset, e,
					   "segment %zu: address 0x%llx does not fit the alignment "
					   "0x%llx of data",
					   i, (unsigned long long)p->p_vaddr,
					   (unsigned long long)unit);
		if (p->p_filesz > p->p_memsz || p->p_memsz > UINT64_MAX - p->p_vaddr)
			return elf_map_bad(m, p->p_offset, e,
					   "segment %zu is larger in the file than in memory", i);
		if (any && p->p_vaddr < end)
			return elf_map_bad(
				m, p->p_offset, e,
				"segment %zu overlaps the one before it or is out of order", i);
		end = p->p_vaddr + p->p_memsz;
		any = true;
	}

	return 0;
}

/* Whether `size` bytes in memory are in a segment that has one of the flags. */
static bool is_mapped(const struct elf_map *m, uint64_t address, uint64_t size, unsigned flags)
{
	for (size_t i = 0; i < m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i];
		if (p->p_type == PT_LOAD && (p->p_flags & flags) &&
		    address - p->p_vaddr < p->p_memsz &&
		    size <= p->p_memsz - (address - p->p_vaddr))
			return true;
	}

	return false;
}

static int bad_entry(const struct elf_map *m, const char *tag, uint64_t value, struct err *e,
		     const char *what)
{
	return elf_map_bad(m, m->dyn_offset, e, "%s 0x%llx %s in the dynamic entries", tag,
			   (unsigned long long)value, what);
}

struct loadetable { /* dynamic entries that belong together */
	const char *name;
	int64_t address, size, entry;
	uint64_t unit; /* what `entry` must say, and `size` be a multiple of */
	bool filled;   /* its bytes are in the file */
};

static const struct loadetable tables[] = {
	{"DT_RELA", DT_RELA, DT_RELASZ, DT_RELAENT, sizeof(Elf64_Rela), true},
	{"DT_JMPREL", DT_JMPREL, DT_PLTRELSZ, DT_NULL, sizeof(Elf64_Rela), true},
	{"DT_RELR", DT_RELR, DT_RELRSZ, DT_RELRENT, sizeof(Elf64_Xword), true},
	{"DT_PREINIT_ARRAY", DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, DT_NULL, sizeof(Elf64_Addr),
	 false},
	{"DT_INIT_ARRAY", DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_NULL, sizeof(Elf64_Addr), false},
	{"DT_FINI_ARRAY", DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_NULL, sizeof(Elf64_Addr), false},
};

static int check_table(const struct elf_map *m, const struct loadetable *t, struct elf_range *ret,
		       struct err *e)
{
	uint64_t address, size, entry;

	*ret = (struct elf_range){0};
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
	if (t->filled && elf_map_need(m, address, size, t->name, &ret->offset, e) < 0)
		return -1;
	if (!is_mapped(m, address, size, PF_R | PF_W | PF_X))
		return bad_entry(m, t->name, address, e, "leaves the segments");
	ret->size = size;
	return 0;
}

static bool is_arm_type(uint32_t type)
{
	const uint32_t old_none = 256; /* NONE of old tools */

	if (type >= R_AARCH64_COPY && type <= R_AARCH64_IRELATIVE)
		return true;
	return type == R_AARCH64_NONE || type == old_none || type == R_AARCH64_ABS64;
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
		return is_arm_type(type);
	bool found = machine != EM_X86_64;
	for (size_t i = 0; i < ARRAY_LEN(intel) && !found; i++)
		found = intel[i] == type;
	return found;
}

/* 0: not known. */
static uint32_t relative_type(unsigned machine)
{
	switch (machine) {
	case EM_X86_64:
		return R_X86_64_RELATIVE;
	case EM_AARCH64:
		return R_AARCH64_RELATIVE;
	case EM_PPC64:
		return R_PPC64_RELATIVE;
	case EM_RISCV:
		return R_RISCV_RELATIVE;
	default:
		return 0;
	}
}

/* `relative`: the first ones that DT_RELACOUNT says
 * are relative, which the loader does not look at. */
/* The first `relative` of them are said to be relative. */
static int check_relocations(const struct elf_map *m, const struct elf_range *table,
			     uint64_t relative, struct err *e)
{
	uint64_t flags, text, symbols, count;
	uint32_t own = relative_type(m->header.e_machine);
	bool text_too = elf_map_dyn(m, DT_TEXTREL, &text) ||
			(elf_map_dyn(m, DT_FLAGS, &flags) && (flags & DF_TEXTREL));

	if (elf_map_symbols(m, &symbols, &count, e) < 0)
		return -1;
	if (relative > table->size / sizeof(Elf64_Rela))
		return bad_entry(m, "DT_RELACOUNT", relative, e, "is more than there are");
	for (uint64_t i = 0; i < table->size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela r;
		uint64_t at = table->offset + i * sizeof(r);
		memcpy(&r, m->data + at, sizeof(r));
		uint32_t type = ELF64_R_TYPE(r.r_info);
		if (!is_dynamic_type(m->header.e_machine, type))
			return elf_map_bad(
				m, at, e,
				"a relocation of the type %u, which the loader does not know,",
				type);
		if (i < relative && own && type != own)
			return elf_map_bad(
				m, at, e,
				"a relocation that is not relative, as DT_RELACOUNT says,");
		if (ELF64_R_SYM(r.r_info) && ELF64_R_SYM(r.r_info) >= count)
			return elf_map_bad(m, at, e, "a relocation with symbol %llu of %llu",
					   (unsigned long long)ELF64_R_SYM(r.r_info),
					   (unsigned long long)count);
		if (type && !is_mapped(m, r.r_offset, 1, text_too ? PF_R | PF_W | PF_X : PF_W))
			return elf_map_bad(
				m, at, e,
				"a relocation of 0x%llx, which is in no writable segment,",
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
	uint64_t value, relative = 0;
	struct elf_range range[ARRAY_LEN(tables)];

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		if (check_table(m, &tables[i], &range[i], e) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		if (elf_map_dyn(m, functions[i].tag, &value) && !is_mapped(m, value, 1, PF_X))
			return bad_entry(m, functions[i].name, value, e,
					 "is in no executable segment");
	if (elf_map_dyn(m, DT_PLTREL, &value) && value != DT_RELA)
		return bad_entry(m, "DT_PLTREL", value, e, "is not DT_RELA");
	if (range[1].size && elf_map_dyn(m, DT_PLTGOT, &value) &&
	    !is_mapped(m, value, 3 * sizeof(Elf64_Addr), PF_W))
		return bad_entry(m, "DT_PLTGOT", value, e, "is in no writable segment");
	if (elf_map_dyn(m, DT_FLAGS_1, &value) && (value & DF_1_NOOPEN))
		return bad_entry(m, "DT_FLAGS_1", value, e, "forbids dlopen (-z nodlopen)");
	(void)elf_map_dyn(m, DT_RELACOUNT, &relative);
	return check_relocations(m, &range[0], relative, e) < 0 ||
			       check_relocations(m, &range[1], 0, e) < 0
		       ? -1
		       : 0;
}

int elf_map_loadable(const struct elf_map *m, struct err *e)
{
	return check_header(m, e) < 0 || check_segments(m, e) < 0 ||
			       (m->dyn && check_dynamic(m, e) < 0)
		       ? -1
		       : 0;
}
