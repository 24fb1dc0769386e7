#include "core/elf/elf_map.h"

int elf_map_bad(const struct elf_map *m, uint64_t offset, struct err *e, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_INTEGRITY, "'%s': %s at offset 0x%llx", m->name, text, (unsigned long long)offset);
}

/* Bytes from the file at the segment's address. Whole pages are mapped, and the rest of the last is cleared for a .bss
 * alone: patchelf puts what is behind p_filesz to use. What follows at once, in memory and in the file, is read on. */
static uint64_t loaded_size(const struct elf_map *m, const GElf_Phdr *p)
{
	uint64_t rest = -(p->p_vaddr + p->p_filesz) & 0xfff, left = m->size - p->p_offset - p->p_filesz, more = 0;
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

bool elf_map_find(const struct elf_map *m, uint64_t address, uint64_t *ret_offset, uint64_t *ret_room)
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

int elf_map_need(const struct elf_map *m, uint64_t address, uint64_t size, const char *what, uint64_t *ret_offset,
		 struct err *e)
{
	uint64_t offset, room;
	if (!elf_map_find(m, address, &offset, &room))
		return elf_map_bad(m, m->dyn_offset, e, "address 0x%llx of the %s is in no segment, used",
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

int elf_map_string(const struct elf_map *m, uint64_t index, uint64_t where, const char **ret, struct err *e)
{
	if (index >= m->strings_size)
		return elf_map_bad(m, where, e, "string index 0x%llx outside of the string table of %llu bytes, used",
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
		return elf_map_bad(m, EI_CLASS, e, "not a 64-bit ELF file (class %u)", m->data[EI_CLASS]);
	if (m->data[EI_DATA] != ELFDATA2LSB)
		return elf_map_bad(m, EI_DATA, e, "not a little-endian ELF file (data encoding %u)", m->data[EI_DATA]);
	elf_version(EV_CURRENT);
	/* libelf takes a writable pointer, and only reads through it unless asked to write. */
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
		return elf_map_bad(m, offsetof(Elf64_Ehdr, e_phentsize), e, "program headers of %u bytes",
				   h->e_phentsize);
	if (elf_getphdrnum(m->elf, &n) != 0)
		return elf_map_bad(m, h->e_phoff, e, "malformed program headers (%s)", elf_errmsg(-1));
	if (h->e_phoff > m->size || n > (m->size - h->e_phoff) / sizeof(Elf64_Phdr) ||
	    (h->e_phnum != PN_XNUM && n != h->e_phnum))
		return elf_map_bad(m, h->e_phoff, e, "%u program headers leave the file", h->e_phnum);
	m->segments = arena_array(&m->arena, n, sizeof(m->segments[0]));
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr *p = &m->segments[i];
		if (!gelf_getphdr(m->elf, (int)i, p))
			return elf_map_bad(m, h->e_phoff, e, "malformed program header %zu (%s)", i, elf_errmsg(-1));
		if ((p->p_type == PT_LOAD || p->p_type == PT_DYNAMIC) &&
		    (p->p_filesz > m->size || p->p_offset > m->size - p->p_filesz))
			return elf_map_bad(m, p->p_offset, e, "segment %zu of %llu bytes leaves the file", i,
					   (unsigned long long)p->p_filesz);
	}
	m->segments_count = n;
	return 0;
}

static int read_strings(struct elf_map *m, struct err *e)
{
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
	if (!elf_map_find(m, p->p_vaddr, &offset, &room) || offset != p->p_offset || room < p->p_filesz)
		return elf_map_bad(m, p->p_offset, e,
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
	return read_strings(m, e);
}

static int read_all(struct elf_map *m, struct err *e)
{
	return read_header(m, e) < 0 || read_segments(m, e) < 0 || read_dynamic(m, e) < 0 ? -1 : 0;
}

int elf_map_memory(const void *data, size_t size, const char *name, struct elf_map *ret, struct err *e)
{
	*ret = (struct elf_map){.name = name, .data = data, .size = size};
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
