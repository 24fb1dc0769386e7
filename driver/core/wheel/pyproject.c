#include "core/wheel/wheel.h"

enum { MAX_DEPTH = 32 };

#define BARE "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

struct toml {
	const char *p, *end, *what;
	unsigned line;
	unsigned depth; /* of brackets */
	struct arena *a;
};

static int bad(const struct toml *t, const char *why, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "'%s':%u: %s", t->what, t->line, why);
}

static char peek(const struct toml *t)
{
	return t->p < t->end ? *t->p : '\0';
}

static bool starts(const struct toml *t, const char *with)
{
	size_t n = strlen(with);
	return (size_t)(t->end - t->p) >= n && memcmp(t->p, with, n) == 0;
}

/* Blanks and comments, and with `lines` also the ends of lines. */
static void skip(struct toml *t, bool lines)
{
	for (; t->p < t->end; t->p++) {
		if (*t->p == '#')
			while (t->p + 1 < t->end && t->p[1] != '\n')
				t->p++;
		else if (*t->p == '\n' && lines)
			t->line++;
		else if (*t->p != ' ' && *t->p != '\t' && *t->p != '\r')
			return;
	}
}

/* Adds the character of an escape in names and requirements; other escapes stay as they are
 * written. */
static void escape(struct toml *t, struct buf *out)
{
	static const char from[] = "nt\"\\", to[] = "\n\t\"\\";
	const char *at = t->p < t->end && *t->p ? strchr(from, *t->p) : NULL;

	if (at)
		t->p++;
	buf_addc(out, at ? to[at - from] : '\\');
}

/* "a", 'a', and both kinds with three quotes. */
static int string(struct toml *t, const char **ret, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	const char quote[] = {*t->p, *t->p, *t->p, '\0'};
	const bool many = starts(t, quote);

	t->p += many ? 3 : 1;
	while (t->p < t->end && !(many ? starts(t, quote) : *t->p == *quote)) {
		const char c = *t->p++;
		if (c == '\0' || (c == '\n' && !many))
			return bad(t, "a text does not end on its line", e);
		t->line += c == '\n';
		if (c == '\\' && *quote == '"')
			escape(t, &out);
		else
			buf_addc(&out, c);
	}

	if (t->p >= t->end)
		return bad(t, "a text does not end", e);
	t->p += many ? 3 : 1;
	*ret = arena_strdup(t->a, buf_cstr(&out));
	return 0;
}

/* a.b."c": as one text with dots. */
static int key(struct toml *t, const char **ret, struct err *e)
{
	struct strlist parts = {0};

	do {
		const char *part = "";
		t->p += parts.count > 0;
		skip(t, false);
		size_t n = 0;
		while (t->p + n < t->end && t->p[n] && strchr(BARE, t->p[n]))
			n++;
		if (n) {
			part = arena_strndup(t->a, t->p, n);
			t->p += n;
		} else if (peek(t) != '"' && peek(t) != '\'') {
			return bad(t, "a key was expected", e);
		} else if (string(t, &part, e) < 0) {
			return -1;
		}

		strlist_ref(&parts, t->a, part);
		skip(t, false);
	} while (peek(t) == '.');
	*ret = strlist_join(&parts, t->a, ".");
	return 0;
}

static int value(struct toml *t, struct strlist *ret, struct err *e);

/* [a, b] and {k = a}: what is in them, until the bracket that ends them. */
static int several(struct toml *t, char end, struct strlist *ret, struct err *e)
{
	const char *name;

	if (++t->depth > MAX_DEPTH)
		return bad(t, "too many brackets", e);
	for (t->p++;; t->p++) {
		skip(t, true);
		if (peek(t) == end) {
			t->p++;
			t->depth--;
			return 0;
		}

		if (end == '}') {
			if (key(t, &name, e) < 0)
				return -1;
			if (peek(t) != '=')
				return bad(t, "'=' was expected", e);
			t->p++;
		}

		if (value(t, ret, e) < 0)
			return -1;
		skip(t, true);
		if (peek(t) == end)
			t->p--;
		else if (peek(t) != ',')
			return bad(t, "a list does not end", e);
	}
}

/* The texts of a value; of another kind it has none. */
static int value(struct toml *t, struct strlist *ret, struct err *e)
{
	const char *text = NULL, *from;

	skip(t, true);
	switch (peek(t)) {
	case '"':
	case '\'':
		if (string(t, &text, e) < 0)
			return -1;
		strlist_ref(ret, t->a, text);
		return 0;
	case '[':
		return several(t, ']', ret, e);
	case '{':
		return several(t, '}', ret, e);
	default:
		for (from = t->p; t->p < t->end && *t->p && !strchr(",]}#\n", *t->p);)
			t->p++;
		return t->p > from ? 0 : bad(t, "a value was expected", e);
	}
}

static int table(struct toml *t, const char **ret, struct err *e)
{
	const bool twice = starts(t, "[[");

	t->p += twice ? 2 : 1;
	if (key(t, ret, e) < 0)
		return -1;
	if (!starts(t, twice ? "]]" : "]"))
		return bad(t, "']' was expected", e);
	t->p += twice ? 2 : 1;
	return 0;
}

static void take(struct pyproject *p, const char *name, const struct strlist *texts)
{
	const struct {
		const char *name, **text;
		struct strlist *list;
	} known[] = {{"project.name", &p->name, NULL},
		     {"project.version", &p->version, NULL},
		     {"project.requires-python", &p->requires_python, NULL},
		     {"project.dependencies", NULL, &p->dependencies},
		     {"build-system.requires", NULL, &p->requires}};

	p->build_system |= strncmp(name, "build-system.", 13) == 0;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(known[i].name, name) != 0)
			continue;
		if (known[i].list)
			*known[i].list = *texts;
		else if (texts->count == 1)
			*known[i].text = texts->items[0];
	}
}

int pyproject_read(const struct file_bytes *from, struct arena *a, struct pyproject *ret,
		   struct err *e)
{
	const char *text = from->data;
	struct toml t = {
		.p = text, .end = text + from->size, .what = from->name, .line = 1, .a = a};
	struct pyproject p = {.name = "", .version = "", .requires_python = ""};
	const char *in = "", *name;

	for (skip(&t, true); t.p < t.end; skip(&t, true)) {
		struct strlist texts = {0};
		if (*t.p == '[') {
			if (table(&t, &in, e) < 0)
				return -1;
		} else {
			if (key(&t, &name, e) < 0)
				return -1;
			if (peek(&t) != '=')
				return bad(&t, "'=' was expected", e);
			t.p++;
			if (value(&t, &texts, e) < 0)
				return -1;
			take(&p, *in ? arena_printf(a, "%s.%s", in, name) : name, &texts);
		}

		skip(&t, false);
		if (t.p < t.end && *t.p != '\n')
			return bad(&t, "more on the line than was expected", e);
	}

	*ret = p;
	return 0;
}
