#include "base/text.h"

#include <time.h>

#include "base/path.h"

/* The next numeric component of *s without leading zeros, and *s moved behind
 * it and its dot; length 0 at the end (an absent component counts as zero). */
static size_t next_component(const char **s, const char **digits)
{
	const char *p = *s + strspn(*s, "0");
	size_t n = strspn(p, "0123456789");

	*digits = p;
	p += n;
	*s = p[0] == '.' && isdigit((unsigned char)p[1]) ? p + 1 : "";
	return n;
}

int version_cmp(const char *a, const char *b)
{
	/* Digits are compared as text, so no component is too long. */
	while (*a || *b) {
		const char *x, *y;
		size_t n = next_component(&a, &x), m = next_component(&b, &y);
		if (n != m)
			return n < m ? -1 : 1;
		int c = memcmp(x, y, n);
		if (c)
			return c < 0 ? -1 : 1;
	}

	return 0;
}

int version_order(const void *a, const void *b)
{
	return version_cmp(*(const char *const *)a, *(const char *const *)b);
}

/* Length of the numeric part: digits with single dots between. */
static size_t numeric_len(const char *v)
{
	size_t len = 0;

	for (;;) {
		size_t n = strspn(v + len, "0123456789");
		if (!n)
			return len ? len - 1 : 0;
		len += n;
		if (v[len] != '.')
			return len;
		len++;
	}
}

bool version_valid(const char *v)
{
	size_t n = numeric_len(v);
	return n && !v[n];
}

/* Whether the leading components of `v` are those
 * of `prefix`; missing ones of `v` count as zero. */
static bool has_prefix(const char *v, const char *prefix)
{
	while (*prefix) {
		const char *x, *y;
		size_t n = next_component(&v, &x), m = next_component(&prefix, &y);
		if (n != m || memcmp(x, y, n) != 0)
			return false;
	}

	return true;
}

enum { LESS = 1, EQUAL = 2, MORE = 4 };

static const struct {
	const char *text;
	unsigned accepts; /* results of the comparison */
} operators[] = {
	/* Longer ones first: ">" would match the start of ">=". */
	{"==", EQUAL},        {"!=", LESS | MORE}, {">=", EQUAL | MORE}, {"<=", LESS | EQUAL},
	{"~=", EQUAL | MORE}, {">", MORE},         {"<", LESS},
};

/* One clause, white space already cut: 1 satisfied, 0 not, -1 malformed. */
static int check_clause(const char *v, const char *clause, size_t len)
{
	size_t i = 0;

	while (i < ARRAY_LEN(operators) &&
	       strncmp(clause, operators[i].text, strlen(operators[i].text)) != 0)
		i++;
	if (i == ARRAY_LEN(operators))
		return -1;
	size_t skip = strlen(operators[i].text);
	while (skip < len && isspace((unsigned char)clause[skip]))
		skip++;
	char wanted[128];
	if (len <= skip || len - skip >= sizeof(wanted))
		return -1;
	memcpy(wanted, clause + skip, len - skip);
	wanted[len - skip] = '\0';
	unsigned accepts = operators[i].accepts;
	if ((accepts == EQUAL || accepts == (LESS | MORE)) && path_has_suffix(wanted, ".*") &&
	    len - skip > 2) {
		wanted[len - skip - 2] = '\0';
		return !version_valid(wanted) ? -1 : has_prefix(v, wanted) == (accepts == EQUAL);
	}

	if (!version_valid(wanted))
		return -1;
	int c = version_cmp(v, wanted);
	bool satisfied = accepts & (c < 0 ? LESS : c > 0 ? MORE : EQUAL);
	if (clause[0] != '~')
		return satisfied;
	char *last = strrchr(wanted, '.');
	if (!last)
		return -1;
	*last = '\0';
	return satisfied && has_prefix(v, wanted);
}

int version_in(const char *v, const char *range, bool *ret, struct err *e)
{
	if (!numeric_len(v))
		return err_set(e, ERR_CONFIG, "not a version: '%s'", v);
	bool all = true;
	const char *p = range + strspn(range, " \t");
	while (*p) {
		size_t len = strcspn(p, ","), used = len;
		while (used && isspace((unsigned char)p[used - 1]))
			used--;
		int r = check_clause(v, p, used);
		bool last = p[len] == '\0';
		const char *next = p + len + !last;
		next += strspn(next, " \t");
		if (r < 0 || (!last && !*next)) {
			err_set(e, ERR_CONFIG, "malformed version range '%s'", range);
			return err_hint(e, "write clauses like '>=3.27,<4', '==2.9.*' or '!=1.2', "
					   "with commas between");
		}

		all = all && r;
		p = next;
	}

	*ret = all;
	return 0;
}

const char *text_pin(const char *text, struct arena *a, const char **ret_version)
{
	const char *equals = strstr(text, "==");
	*ret_version = equals ? equals + 2 : NULL;
	return equals ? arena_strndup(a, text, (size_t)(equals - text)) : text;
}

int size_parse(const char *text, uint64_t *ret, struct err *e)
{
	static const char units[] = "KMGT";
	char *end;

	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	/* strtoull would take a sign and blanks before the number. */
	bool is_number = *text >= '0' && *text <= '9' && !errno;
	bool unit_is_known = !*end || (unit && !end[1]);
	if (!is_number || !unit_is_known || n > (uint64_t)INT64_MAX >> shift) {
		err_set(e, ERR_CONFIG, "not a size: '%s'", text);
		return err_hint(e, "give a number of bytes, or one with K, M, G or T, such as 20G");
	}

	*ret = n << shift;
	return 0;
}

uint64_t size_bytes(const char *text)
{
	uint64_t n = 0;
	return size_parse(text, &n, ERR_IGNORED) < 0 ? 0 : n;
}

void size_time(char *to, size_t size, double seconds)
{
	const long minutes = (long)(seconds / 60);

	if (seconds < 90)
		snprintf(to, size, "%.0f s", seconds < 1 ? 1 : seconds);
	else if (seconds < 90.0 * 60)
		snprintf(to, size, "%.0f min", seconds / 60);
	else
		snprintf(to, size, "%ld h %ld min", minutes / 60, minutes % 60);
}

const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

char *size_utc(int64_t seconds, struct arena *a)
{
	char text[32] = "";
	const time_t at = (time_t)seconds;
	struct tm tm;

	if (gmtime_r(&at, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return arena_strdup(a, text);
}

#define MAX_NAME 128 /* longer names are not typed by hand */

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;
	return m < c ? m : c;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Whether the first two letters are the same in the other order. */
static bool are_swapped(const char *a, const char *b)
{
	return same(a[1], b[0]) && same(a[0], b[1]);
}

/* Edit distance with adjacent transpositions, by three rolling rows. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t rows[3][MAX_NAME + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t cost = !same(a[i - 1], b[j - 1]);
			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + cost);
			bool swapped = i > 1 && j > 1 && are_swapped(a + i - 2, b + j - 2);
			if (swapped && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}

		size_t *spare = before;
		before = last;
		last = now;
		now = spare;
	}

	return last[m];
}

static const char *nearest(const char *name, const char *const *candidates, size_t count, bool last)
{
	size_t n = strlen(name);

	if (n > MAX_NAME)
		return NULL;
	size_t best = 1 + n / 4 + 1;
	const char *found = NULL;
	for (size_t i = 0; i < count; i++) {
		size_t m = candidates[i] ? strlen(candidates[i]) : MAX_NAME + 1;
		if (m > MAX_NAME)
			continue;
		size_t d = distance(name, n, candidates[i], m);
		if (d == 0)
			return candidates[i];
		bool preferred = d < best || (last && found && d == best);
		/* A distance of the whole length means not one letter in common. */
		if (preferred && d < (n > m ? n : m)) {
			best = d;
			found = candidates[i];
		}
	}

	return found;
}

const char *suggest_nearest(const char *name, const char *const *candidates, size_t count)
{
	return nearest(name, candidates, count, false);
}

/* Whether it is the other with more behind a dot; "" begins all. */
static bool goes_on(const char *longer, const char *version)
{
	size_t len = strlen(version);
	return strncmp(longer, version, len) == 0 && (!len || longer[len] == '.');
}

/* The last one that begins with the version and goes on behind
 * a dot ("": any), and is plain ("2.6.0", not "2.6.0-debian"). */
static const char *last_of(const char *version, const char *const *candidates, size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (goes_on(candidates[i], version) && !strchr(candidates[i], '-'))
			return candidates[i];
	return NULL;
}

/* "12.8", "128" and "cuda12_8" have the same digits. */
static bool same_digits(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strcspn(a, "0123456789");
		b += strcspn(b, "0123456789");
		if (*a != *b || !*a)
			return *a == *b;
	}
}

const char *suggest_version(const char *version, const char *const *candidates, size_t count)
{
	const char *found = NULL;

	if (!strpbrk(version, "0123456789")) {
		if (strcmp(version, "latest") == 0 || strcmp(version, "newest") == 0 ||
		    strcmp(version, "stable") == 0)
			found = last_of("", candidates, count);
		return found ? found : suggest_nearest(version, candidates, count);
	}

	if (count > 1 && goes_on(candidates[0], version) && goes_on(candidates[count - 1], version))
		return NULL;
	found = last_of(version, candidates, count);
	for (size_t i = 0; i < count && !found && !strchr(version, '-'); i++)
		if (goes_on(version, candidates[i]) || same_digits(version, candidates[i]))
			found = candidates[i];
	return found ? found : nearest(version, candidates, count, true);
}

int suggest_hint(struct err *e, const char *near, const char *rest)
{
	const char *gap = *rest ? " " : "";
	return near ? err_hint(e, "did you mean '%s'?%s%s", near, gap, rest)
		    : err_hint(e, "%s", rest);
}

int suggest_known(struct err *e, const char *near, const struct strlist *known)
{
	AUTO_ARENA struct arena a = {0};
	return suggest_hint(e, near, arena_printf(&a, "known: %s", strlist_join(known, &a, " ")));
}

/* Returns the length of the character at `s`, 0 if it is not one by RFC 3629: no surrogates,
 * nothing overlong, nothing above 10FFFF. */
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

/* Controls of ASCII and of C1, and the characters of Unicode that are not seen
 * and change what is: marks, overrides and isolates of direction (UAX 9), line
 * and paragraph separators, a width of nothing, tags. */
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

void utf8_escape(struct buf *out, const char *json)
{
	const char *from = json;
	uint32_t c;

	for (unsigned n; *json; json += n ? n : 1) {
		n = char_at((const unsigned char *)json, &c);
		if (n == 0 || c < 0x7f || !is_hidden(c)) /* new lines separate members */
			continue;
		buf_add(out, from, (size_t)(json - from));
		from = json + n;
		if (c < 0x10000)
			buf_printf(out, "\\u%04x", c);
		else /* in two halves, as in UTF-16 */
			buf_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	}

	buf_addstr(out, from);
}

/* Returns the length of a sequence that sets a colour and does no more; 0 for any other text. */
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
		known |= (size_t)(p - s - 2) == strlen(codes[i]) &&
			 memcmp(s + 2, codes[i], strlen(codes[i])) == 0;
	return known && p < end && *p == 'm' ? (size_t)(p + 1 - s) : 0;
}

void utf8_show(struct buf *out, const char *s, size_t len, bool colours)
{
	for (const char *end = s + len; s < end;) {
		uint32_t c;
		/* Behind `end` is a NUL or more text: a character
		 * that goes over it is cut, so not one. */
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
