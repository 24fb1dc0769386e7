#include "core/elf/elf.h"

#include <elf.h>

#define MAX_BYTES (16U << 20)
#define PAGE UINT64_C(0x10000) /* the largest of any machine here */

/* libelf writes into files only, and not into those that are opened for appending; these
 * few tables are put together by hand. The fields are written as they are in memory. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ELF files of x86-64 and AArch64 are written on little-endian machines only"
#endif

enum section { NONE, HASH, SYMBOLS, STRINGS, TEXT, DYNAMIC, NAMES, SECTIONS };
enum { SEGMENTS = 4 };

static const char section_names[] = "\0.hash\0.dynsym\0.dynstr\0.text\0.dynamic\0.shstrtab";

struct writing {
	Elf64_Shdr sections[SECTIONS];
	struct buf bytes[SECTIONS];
};

/* The code of the one function that all names stand for. */
static size_t code_of(const struct elf_stub *s, uint8_t ret[8])
{
	if (s->machine == EM_X86_64) { /* mov $answer, %eax; ret */
		const uint8_t code[] = {0xb8, (uint8_t)s->answer, (uint8_t)(s->answer >> 8), 0, 0,
					0xc3};
		memcpy(ret, code, sizeof(code));
		return sizeof(code);
	}

	/* mov w0, #answer; ret */
	const uint32_t code[] = {0x52800000U | (uint32_t)s->answer << 5, 0xd65f03c0U};
	memcpy(ret, code, sizeof(code));
	return sizeof(code);
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 0;

	for (; *name; name++) {
		h = (h << 4) + (uint8_t)*name;
		h ^= (h & 0xf0000000U) >> 24;
		h &= 0x0fffffffU;
	}

	return h;
}

/* Buckets lead to chains of symbols; symbol 0 ends a chain. */
static void put_hash(const struct strlist *functions, struct buf *out)
{
	AUTO_ARENA struct arena a = {0};
	uint32_t count = (uint32_t)functions->count + 1, buckets = count / 2 + 1,
		 head[2] = {buckets, count};
	uint32_t *first = arena_array(&a, buckets, sizeof(*first)),
		 *next = arena_array(&a, count, sizeof(*next));

	for (uint32_t i = 1; i < count; i++) {
		uint32_t *bucket = &first[hash_of(functions->items[i - 1]) % buckets];
		next[i] = *bucket;
		*bucket = i;
	}

	buf_add(out, head, sizeof(head));
	buf_add(out, first, buckets * sizeof(*first));
	buf_add(out, next, count * sizeof(*next));
}

static void put_string(struct buf *out, const char *s)
{
	buf_add(out, s, strlen(s) + 1);
}

/* The string table, and symbols without their address. */
static void put_symbols(const struct elf_stub *s, size_t code, struct buf *symbols,
			struct buf *strings)
{
	Elf64_Sym sym = {0};

	buf_add(symbols, &sym, sizeof(sym));
	put_string(strings, "");
	put_string(strings, s->soname);
	for (size_t i = 0; i < s->functions->count; i++) {
		sym = (Elf64_Sym){.st_name = (Elf64_Word)strings->len,
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				  .st_shndx = TEXT,
				  .st_size = code};
		buf_add(symbols, &sym, sizeof(sym));
		put_string(strings, s->functions->items[i]);
	}
}

static void set_addresses(struct buf *symbols, uint64_t address)
{
	for (size_t at = sizeof(Elf64_Sym); at < symbols->len; at += sizeof(Elf64_Sym))
		memcpy(symbols->data + at + offsetof(Elf64_Sym, st_value), &address,
		       sizeof(address));
}

/* Gives a section its place. The dynamic entries, which
 * loaders write to, are in a page of their own in memory. */
static uint64_t place(struct writing *w, enum section n, uint64_t at)
{
	static const struct {
		Elf64_Word type;
		Elf64_Xword flags, entry;
	} forms[SECTIONS] = {
		[HASH] = {SHT_HASH, SHF_ALLOC, 4},
		[SYMBOLS] = {SHT_DYNSYM, SHF_ALLOC, sizeof(Elf64_Sym)},
		[STRINGS] = {SHT_STRTAB, SHF_ALLOC, 0},
		[TEXT] = {SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0},
		[DYNAMIC] = {SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, sizeof(Elf64_Dyn)},
		[NAMES] = {SHT_STRTAB, 0, 0},
	};
	Elf64_Shdr *h = &w->sections[n];

	for (int i = 0; i < (int)n; i++)
		h->sh_name += (Elf64_Word)strlen(section_names + h->sh_name) + 1;
	h->sh_type = forms[n].type;
	h->sh_flags = forms[n].flags;
	h->sh_addralign = n == NAMES || n == STRINGS ? 1 : 8;
	h->sh_offset = (at + h->sh_addralign - 1) / h->sh_addralign * h->sh_addralign;
	h->sh_addr = n == NAMES ? 0 : n == DYNAMIC ? h->sh_offset + PAGE : h->sh_offset;
	h->sh_size = w->bytes[n].len;
	h->sh_entsize = forms[n].entry;
	h->sh_link = n == HASH ? SYMBOLS : n == SYMBOLS || n == DYNAMIC ? STRINGS : 0;
	h->sh_info = n == SYMBOLS; /* the first that is not local */
	return h->sh_offset + h->sh_size;
}

/* Places everything; where the table of sections goes. */
static uint64_t place_all(struct writing *w)
{
	uint64_t at = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr);

	at = place(w, HASH, at);
	at = place(w, SYMBOLS, at);
	at = place(w, STRINGS, at);
	at = place(w, TEXT, at);
	set_addresses(&w->bytes[SYMBOLS], w->sections[TEXT].sh_addr);
	const Elf64_Dyn all[] = {
		{DT_SONAME, {1}}, /* the first string */
		{DT_HASH, {w->sections[HASH].sh_addr}},
		{DT_STRTAB, {w->sections[STRINGS].sh_addr}},
		{DT_SYMTAB, {w->sections[SYMBOLS].sh_addr}},
		{DT_STRSZ, {w->bytes[STRINGS].len}},
		{DT_SYMENT, {sizeof(Elf64_Sym)}},
		{DT_NULL, {0}},
	};
	buf_add(&w->bytes[DYNAMIC], all, sizeof(all));
	at = place(w, DYNAMIC, at);
	return (place(w, NAMES, at) + 7) / 8 * 8;
}

static void put_headers(const struct elf_stub *s, const struct writing *w, uint64_t sections_at,
			struct buf *out)
{
	const Elf64_Shdr *text = &w->sections[TEXT], *dynamic = &w->sections[DYNAMIC];
	const uint64_t end = text->sh_offset + text->sh_size;
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = (Elf64_Half)s->machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = sections_at,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = SEGMENTS,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = NAMES,
	};
	const Elf64_Phdr segments[SEGMENTS] = {
		{PT_LOAD, PF_R | PF_X, 0, 0, 0, end, end, PAGE},
		{PT_LOAD, PF_R | PF_W, dynamic->sh_offset, dynamic->sh_addr, dynamic->sh_addr,
		 dynamic->sh_size, dynamic->sh_size, PAGE},
		{PT_DYNAMIC, PF_R | PF_W, dynamic->sh_offset, dynamic->sh_addr, dynamic->sh_addr,
		 dynamic->sh_size, dynamic->sh_size, 8},
		{PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16},
	};

	buf_add(out, &header, sizeof(header));
	buf_add(out, segments, sizeof(segments));
}

static void pad(struct buf *out, size_t start, uint64_t to)
{
	while (out->len - start < to)
		buf_addc(out, '\0');
}

static void put_all(const struct elf_stub *s, struct writing *w, struct buf *out)
{
	size_t start = out->len;
	uint64_t sections_at = place_all(w);

	put_headers(s, w, sections_at, out);
	for (int i = HASH; i < SECTIONS; i++) {
		pad(out, start, w->sections[i].sh_offset);
		buf_add(out, w->bytes[i].data, w->bytes[i].len);
	}

	pad(out, start, sections_at);
	buf_add(out, w->sections, sizeof(w->sections));
}

int elf_stub_put(const struct elf_stub *s, struct buf *out, struct err *e)
{
	struct writing w = {0};
	uint8_t code[8];
	size_t bytes = strlen(s->soname);

	if (s->machine != EM_X86_64 && s->machine != EM_AARCH64)
		return err_set(e, ERR_CONFIG, "no stub library can be made for ELF's machine %u",
			       s->machine);
	for (size_t i = 0; i < s->functions->count && bytes <= MAX_BYTES; i++)
		bytes += strlen(s->functions->items[i]) + 1 + sizeof(Elf64_Sym) +
			 2 * sizeof(uint32_t);
	if (bytes > MAX_BYTES)
		return err_set(e, ERR_INTEGRITY, "the stub of '%s' would have more than %u MiB",
			       s->soname, MAX_BYTES >> 20);
	size_t len = code_of(s, code);
	buf_add(&w.bytes[TEXT], code, len);
	buf_add(&w.bytes[NAMES], section_names, sizeof(section_names));
	put_symbols(s, len, &w.bytes[SYMBOLS], &w.bytes[STRINGS]);
	put_hash(s->functions, &w.bytes[HASH]);
	put_all(s, &w, out);
	for (size_t i = 0; i < SECTIONS; i++)
		buf_release(&w.bytes[i]);
	return 0;
}
