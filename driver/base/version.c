#include "base/text.h"

#include "base/path.h"

/* The next numeric component of *s without leading zeros, and *s moved behind it and its dot; length 0 at the end (an
 * absent component counts as zero). */
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

/* Whether the leading components of `v` are those of `prefix`; missing ones of `v` count as zero. */
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
	while (i < ARRAY_LEN(operators) && strncmp(clause, operators[i].text, strlen(operators[i].text)) != 0)
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
	if ((accepts == EQUAL || accepts == (LESS | MORE)) && path_has_suffix(wanted, ".*") && len - skip > 2) {
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
			return err_hint(e, "write clauses like '>=3.27,<4', '==2.9.*' or '!=1.2', with commas between");
		}
		all = all && r;
		p = next;
	}
	*ret = all;
	return 0;
}
