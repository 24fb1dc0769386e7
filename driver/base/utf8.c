#include "base/text.h"

/* The length of the character at `s`, 0 if there is none: RFC 3629, so no surrogates, nothing overlong, nothing above
 * 10FFFF. */
static unsigned char_at(const unsigned char *s, uint32_t *ret)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t lowest;
	} forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	for (unsigned n = 0; n < 4; n++) {
		if ((s[0] & forms[n].mask) != forms[n].lead)
			continue;
		uint32_t c = s[0] & (unsigned char)~forms[n].mask;
		for (unsigned i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80) /* the final NUL as well */
				return 0;
			c = c << 6 | (s[i] & 0x3f);
		}
		bool good = c >= forms[n].lowest && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
		*ret = c;
		return good ? n + 1 : 0;
	}
	return 0;
}

/* Controls of ASCII and of C1, and the characters of Unicode that are not seen and change what is: marks, overrides and
 * isolates of direction (UAX 9), line and paragraph separators, a width of nothing, tags. */
static bool is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
		      {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
		      {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

bool utf8_valid(const char *s)
{
	uint32_t c;
	for (unsigned n; *s; s += n) {
		n = char_at((const unsigned char *)s, &c);
		if (!n)
			return false;
	}
	return true;
}

char *utf8_printable(const char *s, struct arena *a)
{
	char *out = arena_alloc(a, strlen(s) + 1), *to = out;
	uint32_t c;
	for (unsigned n; *s; s += n ? n : 1) {
		n = char_at((const unsigned char *)s, &c);
		if (n == 0 || is_hidden(c)) {
			*to++ = '?';
			continue;
		}
		memcpy(to, s, n);
		to += n;
	}
	*to = '\0';
	return out;
}

/* The length of a sequence that sets a colour, and does no more; 0 if there is none. */
static size_t colour_at(const char *s, const char *end)
{
	const char *p = s + 1;
	if (*s != '\033' || p == end || *p != '[')
		return 0;
	for (p++; p < end && ((*p >= '0' && *p <= '9') || *p == ';');)
		p++;
	bool known = false;
	static const char *const codes[] = {"0", "1", "1;31", "33", "32"};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		known |= (size_t)(p - s - 2) == strlen(codes[i]) && memcmp(s + 2, codes[i], strlen(codes[i])) == 0;
	return known && p < end && *p == 'm' ? (size_t)(p + 1 - s) : 0;
}

void utf8_show(struct buf *out, const char *s, size_t len, bool colours)
{
	for (const char *end = s + len; s < end;) {
		uint32_t c;
		/* Behind `end` is a NUL or more text: a character that goes over it is cut, so not one. */
		unsigned n = *s ? char_at((const unsigned char *)s, &c) : 0;
		size_t colour = colours ? colour_at(s, end) : 0;
		if (n > (size_t)(end - s))
			n = 0;
		if (colour)
			buf_add(out, s, colour);
		else if (n && (!is_hidden(c) || c == '\n' || c == '\t'))
			buf_add(out, s, n);
		else if (n > 1)
			buf_printf(out, "\\u{%x}", c);
		else
			buf_printf(out, "\\x%02x", (unsigned char)*s);
		s += colour ? colour : n ? n : 1;
	}
}
