#include "base/utf8.h"

#include <stdint.h>

/* The length of the character at `s`, 0 if there is none: RFC 3629, so no surrogates, nothing overlong, nothing above
 * 10FFFF. */
static unsigned char_length(const unsigned char *s)
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
		return good ? n + 1 : 0;
	}
	return 0;
}

bool utf8_valid(const char *s)
{
	for (unsigned n; *s; s += n) {
		n = char_length((const unsigned char *)s);
		if (!n)
			return false;
	}
	return true;
}

char *utf8_printable(const char *s, struct arena *a)
{
	char *out = arena_strdup(a, s);
	for (char *p = out; *p;) {
		unsigned n = char_length((const unsigned char *)p);
		if (n > 1) {
			p += n;
			continue;
		}
		if (n == 0 || (unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
		p++;
	}
	return out;
}
