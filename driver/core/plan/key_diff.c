#include "core/plan/key_diff.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define MAX_VALUE 120

/* One line: what it is about ("toolchain gcc", "env USE_MPI", "python") and what it says. */
struct input {
	const char *about, *value;
};

struct inputs {
	struct input *items;
	size_t count;
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_+.-", c));
}

/* A name inside the value, as "USE_MPI=ON" and "gcc: gcc (Debian) 14" have: its length, 0 for none; *ret_rest: what
 * follows. */
static size_t inner_name(const char *value, const char **ret_rest)
{
	size_t n = 0;
	while (is_name(value[n]))
		n++;
	if (n && value[n] == '=')
		*ret_rest = value + n + 1;
	else if (n && value[n] == ':' && value[n + 1] == ' ')
		*ret_rest = value + n + 2;
	else
		return 0;
	return n;
}

/* Digests are cut: their beginning tells them apart. */
static const char *shown(const char *value, struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	while (*value) {
		size_t n = strspn(value, "0123456789abcdef");
		if (n == 64 && !isalnum((unsigned char)value[n])) {
			buf_add(&out, value, 12);
			value += n;
			continue;
		}
		do
			buf_addc(&out, *value++);
		while (*value && isalnum((unsigned char)value[-1]));
	}
	if (out.len > MAX_VALUE) {
		out.len = MAX_VALUE;
		while (out.len && ((unsigned char)out.data[out.len] & 0xC0) == 0x80) /* not through a character */
			out.len--;
		buf_addstr(&out, "...");
	}
	return arena_strdup(a, buf_cstr(&out));
}

static int by_about(const void *a, const void *b)
{
	const struct input *x = a, *y = b;
	int c = strcmp(x->about, y->about);
	return c ? c : strcmp(x->value, y->value);
}

static struct inputs parse(const char *text, struct arena *a)
{
	struct strlist lines = {0};
	struct inputs in = {0};
	strlist_split(&lines, a, text, "\n");
	in.items = arena_array(a, lines.count + 1, sizeof(*in.items));
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i], *colon = strstr(line, ": "), *rest;
		if (!*line)
			continue;
		struct input *one = &in.items[in.count++];
		*one = (struct input){.about = line, .value = ""};
		if (!colon)
			continue;
		one->about = arena_strndup(a, line, (size_t)(colon - line));
		one->value = colon + 2;
		size_t n = inner_name(one->value, &rest);
		if (n) {
			one->about = arena_printf(a, "%s %.*s", one->about, (int)n, one->value);
			one->value = rest;
		}
	}
	qsort(in.items, in.count, sizeof(*in.items), by_about);
	return in;
}

static void say(struct strlist *ret, struct arena *a, const char *about, const char *old, const char *new)
{
	strlist_addf(ret, a, "%s: %s → %s", about, old ? shown(old, a) : "none", new ? shown(new, a) : "none");
}

void key_diff(const char *old, const char *new, struct arena *a, struct strlist *ret)
{
	struct inputs x = parse(old, a), y = parse(new, a);
	for (size_t i = 0, k = 0; i < x.count || k < y.count;) {
		int c = i == x.count ? 1 : k == y.count ? -1 : strcmp(x.items[i].about, y.items[k].about);
		if (c < 0) {
			say(ret, a, x.items[i].about, x.items[i].value, NULL);
			i++;
		} else if (c > 0) {
			say(ret, a, y.items[k].about, NULL, y.items[k].value);
			k++;
		} else {
			if (strcmp(x.items[i].value, y.items[k].value) != 0)
				say(ret, a, x.items[i].about, x.items[i].value, y.items[k].value);
			i++;
			k++;
		}
	}
}
