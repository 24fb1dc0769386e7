/* libdeflate is 2.6 times as fast as zlib at equal size, but writes whole streams only. To join
 * them, the final-block bit of all but the last is cleared and an empty stored block appended,
 * which ends on a byte boundary (zlib's sync flush). libdeflate does not report where that bit is,
 * so it is searched from the end. */
#include "core/zip/zip_parts.h"

#include <libdeflate.h>
#include <zlib.h>

enum {
	WINDOW = 32768,
	SYNC_MAX = 5, /* the empty stored block */
	SURE = 1000,  /* bytes of a block that nothing but the true block inflates to */
	HEADER_BITS = 17 + 19 * 3,
	STORED_MAX = 65535,
	FOUR = 12,                    /* bits of four lengths */
	CODES_MAX = 320,              /* 288 literals and lengths, 32 distances */
	CODE_MAX = 15,                /* bits */
	SEARCH_BITS = 8 * 512 * 1024, /* no block of libdeflate holds more than 305,000 bytes */
	SAMPLE = 4096,
	SAMPLE_EVERY = 16,
	SAMPLE_ALL = 64 * 1024,
	SMALL = 64 * 1024,
	LARGE = 1024 * 1024,
	ENTROPY_TABLES = 6 * 256 + 51,  /* 6.2 bits */
	ENTROPY_PACKED = 7 * 256 + 192, /* 7.75 bits */
};

struct zip_deflater {
	uint16_t spaces[1 << FOUR]; /* what four lengths of the code length code take of 128 */
	struct libdeflate_compressor *plain, *longer, *easy;
	z_stream walker;
	/* ZIP_CHUNK bytes, and WINDOW of zeros behind: a dictionary whose contents do not matter */
	uint8_t *scratch;
};

struct block_end {
	size_t start;    /* bit where the final block begins */
	unsigned unused; /* bits of the last byte behind its end */
};

/* Bytes, and the stream that they were deflated to. */
struct chunk {
	const uint8_t *raw;
	size_t raw_len;
	uint8_t *z;
	size_t len;
};

/* The bytes before a block, which it may refer to: WINDOW at most. */
struct window {
	const uint8_t *data;
	size_t len;
};

struct zip_deflater *zip_deflater_new(int level)
{
	struct zip_deflater *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	for (unsigned i = 0; i < ARRAY_LEN(d->spaces); i++)
		for (unsigned k = i; k; k >>= 3)
			d->spaces[i] = (uint16_t)(d->spaces[i] + (k & 7 ? 128u >> (k & 7) : 0));
	d->plain = libdeflate_alloc_compressor(level);
	d->longer = libdeflate_alloc_compressor(level < 9 ? level + 1 : 9);
	d->easy = libdeflate_alloc_compressor(1);
	d->scratch = calloc(1, ZIP_CHUNK + WINDOW);
	if (!d->plain || !d->longer || !d->easy)
		abort();
	if (!d->scratch || inflateInit2(&d->walker, -15) != Z_OK)
		abort();
	return d;
}

void zip_deflater_free(struct zip_deflater *d)
{
	if (!d)
		return;
	libdeflate_free_compressor(d->plain);
	libdeflate_free_compressor(d->longer);
	libdeflate_free_compressor(d->easy);
	inflateEnd(&d->walker);
	free(d->scratch);
	free(d);
}

size_t zip_deflate_bound(size_t len)
{
	return libdeflate_deflate_compress_bound(NULL, len) + SYNC_MAX;
}

/* At least 57 bits from `bit` on; 8 bytes must be there. */
static uint64_t bits_at(const uint8_t *z, size_t bit)
{
	uint64_t v;
	memcpy(&v, z + bit / 8, sizeof(v));
	return v >> (bit % 8);
}

/* Where in the 32 bits from `bit` on a final block with dynamic codes
 * may start: RFC 1951, 3.2.3, and at most 29 in both fields of 3.2.7. */
static uint32_t may_start(const uint8_t *z, size_t bit)
{
	uint64_t v = bits_at(z, bit), ones = v & v >> 1 & v >> 2 & v >> 3;
	return (uint32_t)(v & ~(v >> 1) & v >> 2 & ~(ones >> 4) & ~(ones >> 9));
}

/* Whether the lengths of the code length code fit there. */
static bool lengths_fit(const struct zip_deflater *d, const uint8_t *z, size_t bit)
{
	const unsigned n = (bits_at(z, bit) >> 13 & 15) + 4, mask = (1 << FOUR) - 1;
	uint64_t lengths = bits_at(z, bit + 17) & ((UINT64_C(1) << 3 * n) - 1);
	unsigned space = 0;

	for (; lengths; lengths >>= FOUR)
		space += d->spaces[lengths & mask];
	return space == 128;
}

struct code_reader {
	const uint8_t *z;
	size_t bit, end;                    /* bits */
	uint8_t symbols[128], lengths[128]; /* by the next seven bits */
};

/* The code length code: RFC 1951, 3.2.7. */
static void read_code_lengths(struct code_reader *r, unsigned count)
{
	static const uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
					11, 4,  12, 3, 13, 2, 14, 1, 15};
	uint8_t lengths[ARRAY_LEN(order)] = {0};
	const uint64_t v = bits_at(r->z, r->bit);
	unsigned code = 0;

	for (unsigned i = 0; i < count; i++)
		lengths[order[i]] = v >> 3 * i & 7;
	r->bit += (size_t)3 * count;
	for (unsigned n = 1; n < 8; n++, code <<= 1)
		for (unsigned k = 0; k < ARRAY_LEN(order); k++) {
			if (lengths[k] != n)
				continue;
			unsigned turned = 0;
			for (unsigned i = 0; i < n; i++)
				turned |= (code >> i & 1) << (n - 1 - i);
			for (unsigned at = turned; at < 128; at += 1u << n) {
				r->symbols[at] = (uint8_t)k;
				r->lengths[at] = (uint8_t)n;
			}

			code++;
		}
}

/* Whether zlib takes such a code: complete, or of one bit. */
static bool code_fits(const uint8_t *lengths, unsigned count)
{
	unsigned space = 0, longest = 0;

	for (unsigned i = 0; i < count; i++) {
		space += lengths[i] ? 1u << (CODE_MAX - lengths[i]) : 0;
		longest = lengths[i] > longest ? lengths[i] : longest;
	}

	return space == 1u << CODE_MAX || (space < 1u << CODE_MAX && longest <= 1);
}

/* The next symbol of the code length code: how often its length is there. */
static unsigned read_length(struct code_reader *r, uint8_t before, uint8_t *ret_length)
{
	const uint64_t v = bits_at(r->z, r->bit);
	const unsigned at = v & 127, symbol = r->symbols[at];
	const unsigned more = (unsigned)(v >> r->lengths[at]);

	r->bit += r->lengths[at];
	*ret_length = symbol < 16 ? (uint8_t)symbol : symbol == 16 ? before : 0;
	if (symbol < 16)
		return 1;
	r->bit += symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
	return symbol == 16 ? 3 + (more & 3) : symbol == 17 ? 3 + (more & 7) : 11 + (more & 127);
}

/* Whether zlib takes the codes of a block that may start at `bit`: to ask zlib costs a hundred
 * times as much. */
static bool codes_fit(const uint8_t *z, size_t len, size_t bit)
{
	struct code_reader r = {.z = z, .bit = bit + 17, .end = len * 8};
	uint8_t lengths[CODES_MAX] = {0}, length = 0;
	const uint64_t v = bits_at(z, bit);
	const unsigned literals = (v >> 3 & 31) + 257, all = literals + (v >> 8 & 31) + 1;

	read_code_lengths(&r, (v >> 13 & 15) + 4);
	for (unsigned n = 0; n < all;) {
		if (r.bit + 64 > r.end)
			return true; /* so near to the end zlib decides */
		const unsigned times = read_length(&r, length, &length);
		if (times > all - n)
			return false;
		memset(lengths + n, length, times);
		n += times;
	}

	if (!lengths[256] || !code_fits(lengths, literals))
		return false;
	return code_fits(lengths + literals, all - literals);
}

/* Whether the stream ends with a stored block of `n` bytes: its length twice, and the last raw
 * bytes. The bit that says final is the last one set before; its header has two more. */
static bool stored_fits(const struct chunk *c, size_t n, struct block_end *ret)
{
	const uint8_t *at = c->z + c->len - n - 4, *raw_end = c->raw + c->raw_len;
	const unsigned size = at[0] | (unsigned)at[1] << 8, twice = at[2] | (unsigned)at[3] << 8;
	const unsigned before = at[-2] | (unsigned)at[-1] << 8;

	if (size != n || (size ^ twice) != STORED_MAX)
		return false;
	const unsigned bit = before ? 31 - (unsigned)__builtin_clz(before) : 0;
	if (bit < 6 || bit > 13 || memcmp(raw_end - n, at + 4, n) != 0)
		return false;
	*ret = (struct block_end){(size_t)(at - 2 - c->z) * 8 + bit, 0};
	return true;
}

static bool find_stored(const struct chunk *c, struct block_end *ret)
{
	enum { HEADER = 6 };
	size_t n = c->raw_len < STORED_MAX ? c->raw_len : STORED_MAX;

	if (c->len < SURE + HEADER)
		return false;
	for (n = c->len - HEADER < n ? c->len - HEADER : n; n >= SURE; n--)
		if (stored_fits(c, n, ret))
			return true;
	return false;
}

/* Inflates the block that may start at b->start, with the bytes `before` it. Returns how many bytes
 * it holds, 0 unless it ends where the stream ends; sets b->unused. */
static size_t inflate_block(struct zip_deflater *d, const struct chunk *c,
			    const struct window *before, struct block_end *b)
{
	z_stream *s = &d->walker;
	size_t bit = b->start, from = bit / 8;

	inflateReset(s);
	inflateSetDictionary(s, before->data, (unsigned)before->len);
	if (bit % 8) {
		inflatePrime(s, (int)(8 - bit % 8), c->z[from] >> (bit % 8));
		from++;
	}

	s->next_in = c->z + from;
	s->avail_in = (unsigned)(c->len - from);
	s->next_out = d->scratch;
	s->avail_out = (unsigned)ZIP_CHUNK;
	if (inflate(s, Z_BLOCK) != Z_OK || (s->data_type & 192) != 192 || s->avail_in)
		return 0;
	b->unused = (unsigned)s->data_type & 63;
	return s->total_out;
}

/* Whether the final block starts at `bit`: it ends where
 * the stream ends, and holds the last of the raw bytes. */
static bool block_fits(struct zip_deflater *d, const struct chunk *c, size_t bit,
		       struct block_end *ret)
{
	const struct window any = {d->scratch + ZIP_CHUNK, WINDOW};
	struct block_end b = {bit, 0};
	size_t holds = inflate_block(d, c, &any, &b);

	if (holds < SURE || holds > c->raw_len)
		return false;
	size_t start = c->raw_len - holds, len = start < WINDOW ? start : WINDOW;
	const struct window before = {c->raw + start - len, len};
	if (inflate_block(d, c, &before, &b) != holds ||
	    memcmp(d->scratch, c->raw + start, holds) != 0)
		return false;
	*ret = b;
	return true;
}

/* Clears the final bit and brings the stream to a byte boundary. */
static void open_end(uint8_t *z, size_t *len, const struct block_end *b)
{
	static const uint8_t sync[SYNC_MAX] = {0, 0, 0, 0xff, 0xff};
	/* The three zero bits of the stored block's header may be in the unused bits of the last
	 * byte already. */
	size_t skip = b->unused >= 3 ? 1 : 0;

	memcpy(z + *len, sync + skip, sizeof(sync) - skip);
	*len += sizeof(sync) - skip;
	z[b->start / 8] &= (uint8_t) ~(1u << (b->start % 8));
}

static int find_end(struct zip_deflater *d, const struct chunk *c, struct block_end *ret,
		    struct err *e)
{
	if (find_stored(c, ret))
		return 0;
	uint8_t *z = c->z;
	size_t len = c->len;
	size_t top = len * 8 > HEADER_BITS + 64 ? len * 8 - HEADER_BITS - 64 : 0,
	       bottom = top > SEARCH_BITS ? top - SEARCH_BITS : 0;
	for (size_t at = (top + 31) / 32 * 32; at > bottom;) {
		at -= 32;
		for (uint32_t may = may_start(z, at); may;) {
			size_t bit = at + 31 - (unsigned)__builtin_clz(may);
			may ^= UINT32_C(1) << (bit - at);
			if (bit >= top || !lengths_fit(d, z, bit) || !codes_fit(z, len, bit))
				continue;
			if (block_fits(d, c, bit, ret))
				return 0;
		}
	}

	/* All blocks from the front, for streams whose final block has no dynamic codes. */
	z_stream *s = &d->walker;
	size_t start = 0;
	inflateReset(s);
	s->next_in = z;
	s->avail_in = (unsigned)len;
	s->next_out = d->scratch;
	s->avail_out = (unsigned)ZIP_CHUNK;
	for (;;) {
		if (inflate(s, Z_BLOCK) != Z_OK || !(s->data_type & 128))
			return err_set(e, ERR_SYSTEM,
				       "deflate made a stream that does not inflate");
		unsigned unused = (unsigned)s->data_type & 63;
		if (s->data_type & 64) {
			*ret = (struct block_end){start, unused};
			return 0;
		}

		start = (len - s->avail_in) * 8 - unused;
	}
}

/* log2 of v >= 1 in units of 1/256. In integers: the
 * bytes must not depend on a machine's floating point. */
static uint32_t log2_256(uint32_t v)
{
	unsigned whole = 31 - (unsigned)__builtin_clz(v);
	uint64_t x = ((uint64_t)v << 31) >> whole; /* 1.0 <= x < 2.0, 31 bits of fraction */
	uint32_t out = whole;

	for (unsigned i = 0; i < 8; i++) {
		x = x * x >> 31;
		out = out << 1 | (uint32_t)(x >> 32);
		x >>= x >> 32;
	}

	return out;
}

unsigned zip_entropy(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t counts[256] = {0}, total = 0;
	size_t step = len < SAMPLE_ALL ? SAMPLE : SAMPLE * SAMPLE_EVERY;

	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < SAMPLE ? len - at : SAMPLE;
		for (size_t i = 0; i < n; i++)
			counts[p[at + i]]++;
		total += (uint32_t)n;
	}

	if (!total)
		return 0;
	uint64_t bits = 0; /* of all sampled bytes, in 1/256 */
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		if (counts[i])
			bits += (uint64_t)counts[i] * (log2_256(total) - log2_256(counts[i]));
	return (unsigned)(bits / total);
}

/* Where a longer search pays, by bytes saved a second over the files of a PyTorch wheel: in
 * small files, nearly all text, and in large ones whose entropy is that of tables and text, not
 * code. Above 7.75 bits the data are compressed already. */
static struct libdeflate_compressor *choose_compressor(const struct zip_deflater *d,
						       const void *raw, size_t len)
{
	if (len < SMALL)
		return d->longer;
	unsigned entropy = zip_entropy(raw, len);
	if (entropy >= ENTROPY_PACKED)
		return d->easy;
	return len >= LARGE && entropy < ENTROPY_TABLES ? d->longer : d->plain;
}

int zip_deflate_chunk(struct zip_deflater *d, struct zip_slot *s)
{
	const size_t len = s->raw_len;
	size_t n = libdeflate_deflate_compress(choose_compressor(d, s->raw, len), s->raw, len,
					       s->out, zip_deflate_bound(len));

	if (!n)
		return err_set(&s->err, ERR_SYSTEM, "cannot deflate %zu bytes", len);
	if (!s->last) {
		struct block_end b = {0};
		const struct chunk c = {s->raw, len, s->out, n};
		if (find_end(d, &c, &b, &s->err) < 0)
			return -1;
		open_end(s->out, &n, &b);
	}

	s->out_len = n;
	return 0;
}
