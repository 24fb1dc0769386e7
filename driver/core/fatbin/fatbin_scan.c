#include <ar.h>
#include <string.h>

#include "core/fatbin/fatbin_parts.h"

static bool is_archive(const struct fatbin_file *f)
{
	return f->size >= SARMAG && memcmp(f->data, ARMAG, SARMAG) == 0;
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
	if (is_archive(&f))
		return read_archive(&f, e);
	if (fatbin_is_elf(&f, 0, size))
		return fatbin_elf(&f, 0, size, e);
	if (fatbin_is_container(&f, 0, size))
		return fatbin_containers(&f, 0, size, false, e);
	return 0;
}
