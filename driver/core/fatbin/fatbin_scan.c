#include <ar.h>
#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include "core/fatbin/fatbin_parts.h"

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
static void member_name(const struct fatbin_file *f, const struct ar_hdr *h, uint64_t names, uint64_t names_size,
			char *ret, size_t room)
{
	uint64_t at;
	const char *from = h->ar_name;
	size_t max = sizeof(h->ar_name);
	if (h->ar_name[0] == '/' && field_number(h->ar_name + 1, sizeof(h->ar_name) - 1, &at) && at < names_size) {
		from = (const char *)f->data + names + at;
		max = (size_t)(names_size - at);
	}
	size_t n = 0;
	while (n < max && n + 1 < room && from[n] != '/' && from[n] != '\n' && from[n] > ' ')
		n++;
	memcpy(ret, from, n);
	ret[n] = '\0';
}

static int read_archive(struct fatbin_file *f, struct err *e)
{
	uint64_t names = 0, names_size = 0;
	for (uint64_t at = SARMAG; at < f->size;) {
		struct ar_hdr h;
		uint64_t size;
		char name[256];
		if (f->size - at < sizeof(h))
			return fatbin_bad(f, at, e, "the archive ends within a member's header");
		memcpy(&h, f->data + at, sizeof(h));
		if (memcmp(h.ar_fmag, ARFMAG, sizeof(h.ar_fmag)) != 0 ||
		    !field_number(h.ar_size, sizeof(h.ar_size), &size))
			return fatbin_bad(f, at, e, "not a member header where one must be");
		at += sizeof(h);
		if (size > f->size - at)
			return fatbin_bad(f, at, e, "an archive member of %llu bytes leaves the file",
					  (unsigned long long)size);
		if (memcmp(h.ar_name, "// ", 3) == 0) {
			names = at;
			names_size = size;
		} else if (fatbin_is_elf(f, at, at + size)) {
			member_name(f, &h, names, names_size, name, sizeof(name));
			f->member = name;
			int r = fatbin_elf(f, at, at + size, e);
			f->member = "";
			if (r != 0)
				return r;
		}
		at += size + (size & 1 && f->size - at > size ? 1 : 0);
	}
	return 0;
}

int fatbin_scan(const void *data, size_t size, const char *name, fatbin_fn fn, void *user, struct err *e)
{
	struct fatbin_file f = {.data = data, .size = size, .name = name, .member = "", .fn = fn, .user = user};
	if (f.size >= SARMAG && memcmp(f.data, ARMAG, SARMAG) == 0)
		return read_archive(&f, e);
	if (fatbin_is_elf(&f, 0, size))
		return fatbin_elf(&f, 0, size, e);
	if (fatbin_is_container(&f, 0, size))
		return fatbin_containers(&f, 0, size, false, e);
	return 0;
}

/* Enough for a cubin's ELF header and for PTX's .target, which follows a comment of a few hundred bytes. */
#define HEAD_BYTES 4096u

static void free_stream(ZSTD_DStream **s)
{
	ZSTD_freeDStream(*s);
}

/* As many bytes as fit into `out`. */
static bool unpack_zstd(const uint8_t *from, size_t size, char *out, size_t room, size_t *ret)
{
	__attribute__((cleanup(free_stream))) ZSTD_DStream *s = ZSTD_createDStream();
	ZSTD_inBuffer in = {from, size, 0};
	ZSTD_outBuffer to = {out, room, 0};
	while (s && to.pos < to.size) {
		size_t before = in.pos + to.pos, left = ZSTD_decompressStream(s, &to, &in);
		if (ZSTD_isError(left))
			return false;
		if (left == 0)
			break;
		if (in.pos + to.pos == before) /* ends in the middle */
			return false;
	}
	*ret = to.pos;
	return s != NULL;
}

static bool unpack_lz4(const uint8_t *from, size_t size, char *out, size_t room, size_t *ret)
{
	int n = size <= LZ4_MAX_INPUT_SIZE
			? LZ4_decompress_safe_partial((const char *)from, out, (int)size, (int)room, (int)room)
			: -1;
	*ret = n > 0 ? (size_t)n : 0;
	return n > 0;
}

static bool unpack_head(const uint8_t *data, const struct fatbin_entry *entry, char *out, size_t *ret)
{
	size_t want = entry->raw_size < HEAD_BYTES ? (size_t)entry->raw_size : HEAD_BYTES;
	if (entry->packing == FATBIN_ZSTD)
		return unpack_zstd(data, (size_t)entry->size, out, want, ret);
	if (entry->packing == FATBIN_LZ4)
		return unpack_lz4(data, (size_t)entry->size, out, want, ret);
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

int fatbin_inside(const void *data, size_t size, const char *name, const struct fatbin_entry *entry, char ret[16],
		  struct err *e)
{
	const struct fatbin_file f = {.data = data, .size = size, .name = name, .member = entry->member};
	char head[HEAD_BYTES + 1], target[16] = "";
	size_t n = 0;
	if (entry->offset > size || entry->size > size - entry->offset)
		return fatbin_bad(&f, entry->offset, e, "GPU code of %llu bytes leaves the file",
				  (unsigned long long)entry->size);
	if (!entry->sealed && (entry->kind == FATBIN_CUBIN || entry->kind == FATBIN_PTX)) {
		if (!unpack_head(f.data + entry->offset, entry, head, &n))
			return fatbin_bad(&f, entry->offset, e, "GPU code for sm_%s cannot be unpacked", entry->target);
		head[n] = '\0';
		if (entry->kind == FATBIN_PTX) {
			ptx_target(head, target);
		} else if (n >= sizeof(Elf64_Ehdr)) {
			Elf64_Ehdr h;
			memcpy(&h, head, sizeof(h));
			if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_machine != EM_CUDA)
				return fatbin_bad(&f, entry->offset, e, "the code for sm_%s is not a cubin",
						  entry->target);
			fatbin_cubin_target(h.e_ident[EI_ABIVERSION], h.e_flags, target);
		}
	}
	memcpy(ret, target, sizeof(target));
	return 0;
}
