#include <ar.h>
#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include "core/fatbin/fatbin_parts.h"

/* EI_ABIVERSION of nvcc 13: the target moved to the second byte of the flags */
#define CUBIN_ABI_13 8u

static bool fatbin_is_elf(const struct fatbin_file *f, uint64_t at, uint64_t end)
{
	return end - at >= sizeof(Elf64_Ehdr) && memcmp(f->data + at, ELFMAG, SELFMAG) == 0 &&
	       f->data[at + EI_CLASS] == ELFCLASS64 && f->data[at + EI_DATA] == ELFDATA2LSB;
}

/* Reads the target in a cubin's ELF header, "" if it has none ("90" also for 90a if the flags are
 * ambiguous). */
static void fatbin_cubin_target(uint8_t abi, uint32_t flags, char ret[16])
{
	unsigned sm = abi >= CUBIN_ABI_13 ? flags >> 8 & 0xff : flags & 0xff;
	const char *suffix = abi < CUBIN_ABI_13 && (flags & 0x800) ? "a" : "";

	ret[0] = '\0';
	if (sm)
		snprintf(ret, 16, "%u%s", sm, suffix);
}

/* The section headers of an ELF file at `at`; their number is 0 for a file that has none. */
/* An ELF file in a range of the bytes. */
struct elf_part {
	uint64_t at, end;
	Elf64_Ehdr h;
	Elf64_Shdr names; /* the section of their names */
	uint64_t count;   /* sections */
};

/* Sets names and count; no sections without a table of them, or without names. */
static int find_sections(struct fatbin_file *f, struct elf_part *x)
{
	const Elf64_Ehdr *h = &x->h;
	Elf64_Shdr *names = &x->names;
	const uint64_t at = x->at;
	uint64_t room = x->end - at, count = h->e_shnum, index = h->e_shstrndx;
	Elf64_Shdr first;

	x->count = 0;
	if (h->e_shoff == 0)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff > room ||
	    room - h->e_shoff < sizeof(Elf64_Shdr))
		return fatbin_bad(f, at + offsetof(Elf64_Ehdr, e_shoff),
				  "section headers that lie outside of the file");
	memcpy(&first, f->data + at + h->e_shoff, sizeof(first));
	if (count == 0) /* more than fit into the ELF header */
		count = first.sh_size;
	if (index == SHN_XINDEX)
		index = first.sh_link;
	if (count > (room - h->e_shoff) / sizeof(Elf64_Shdr))
		return fatbin_bad(f, at + h->e_shoff,
				  "%llu section headers do not fit into the file",
				  (unsigned long long)count);
	if (index == SHN_UNDEF || count == 0)
		return 0;
	if (index >= count)
		return fatbin_bad(f, at + offsetof(Elf64_Ehdr, e_shstrndx),
				  "names of sections in section %llu of %llu",
				  (unsigned long long)index, (unsigned long long)count);
	memcpy(names, f->data + at + h->e_shoff + index * sizeof(*names), sizeof(*names));
	if (names->sh_offset > room || names->sh_size > room - names->sh_offset)
		return fatbin_bad(f, at + h->e_shoff + index * sizeof(*names),
				  "the names of sections leave the file");
	x->count = count;
	return 0;
}

static bool is_named(const struct fatbin_file *f, const struct elf_part *x, const Elf64_Shdr *s,
		     const char *name)
{
	size_t n = strlen(name) + 1;
	return s->sh_name < x->names.sh_size && x->names.sh_size - s->sh_name >= n &&
	       memcmp(f->data + x->at + x->names.sh_offset + s->sh_name, name, n) == 0;
}

/* Attribute 9 of .nv.compat: 1 in a cubin for exactly one chip (nvcc 13.0, sm_90 and sm_90a
 * compared). Attributes are of four bytes, and of so many more as they say where the first is 4. */
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

static int bare_cubin(struct fatbin_file *f, struct elf_part *x)
{
	const Elf64_Ehdr *h = &x->h;
	const uint64_t at = x->at, end = x->end;
	struct fatbin_entry entry = {.kind = FATBIN_CUBIN,
				     .number = FATBIN_CUBIN,
				     .relocatable = h->e_type == ET_REL,
				     .offset = at,
				     .size = end - at,
				     .raw_size = end - at,
				     .member = f->member,
				     .container = f->b->count};
	if (find_sections(f, x) < 0)
		return -1;
	fatbin_cubin_target(h->e_ident[EI_ABIVERSION], h->e_flags, entry.target);
	for (uint64_t i = 0; i < x->count; i++) {
		Elf64_Shdr s;
		memcpy(&s, f->data + at + h->e_shoff + i * sizeof(s), sizeof(s));
		size_t n = strlen(entry.target);
		if (!is_named(f, x, &s, ".nv.compat"))
			continue;
		bool inside = s.sh_offset <= end - at && s.sh_size <= end - at - s.sh_offset;
		bool ends_in_digit = n > 0 && n < 8 && entry.target[n - 1] <= '9';
		if (inside && ends_in_digit && is_arch_specific(f, at + s.sh_offset, s.sh_size))
			memcpy(entry.target + n, "a", 2);
	}

	fatbin_add(f, &entry);
	fatbin_close(f,
		     &(struct fatbin_box){
			     .from = at, .body = at, .to = end, .first = f->b->entries_count - 1});
	return 0;
}

bool fatbin_cubin_at(struct fatbin_file *f, uint64_t at, uint64_t end)
{
	struct fatbin_entry entry = {
		.kind = FATBIN_CUBIN, .number = FATBIN_CUBIN, .member = f->member};
	Elf64_Ehdr h;

	if (!fatbin_is_elf(f, at, end))
		return false;
	memcpy(&h, f->data + at, sizeof(h));
	fatbin_cubin_target(h.e_ident[EI_ABIVERSION], h.e_flags, entry.target);
	if (h.e_machine != EM_CUDA || !*entry.target)
		return false;
	/* Its end is not known: the header is what counts. */
	entry.relocatable = h.e_type == ET_REL;
	entry.container = f->b->count;
	entry.from = entry.offset = at;
	entry.to = at + sizeof(h);
	entry.size = entry.raw_size = sizeof(h);
	fatbin_add(f, &entry);
	fatbin_close(f, &(struct fatbin_box){.from = at,
					     .body = at,
					     .to = entry.to,
					     .first = f->b->entries_count - 1});
	return true;
}

static int read_section(struct fatbin_file *f, const struct elf_part *x, const Elf64_Shdr *s)
{
	const uint64_t at = x->at, end = x->end;
	bool linked = is_named(f, x, s, ".nv_fatbin"),
	     relocatable = is_named(f, x, s, "__nv_relfatbin");
	bool wrappers = is_named(f, x, s, ".nvFatBinSegment");

	if ((!linked && !relocatable && !wrappers) || s->sh_type == SHT_NOBITS)
		return 0;
	if (s->sh_offset > end - at || s->sh_size > end - at - s->sh_offset)
		return fatbin_bad(f, at, "the section of GPU code leaves the file");
	uint64_t from = at + s->sh_offset;
	f->relocatable = relocatable;
	return wrappers ? fatbin_wrappers(f, from, from + s->sh_size)
			: fatbin_containers(f, from, from + s->sh_size);
}

int fatbin_search(struct fatbin_file *f, uint64_t at, uint64_t end)
{
	enum { ALIGNMENT = 8, HEADER = 16 };
	/* magic, version, header's size */
	static const uint8_t start[] = {0x50, 0xed, 0x55, 0xba, 1, 0, HEADER, 0};
	const uint8_t *hit;

	f->relocatable = false;
	for (uint64_t p = at; (hit = memmem(f->data + p, end - p, start, sizeof(start)));) {
		p = (uint64_t)(hit - f->data);
		uint64_t size =
			end - p >= HEADER ? fatbin_number(f, p + sizeof(start), 8) : UINT64_MAX;
		if ((p - at) % ALIGNMENT || size > end - p - HEADER) {
			p++;
			continue;
		}

		if (fatbin_containers(f, p, p + HEADER + size) < 0)
			return -1;
		p += HEADER + size;
	}

	return 0;
}

/* The sections of an ELF file in a range of the bytes, or the cubin that it is. */
static int fatbin_elf(struct fatbin_file *f, uint64_t at, uint64_t end)
{
	struct elf_part x = {.at = at, .end = end};

	memcpy(&x.h, f->data + at, sizeof(x.h));
	if (x.h.e_machine == EM_CUDA)
		return bare_cubin(f, &x);
	if (find_sections(f, &x) < 0)
		return -1;
	if (x.count == 0)
		/* A file without section headers (sstrip) runs all the same. */
		return fatbin_search(f, at, end);
	for (uint64_t i = 0; i < x.count; i++) {
		Elf64_Shdr s;
		memcpy(&s, f->data + at + x.h.e_shoff + i * sizeof(s), sizeof(s));
		if (read_section(f, &x, &s) < 0)
			return -1;
	}

	return 0;
}

/* A decimal number in a field padded with blanks. */
static bool field_number(const char *field, size_t len, uint64_t *ret)
{
	uint64_t n = 0;
	size_t i = 0;

	for (; i < len && field[i] >= '0' && field[i] <= '9'; i++)
		n = n * 10 + (uint64_t)(field[i] - '0');
	if (i == 0)
		return false;
	for (; i < len && field[i] == ' '; i++)
		;
	*ret = n;
	return i == len;
}

/* The member's name: in its header ("x.o/"), or in the archive's table of long names ("/123"). */
static void member_name(const struct fatbin_file *f, const struct ar_hdr *h, char *ret, size_t room)
{
	uint64_t at;
	const char *from = h->ar_name;
	size_t max = sizeof(h->ar_name);

	if (h->ar_name[0] == '/' && field_number(h->ar_name + 1, sizeof(h->ar_name) - 1, &at) &&
	    at < f->names_size) {
		from = (const char *)f->data + f->names + at;
		max = (size_t)(f->names_size - at);
	}

	size_t n = 0;
	while (n < max && n + 1 < room && from[n] > ' ' && from[n] != '/')
		n++;
	memcpy(ret, from, n);
	ret[n] = '\0';
}

static int read_archive(struct fatbin_file *f)
{
	for (uint64_t at = SARMAG; at < f->size;) {
		struct ar_hdr h;
		uint64_t size;
		char name[256];
		if (f->size - at < sizeof(h))
			return fatbin_bad(f, at, "the archive ends within a member's header");
		memcpy(&h, f->data + at, sizeof(h));
		if (memcmp(h.ar_fmag, ARFMAG, sizeof(h.ar_fmag)) != 0 ||
		    !field_number(h.ar_size, sizeof(h.ar_size), &size))
			return fatbin_bad(f, at, "not a member header where one must be");
		at += sizeof(h);
		if (size > f->size - at)
			return fatbin_bad(f, at, "an archive member of %llu bytes leaves the file",
					  (unsigned long long)size);
		if (memcmp(h.ar_name, "// ", 3) == 0) {
			f->names = at;
			f->names_size = size;
		} else if (fatbin_is_elf(f, at, at + size)) {
			member_name(f, &h, name, sizeof(name));
			f->member = arena_strdup(f->a, name);
			if (fatbin_elf(f, at, at + size) < 0)
				return -1;
			f->member = "";
		}

		at += size + (size & 1 && f->size - at > size ? 1 : 0);
	}

	return 0;
}

int fatbin_scan(const struct file_bytes *in, struct arena *a, struct fatbin_entries *ret,
		struct err *e)
{
	struct fatbin_boxes b = {0};
	struct fatbin_file f = {.data = in->data,
				.size = in->size,
				.name = in->name,
				.member = "",
				.b = &b,
				.a = a,
				.e = e};
	int rc = f.size >= SARMAG && memcmp(f.data, ARMAG, SARMAG) == 0 ? read_archive(&f)
		 : fatbin_is_elf(&f, 0, f.size)                         ? fatbin_elf(&f, 0, f.size)
		 : fatbin_is_container(&f, 0, f.size) ? fatbin_containers(&f, 0, f.size)
						      : 0;

	if (rc < 0)
		return -1;
	*ret = (struct fatbin_entries){b.entries, b.entries_count};
	return 0;
}

/* Enough for a cubin's ELF header and for PTX's .target,
 * which follows a comment of a few hundred bytes. */
#define HEAD_BYTES 4096u

static void free_stream(ZSTD_DStream **s)
{
	ZSTD_freeDStream(*s);
}

/* As many bytes as fit into `out`. */
/* The first `room` bytes of what is packed. */
struct unpacking {
	const uint8_t *from;
	size_t size;
	char *out;
	size_t room, made;
};

static bool unpack_zstd(struct unpacking *u)
{
	__attribute__((cleanup(free_stream))) ZSTD_DStream *s = ZSTD_createDStream();
	ZSTD_inBuffer in = {u->from, u->size, 0};
	ZSTD_outBuffer to = {u->out, u->room, 0};
	while (s && to.pos < to.size) {
		size_t before = in.pos + to.pos, left = ZSTD_decompressStream(s, &to, &in);
		if (ZSTD_isError(left))
			return false;
		if (left == 0)
			break;
		if (in.pos + to.pos == before) /* ends in the middle */
			return false;
	}

	u->made = to.pos;
	return s != NULL;
}

static bool unpack_lz4(struct unpacking *u)
{
	const int room = (int)u->room;
	int n = u->size <= LZ4_MAX_INPUT_SIZE
			? LZ4_decompress_safe_partial((const char *)u->from, u->out, (int)u->size,
						      room, room)
			: -1;

	u->made = n > 0 ? (size_t)n : 0;
	return n > 0;
}

static bool unpack_head(const uint8_t *data, const struct fatbin_entry *entry, char *out,
			size_t *ret)
{
	size_t want = entry->raw_size < HEAD_BYTES ? (size_t)entry->raw_size : HEAD_BYTES;
	struct unpacking u = {data, (size_t)entry->size, out, want, 0};

	if (entry->packing == FATBIN_ZSTD || entry->packing == FATBIN_LZ4) {
		const bool whole = entry->packing == FATBIN_ZSTD ? unpack_zstd(&u) : unpack_lz4(&u);
		*ret = u.made;
		return whole;
	}

	memcpy(out, data, want);
	*ret = want;
	return true;
}

/* ".target sm_90a, debug" */
static void ptx_target(const char *text, char ret[16])
{
	static const char mark[] = ".target";
	const char *p = strstr(text, mark);
	size_t n = 0;

	if (!p)
		return;
	p += strlen(mark);
	p += strspn(p, " \t");
	if (strncmp(p, "sm_", 3) != 0)
		return;
	for (p += 3; n < 8 && isalnum((unsigned char)p[n]); n++)
		ret[n] = p[n];
	ret[n] = '\0';
}

int fatbin_inside(const struct file_bytes *in, const struct fatbin_entry *entry, char ret[16],
		  struct err *e)
{
	const struct fatbin_file f = {.data = in->data,
				      .size = in->size,
				      .name = in->name,
				      .member = entry->member,
				      .e = e};
	char head[HEAD_BYTES + 1], target[16] = "";
	size_t n = 0;

	if (entry->offset > in->size || entry->size > in->size - entry->offset)
		return fatbin_bad(&f, entry->offset, "GPU code of %llu bytes leaves the file",
				  (unsigned long long)entry->size);
	if (!entry->sealed && (entry->kind == FATBIN_CUBIN || entry->kind == FATBIN_PTX)) {
		if (!unpack_head(f.data + entry->offset, entry, head, &n))
			return fatbin_bad(&f, entry->offset,
					  "GPU code for sm_%s cannot be unpacked", entry->target);
		head[n] = '\0';
		if (entry->kind == FATBIN_PTX) {
			ptx_target(head, target);
		} else if (n >= sizeof(Elf64_Ehdr)) {
			Elf64_Ehdr h;
			memcpy(&h, head, sizeof(h));
			if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_machine != EM_CUDA)
				return fatbin_bad(&f, entry->offset,
						  "the code for sm_%s is not a cubin",
						  entry->target);
			fatbin_cubin_target(h.e_ident[EI_ABIVERSION], h.e_flags, target);
		}
	}

	memcpy(ret, target, sizeof(target));
	return 0;
}
