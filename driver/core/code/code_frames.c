/* .eh_frame, which alone tells functions apart in a stripped library: LSB Core, "Exception Frames"; encodings are
 * DWARF's DW_EH_PE_*. */

#include "core/code/code_parts.h"

enum { PE_ABSPTR = 0, PE_UDATA4 = 3, PE_UDATA8 = 4, PE_SDATA4 = 0x0b, PE_SDATA8 = 0x0c, PE_OMIT = 0xff };
enum { HEADER_TABLE = 0x3b /* pairs of 32-bit offsets from the header */, HEADER_COUNT = PE_UDATA4 };

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t take(struct cursor *c, size_t n)
{
	uint64_t v = 0;
	if (c->bad || (size_t)(c->end - c->p) < n) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, n);
	c->p += n;
	return v;
}

static uint64_t take_leb(struct cursor *c)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = take(c, 1);
		v |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

/* 0: of another size. */
static size_t size_of(unsigned encoding)
{
	encoding &= 0x0f;
	if (encoding == PE_UDATA4 || encoding == PE_SDATA4)
		return 4;
	return encoding == PE_ABSPTR || encoding == PE_UDATA8 || encoding == PE_SDATA8 ? 8 : 0;
}

static bool cursor_at(const struct elf_map *m, uint64_t address, struct cursor *ret)
{
	uint64_t offset, room;
	if (!elf_map_find(m, address, &offset, &room))
		return false;
	*ret = (struct cursor){m->data + offset, m->data + offset + room, false};
	return true;
}

/* The size of addresses in the descriptions (FDEs) of this CIE; 0 if that cannot be told. */
static size_t address_size(const struct elf_map *m, uint64_t cie)
{
	struct cursor c;
	if (!cursor_at(m, cie, &c))
		return 0;
	uint64_t length = take(&c, 4), id = take(&c, 4), version = take(&c, 1);
	if (c.bad || length == 0 || length > 4096 || id != 0 || (version != 1 && version != 3))
		return 0;
	const char *augmentation = (const char *)c.p;
	size_t letters = strnlen(augmentation, (size_t)(c.end - c.p));
	if (letters > 16 || letters == (size_t)(c.end - c.p))
		return 0;
	c.p += letters + 1;
	take_leb(&c);
	take_leb(&c);
	if (version == 1)
		take(&c, 1);
	else
		take_leb(&c);
	if (augmentation[0] != 'z')
		return augmentation[0] == '\0' && !c.bad ? 8 : 0;
	take_leb(&c);
	for (size_t i = 1; i < letters && !c.bad; i++) {
		if (augmentation[i] == 'R')
			return size_of((unsigned)take(&c, 1));
		if (augmentation[i] == 'L')
			take(&c, 1);
		else if (augmentation[i] == 'P')
			take(&c, size_of((unsigned)take(&c, 1)));
		else if (augmentation[i] != 'S' && augmentation[i] != 'B')
			return 0;
	}
	return 0;
}

struct cie {
	uint64_t address;
	size_t size;
};

/* The size of the function that a description is about; 0 if it is malformed. */
static uint64_t frame_size(const struct elf_map *m, uint64_t address, struct cie *last)
{
	struct cursor c;
	if (!cursor_at(m, address, &c))
		return 0;
	uint64_t length = take(&c, 4), back = take(&c, 4);
	if (c.bad || length == 0 || length == UINT32_MAX || back == 0 || back > address + 4)
		return 0;
	uint64_t cie = address + 4 - back;
	if (cie != last->address || !last->size)
		*last = (struct cie){cie, address_size(m, cie)};
	if (!last->size)
		return 0;
	take(&c, last->size);
	uint64_t n = take(&c, last->size);
	return c.bad ? 0 : n;
}

void code_frames(const struct elf_map *m, struct candidates *list)
{
	for (size_t i = 0; i < m->segments_count; i++) {
		const GElf_Phdr *p = &m->segments[i];
		struct cursor c;
		struct cie last = {0, 0};
		if (p->p_type != PT_GNU_EH_FRAME || !cursor_at(m, p->p_vaddr, &c))
			continue;
		uint64_t version = take(&c, 1), pointer = take(&c, 1), count_encoding = take(&c, 1),
			 table = take(&c, 1);
		if (version != 1 || count_encoding != HEADER_COUNT || table != HEADER_TABLE || pointer == PE_OMIT)
			return;
		take(&c, size_of((unsigned)pointer));
		uint64_t count = take(&c, 4);
		for (uint64_t k = 0; k < count && !c.bad; k++) {
			uint64_t start = p->p_vaddr + (uint64_t)(int64_t)(int32_t)take(&c, 4);
			uint64_t frame = p->p_vaddr + (uint64_t)(int64_t)(int32_t)take(&c, 4);
			uint64_t size = c.bad ? 0 : frame_size(m, frame, &last);
			if (size)
				code_add(list,
					 (struct candidate){.start = start, .size = size, .flags = CODE_DECLARED});
		}
		return;
	}
}
