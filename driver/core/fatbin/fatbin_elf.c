#include <elf.h>

#include "core/fatbin/fatbin_parts.h"

#define CUBIN_ABI_13 8u /* EI_ABIVERSION of nvcc 13: the target moved to the second byte of the flags */

bool fatbin_is_elf(const struct fatbin_file *f, uint64_t at, uint64_t end)
{
	return end - at >= sizeof(Elf64_Ehdr) && memcmp(f->data + at, ELFMAG, SELFMAG) == 0 &&
	       f->data[at + EI_CLASS] == ELFCLASS64 && f->data[at + EI_DATA] == ELFDATA2LSB;
}

void fatbin_cubin_target(uint8_t abi, uint32_t flags, char ret[16])
{
	unsigned sm = abi >= CUBIN_ABI_13 ? flags >> 8 & 0xff : flags & 0xff;
	const char *suffix = abi < CUBIN_ABI_13 && (flags & 0x800) ? "a" : "";
	ret[0] = '\0';
	if (sm)
		snprintf(ret, 16, "%u%s", sm, suffix);
}

/* The section headers of an ELF file at `at`; their number is 0 for a file that has none. */
static int find_sections(struct fatbin_file *f, uint64_t at, uint64_t end, const Elf64_Ehdr *h, Elf64_Shdr *names,
			 uint64_t *ret_count, struct err *e)
{
	uint64_t room = end - at, count = h->e_shnum, index = h->e_shstrndx;
	Elf64_Shdr first;
	*ret_count = 0;
	if (h->e_shoff == 0)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff > room || room - h->e_shoff < sizeof(Elf64_Shdr))
		return fatbin_bad(f, at + offsetof(Elf64_Ehdr, e_shoff), e,
				  "section headers that lie outside of the file");
	memcpy(&first, f->data + at + h->e_shoff, sizeof(first));
	if (count == 0) /* more than fit into the ELF header */
		count = first.sh_size;
	if (index == SHN_XINDEX)
		index = first.sh_link;
	if (count > (room - h->e_shoff) / sizeof(Elf64_Shdr))
		return fatbin_bad(f, at + h->e_shoff, e, "%llu section headers do not fit into the file",
				  (unsigned long long)count);
	if (index == SHN_UNDEF || count == 0)
		return 0;
	if (index >= count)
		return fatbin_bad(f, at + offsetof(Elf64_Ehdr, e_shstrndx), e,
				  "names of sections in section %llu of %llu", (unsigned long long)index,
				  (unsigned long long)count);
	memcpy(names, f->data + at + h->e_shoff + index * sizeof(*names), sizeof(*names));
	if (names->sh_offset > room || names->sh_size > room - names->sh_offset)
		return fatbin_bad(f, at + h->e_shoff + index * sizeof(*names), e,
				  "the names of sections leave the file");
	*ret_count = count;
	return 0;
}

static bool is_named(const struct fatbin_file *f, uint64_t at, const Elf64_Shdr *names, const Elf64_Shdr *s,
		     const char *name)
{
	size_t n = strlen(name) + 1;
	return s->sh_name < names->sh_size && names->sh_size - s->sh_name >= n &&
	       memcmp(f->data + at + names->sh_offset + s->sh_name, name, n) == 0;
}

/* Attribute 9 of .nv.compat: 1 in a cubin for exactly one chip (nvcc 13.0, sm_90 and sm_90a compared). Attributes are
 * of four bytes, and of so many more as they say where the first is 4. */
static bool is_arch_specific(const struct fatbin_file *f, uint64_t from, uint64_t size)
{
	for (uint64_t i = 0; size - i >= 4;) {
		const uint8_t *p = f->data + from + i;
		uint64_t more = p[0] == 4 ? fatbin_number(f, from + i + 2, 2) : 0;
		if (p[1] == 9 && p[0] != 4)
			return p[2] == 1;
		if (more > size - i - 4)
			return false;
		i += 4 + more;
	}
	return false;
}

static int bare_cubin(struct fatbin_file *f, uint64_t at, uint64_t end, const Elf64_Ehdr *h, struct err *e)
{
	struct fatbin_entry entry = {.kind = FATBIN_CUBIN,
				     .number = FATBIN_CUBIN,
				     .relocatable = h->e_type == ET_REL,
				     .offset = at,
				     .size = end - at,
				     .raw_size = end - at,
				     .member = f->member,
				     .container = f->containers};
	Elf64_Shdr names = {0};
	uint64_t count;
	if (find_sections(f, at, end, h, &names, &count, e) < 0)
		return -1;
	fatbin_cubin_target(h->e_ident[EI_ABIVERSION], h->e_flags, entry.target);
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Shdr s;
		memcpy(&s, f->data + at + h->e_shoff + i * sizeof(s), sizeof(s));
		size_t n = strlen(entry.target);
		if (is_named(f, at, &names, &s, ".nv.compat") && s.sh_offset <= end - at &&
		    s.sh_size <= end - at - s.sh_offset && n > 0 && n < 8 && entry.target[n - 1] <= '9' &&
		    is_arch_specific(f, at + s.sh_offset, s.sh_size))
			memcpy(entry.target + n, "a", 2);
	}
	f->containers++;
	return f->fn(&entry, f->user, e);
}

static int read_section(struct fatbin_file *f, uint64_t at, uint64_t end, const Elf64_Shdr *names, const Elf64_Shdr *s,
			struct err *e)
{
	bool linked = is_named(f, at, names, s, ".nv_fatbin"),
	     relocatable = is_named(f, at, names, s, "__nv_relfatbin");
	bool wrappers = is_named(f, at, names, s, ".nvFatBinSegment");
	if ((!linked && !relocatable && !wrappers) || s->sh_type == SHT_NOBITS)
		return 0;
	if (s->sh_offset > end - at || s->sh_size > end - at - s->sh_offset)
		return fatbin_bad(f, at, e, "the section of GPU code leaves the file");
	uint64_t from = at + s->sh_offset;
	return wrappers ? fatbin_wrappers(f, from, from + s->sh_size, e)
			: fatbin_containers(f, from, from + s->sh_size, relocatable, e);
}

int fatbin_search(struct fatbin_file *f, uint64_t at, uint64_t end, struct err *e)
{
	enum { ALIGNMENT = 8, HEADER = 16 };
	static const uint8_t start[] = {0x50, 0xed, 0x55, 0xba, 1, 0, HEADER, 0}; /* magic, version, header's size */
	const uint8_t *hit;
	for (uint64_t p = at; (hit = memmem(f->data + p, end - p, start, sizeof(start)));) {
		p = (uint64_t)(hit - f->data);
		uint64_t size = end - p >= HEADER ? fatbin_number(f, p + sizeof(start), 8) : UINT64_MAX;
		if ((p - at) % ALIGNMENT || size > end - p - HEADER) {
			p++;
			continue;
		}
		int r = fatbin_containers(f, p, p + HEADER + size, false, e);
		if (r != 0)
			return r;
		p += HEADER + size;
	}
	return 0;
}

int fatbin_elf(struct fatbin_file *f, uint64_t at, uint64_t end, struct err *e)
{
	Elf64_Ehdr h;
	Elf64_Shdr names = {0};
	uint64_t count;
	memcpy(&h, f->data + at, sizeof(h));
	if (h.e_machine == EM_CUDA)
		return bare_cubin(f, at, end, &h, e);
	if (find_sections(f, at, end, &h, &names, &count, e) < 0)
		return -1;
	if (count == 0)
		/* A file without section headers (sstrip) runs all the same. */
		return fatbin_search(f, at, end, e);
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Shdr s;
		memcpy(&s, f->data + at + h.e_shoff + i * sizeof(s), sizeof(s));
		int r = read_section(f, at, end, &names, &s, e);
		if (r != 0)
			return r;
	}
	return 0;
}
