#include "core/elf/elf.h"

#include "core/elf/elf_map.h"

static int is_elf(const char *path, struct err *e)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char magic[SELFMAG];
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ENXIO))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return 0;
	ssize_t n = fs_read_at(fd, magic, sizeof(magic), 0);
	if (n < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	return n == (ssize_t)sizeof(magic) && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* Sections are for tools only: a table that cannot be read counts as none. */
static bool has_code_without_bytes(const void *data, size_t size)
{
	elf_version(EV_CURRENT);
	/* libelf wants a writable pointer, and only reads through it unless asked to write. */
	Elf *elf = elf_memory((char *)(uintptr_t)data, size);
	bool without = false, with = false;
	for (Elf_Scn *s = elf ? elf_nextscn(elf, NULL) : NULL; s; s = elf_nextscn(elf, s)) {
		GElf_Shdr h;
		if (!gelf_getshdr(s, &h) || !(h.sh_flags & SHF_EXECINSTR))
			continue;
		without = without || h.sh_type == SHT_NOBITS;
		with = with || h.sh_type == SHT_PROGBITS;
	}

	elf_end(elf);
	return without && !with;
}

enum elf_sort elf_sort(const void *data, size_t size, unsigned *ret_machine)
{
	enum { AMDGPU = 224, CUDA = 190 }; /* the latter was EM_CUDA before elf.h had it */
	Elf64_Ehdr h;

	if (size < sizeof(h) || memcmp(data, ELFMAG, SELFMAG) != 0)
		return ELF_NONE;
	memcpy(&h, data, sizeof(h)); /* these fields have equal offsets in 32-bit files */
	bool little = h.e_ident[EI_DATA] == ELFDATA2LSB;
	unsigned machine = little ? h.e_machine : (unsigned)__builtin_bswap16(h.e_machine);
	if (ret_machine)
		*ret_machine = machine;
	if (machine == AMDGPU || machine == CUDA)
		return ELF_GPU;
	if (has_code_without_bytes(data, size))
		return ELF_DEBUG;
	return little && h.e_ident[EI_CLASS] == ELFCLASS64 ? ELF_HOST : ELF_FOREIGN;
}

static int take_string(const struct elf_map *m, size_t i, struct arena *a, const char **ret,
		       struct err *e)
{
	const char *s;

	if (elf_map_string(m, m->dyn[i].d_un.d_val, m->dyn_offset + i * sizeof(Elf64_Dyn), &s, e) <
	    0)
		return -1;
	*ret = arena_strdup(a, s);
	return 0;
}

/* Where the text of a dynamic entry goes that a file has once; NULL for others. */
static const char **text_of(struct elf_info *info, int64_t tag)
{
	switch (tag) {
	case DT_SONAME:
		return &info->soname;
	case DT_RPATH:
		return &info->rpath;
	case DT_RUNPATH:
		return &info->runpath;
	default:
		return NULL;
	}
}

static int read_entries(const struct elf_map *m, struct arena *a, struct elf_info *info,
			struct err *e)
{
	for (size_t i = 0; i < m->dyn_count; i++) {
		const char *s;
		int64_t tag = m->dyn[i].d_tag;
		const char **to = tag == DT_NEEDED ? &s : text_of(info, tag);
		if (to && take_string(m, i, a, to, e) < 0)
			return -1;
		if (tag == DT_NEEDED)
			strlist_ref(&info->needed, a, s);
		if (tag == DT_TEXTREL || (tag == DT_FLAGS && (m->dyn[i].d_un.d_val & DF_TEXTREL)))
			info->textrel = true;
		info->relr = info->relr || tag == DT_RELR;
		info->pie = info->pie || (tag == DT_FLAGS_1 && (m->dyn[i].d_un.d_val & DF_1_PIE));
		info->program = info->program || info->pie;
	}

	return 0;
}

static int read_versions(struct elf_map *m, struct arena *a, struct elf_info *info, struct err *e)
{
	struct elf_need *needs, *defs;
	size_t count, defs_count;

	if (elf_map_needs(m, &needs, &count, e) < 0 ||
	    elf_map_definitions(m, &defs, &defs_count, e) < 0)
		return -1;
	for (size_t i = 0; i < defs_count; i++) {
		const char *version;
		if (elf_map_string(m, defs[i].name, defs[i].offset, &version, e) < 0)
			return -1;
		if (defs[i].index == 0) /* else one that it follows upon */
			strlist_add(&info->defined_versions, a, version);
	}

	info->versions = arena_array(a, count, sizeof(info->versions[0]));
	for (size_t i = 0; i < count; i++) {
		const char *file, *version;
		if (elf_map_string(m, needs[i].file, needs[i].offset, &file, e) < 0 ||
		    elf_map_string(m, needs[i].name, needs[i].offset, &version, e) < 0)
			return -1;
		/* Consecutive entries are mostly of one library. */
		const char *last = i ? info->versions[i - 1].file : "";
		info->versions[i].file = strcmp(last, file) == 0 ? last : arena_strdup(a, file);
		info->versions[i].version = arena_strdup(a, version);
		info->versions[i].weak = needs[i].weak;
	}

	info->versions_count = count;
	return 0;
}

/* The table of the versions that symbols want, and the names of these. */
struct symbol_versions {
	const struct elf_map *m;
	uint64_t table; /* file offset; 0: none */
	struct elf_need *needs;
	size_t needs_count;
	const struct elf_info *info;
};

/* The version wanted of an undefined symbol, NULL if none;
 * `versions` is the file offset of the version table. */
static const char *wanted_version(const struct symbol_versions *v, uint64_t symbol)
{
	uint16_t index;

	if (!v->table)
		return NULL;
	memcpy(&index, v->m->data + v->table + symbol * sizeof(index), sizeof(index));
	for (size_t i = 0; i < v->needs_count; i++) {
		if (v->needs[i].index == (index & 0x7fffU))
			return v->info->versions[i].version;
	}

	return NULL;
}

static int read_symbols(struct elf_map *m, struct arena *a, struct elf_info *info, struct err *e)
{
	struct symbol_versions v = {.m = m, .info = info};
	uint64_t table, count, address;

	if (elf_map_symbols(m, &table, &count, e) < 0 ||
	    elf_map_needs(m, &v.needs, &v.needs_count, e) < 0)
		return -1;
	if (v.needs_count && elf_map_dyn(m, DT_VERSYM, &address) && count &&
	    elf_map_need(m, address, count * sizeof(uint16_t), "symbol version table", &v.table,
			 e) < 0)
		return -1;
	for (uint64_t i = 1; i < count; i++) {
		Elf64_Sym s = elf_map_symbol(m, table, i);
		unsigned bind = ELF64_ST_BIND(s.st_info);
		const char *name;
		if (bind == STB_LOCAL || (s.st_shndx == SHN_UNDEF && bind == STB_WEAK))
			continue;
		if (elf_map_string(m, s.st_name, table + i * sizeof(s), &name, e) < 0)
			return -1;
		if (*name == '\0')
			continue;
		const char *version = s.st_shndx == SHN_UNDEF ? wanted_version(&v, i) : NULL;
		if (s.st_shndx != SHN_UNDEF)
			strlist_add(&info->defined, a, name);
		else if (version)
			strlist_addf(&info->undefined, a, "%s@%s", name, version);
		else
			strlist_add(&info->undefined, a, name);
	}

	return 0;
}

/* Sections are for tools only: a table that cannot be read counts as none. */
static bool is_stripped(const struct elf_map *m)
{
	for (Elf_Scn *s = elf_nextscn(m->elf, NULL); s; s = elf_nextscn(m->elf, s)) {
		GElf_Shdr h;
		if (gelf_getshdr(s, &h) && h.sh_type == SHT_SYMTAB)
			return false;
	}

	return true;
}

static unsigned highest_level(uint32_t bits)
{
	if (bits & 8U)
		return 4;
	if (bits & 4U)
		return 3;
	return bits & 2U ? 2 : 0;
}

/* The highest level of GNU_PROPERTY_X86_ISA_1_NEEDED (x86-64
 * psABI, "Program Property"), 0 if none above the first. */
static unsigned needed_level(const uint8_t *at, size_t size)
{
	const uint32_t isa_1_needed = 0xc0008002;
	uint32_t head[2], bits, level = 0; /* head: type, size */

	for (size_t step; size >= sizeof(head); at += step, size -= step) {
		memcpy(head, at, sizeof(head));
		if (head[1] > size - sizeof(head))
			break;
		if (head[0] == isa_1_needed && head[1] == sizeof(bits)) {
			memcpy(&bits, at + sizeof(head), sizeof(bits));
			level = highest_level(bits);
		}

		step = sizeof(head) + (head[1] + 7ULL) / 8 * 8;
		if (step > size)
			break;
	}

	return level;
}

static void read_notes(const struct elf_map *m, const GElf_Phdr *p, struct elf_info *info)
{
	enum { PROPERTY_TYPE_0 = 5 };
	Elf_Data *d = elf_getdata_rawchunk(m->elf, (int64_t)p->p_offset, p->p_filesz,
					   p->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	GElf_Nhdr h;
	size_t name, desc;

	for (size_t at = 0; d && (at = gelf_getnote(d, at, &h, &name, &desc)) > 0;)
		if (h.n_type == PROPERTY_TYPE_0 && h.n_namesz == sizeof("GNU") &&
		    memcmp((char *)d->d_buf + name, "GNU", sizeof("GNU")) == 0)
			info->level = needed_level((uint8_t *)d->d_buf + desc, h.n_descsz);
}

int elf_map_info(struct elf_map *m, struct arena *a, struct elf_info *ret, struct err *e)
{
	struct elf_info info = {.machine = m->header.e_machine,
				.type = m->header.e_type,
				.soname = "",
				.page = UINT64_MAX};
	struct err why = {0};

	info.dynamic = m->dyn != NULL;
	info.program = info.type == ET_EXEC;
	info.stripped = is_stripped(m);
	/* glibc, sysdeps/x86_64/stackinfo.h; on AArch64 and others the default is no. */
	info.exec_stack = info.machine == EM_X86_64;
	for (size_t i = 0; i < m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i];
		if (p->p_type == PT_LOAD && p->p_align < info.page)
			info.page = p->p_align;
		info.program = info.program || p->p_type == PT_INTERP;
		if (p->p_type == PT_NOTE && info.machine == EM_X86_64)
			read_notes(m, p, &info);
		if (p->p_type != PT_GNU_STACK)
			continue;
		info.exec_stack = (p->p_flags & PF_X) != 0;
		info.stack_told = true;
	}

	if (elf_map_loadable(m, &why) < 0)
		info.unloadable = arena_strdup(a, why.msg);
	if (info.dynamic && (read_entries(m, a, &info, e) < 0 || read_versions(m, a, &info, e) < 0))
		return -1;
	*ret = info;
	return 0;
}

int elf_map_all(struct elf_map *m, struct arena *a, struct elf_info *ret, struct err *e)
{
	struct elf_info info;

	if (elf_map_info(m, a, &info, e) < 0)
		return -1;
	if (info.dynamic && read_symbols(m, a, &info, e) < 0)
		return -1;
	*ret = info;
	return 0;
}

int elf_read(const char *path, struct arena *a, struct elf_info *ret, struct err *e)
{
	AUTO_ELF_MAP struct elf_map m;
	return elf_map_open(path, &m, e) < 0 ? -1 : elf_map_info(&m, a, ret, e);
}

int elf_read_all(const char *path, struct arena *a, struct elf_info *ret, struct err *e)
{
	AUTO_ELF_MAP struct elf_map m;
	return elf_map_open(path, &m, e) < 0 ? -1 : elf_map_all(&m, a, ret, e);
}

int elf_try(const char *path, struct arena *a, struct elf_info *ret, struct err *e)
{
	int rc = is_elf(path, e);
	return rc > 0 && elf_read(path, a, ret, e) < 0 ? -1 : rc;
}

int elf_try_all(const char *path, struct arena *a, struct elf_info *ret, struct err *e)
{
	int rc = is_elf(path, e);
	return rc > 0 && elf_read_all(path, a, ret, e) < 0 ? -1 : rc;
}
