/* Fat binaries byte by byte, for tests. */
#pragma once
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define CRAFT_ARCH 0x100000u
#define CRAFT_FAMILY 0x200000u
#define CRAFT_LZ4 0x2000u
#define CRAFT_ZSTD 0x8000u

static inline void craft_number(struct buf *b, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_addc(b, (char)(v >> (8 * i)));
}

/* craft_entry: an entry as nvcc writes it; `raw` is the size unpacked (0 with plain contents). */
static inline void craft_entry(struct buf *b, unsigned kind, unsigned sm, uint64_t flags,
			       const void *data, size_t size, size_t raw)
{
	size_t padded = (size + 7) / 8 * 8;
	craft_number(b, kind, 2);
	craft_number(b, 0x101, 2);
	craft_number(b, 64, 4);
	craft_number(b, padded, 8);
	craft_number(b, raw ? size : 0, 4);
	craft_number(b, 0, 4);
	craft_number(b, 0, 2);
	craft_number(b, 1, 2);
	craft_number(b, sm, 4);
	craft_number(b, 0, 8);
	craft_number(b, 0x11 | flags, 8);
	craft_number(b, 0, 8);
	craft_number(b, raw, 8);
	buf_add(b, data, size);
	for (size_t i = size; i < padded; i++)
		buf_addc(b, 0);
}

/* craft_cubin: the ELF header of a cubin of CUDA 13,
 * and as many zeroes as make `size` bytes of it. */
static inline void craft_cubin(struct buf *b, unsigned sm, size_t size)
{
	Elf64_Ehdr h = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41, 8},
		.e_machine = EM_CUDA,
		.e_flags = sm << 8 | 0x6000004};
	buf_add(b, &h, sizeof(h));
	for (size_t i = sizeof(h); i < size; i++)
		buf_addc(b, 0);
}

/* craft_cubin_entry: an entry with such a cubin. */
static inline void craft_cubin_entry(struct buf *b, unsigned sm, uint64_t flags)
{
	AUTO_BUF struct buf cubin = {0};
	craft_cubin(&cubin, sm, 128);
	craft_entry(b, 2, sm, flags, cubin.data, cubin.len, 0);
}

/* craft_ptx_entry: an entry with the first lines of PTX. */
static inline void craft_ptx_entry(struct buf *b, unsigned sm)
{
	char text[128];
	snprintf(text, sizeof(text), "//\n\n.version 9.0\n.target sm_%u\n.address_size 64\n", sm);
	craft_entry(b, 1, sm, 0, text, strlen(text), 0);
}

/* craft_container: a fat binary of entries, behind what is in `b`. */
static inline void craft_container(struct buf *b, const struct buf *entries)
{
	craft_number(b, 0xba55ed50, 4);
	craft_number(b, 1, 2);
	craft_number(b, 16, 2);
	craft_number(b, entries->len, 8);
	buf_add(b, entries->data, entries->len);
}
