#include <strings.h>

#include "core/wheel/wheel.h"

static void insert(struct wheel_headers *h, struct arena *a, size_t at, struct wheel_header item)
{
	h->items = arena_room(a, h->items, h->count, &h->cap, 32, sizeof(*h->items));
	memmove(h->items + at + 1, h->items + at, (h->count++ - at) * sizeof(*h->items));
	h->items[at] = item;
}

static void remove_at(struct wheel_headers *h, size_t at)
{
	h->count--;
	memmove(h->items + at, h->items + at + 1, (h->count - at) * sizeof(*h->items));
}

static const char *line_end(const char *at, const char *end)
{
	const char *nl = memchr(at, '\n', (size_t)(end - at));
	return nl ? nl + 1 : end;
}

static size_t name_length(const char *at, const char *end)
{
	const char *p = at;

	while (p<end && * p> ' ' && *p < 0x7f && *p != ':')
		p++;
	return p < end && *p == ':' ? (size_t)(p - at) : 0;
}

static char *trimmed(struct arena *a, const char *from, const char *to)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	return arena_strndup(a, from, (size_t)(to - from));
}

/* Whether an empty line begins here. */
static bool is_empty_line(const char *at, const char *end)
{
	if (*at == '\n')
		return true;
	return *at == '\r' && end - at > 1 && at[1] == '\n';
}

int wheel_headers_parse(const struct file_bytes *in, struct arena *a, struct wheel_headers *ret,
			struct err *e)
{
	const char *text = in->data, *end = text + in->size, *at = text;
	unsigned line = 1;

	if (in->size && memchr(text, 0, in->size))
		return err_set(e, ERR_INTEGRITY, "'%s' holds NUL bytes", in->name);
	struct wheel_headers h = {.body = "", .separator = "", .eol = "\n"};
	if (in->size && line_end(text, end) - text >= 2 && line_end(text, end)[-1] == '\n' &&
	    line_end(text, end)[-2] == '\r')
		h.eol = "\r\n";
	while (at < end && !is_empty_line(at, end)) {
		size_t name = name_length(at, end);
		if (!name)
			return err_set(e, ERR_INTEGRITY, "'%s' line %u: no \"Name: value\"",
				       in->name, line);
		const char *next = line_end(at, end);
		/* Lines that begin with white space continue the value. */
		for (line++; next < end && (*next == ' ' || *next == '\t'); line++)
			next = line_end(next, end);
		insert(&h, a, h.count,
		       (struct wheel_header){arena_strndup(a, at, name),
					     trimmed(a, at + name + 1, next),
					     arena_strndup(a, at, (size_t)(next - at))});
		at = next;
	}

	if (at < end) {
		h.separator = *at == '\n' ? "\n" : "\r\n";
		at += strlen(h.separator);
		h.body = arena_strndup(a, at, (size_t)(end - at));
	}

	*ret = h;
	return 0;
}

int wheel_zip_headers(const struct zip_reader *z, const char *info, const char *name,
		      struct arena *a, struct wheel_headers *ret, struct err *e)
{
	enum { HEADERS_MAX = 16 << 20 };
	struct buf AUTO_BUF text = {0};
	const char *path = path_join(a, info, name);

	if (wheel_zip_text(z, path, HEADERS_MAX, &text, e) < 0)
		return -1;
	return wheel_headers_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, a, ret,
				   e);
}

static bool is_named(const struct wheel_headers *h, size_t i, const char *name)
{
	return strcasecmp(h->items[i].key, name) == 0;
}

const char *wheel_headers_get(const struct wheel_headers *h, const char *name)
{
	for (size_t i = 0; i < h->count; i++)
		if (is_named(h, i, name))
			return h->items[i].value;
	return NULL;
}

void wheel_headers_all(const struct wheel_headers *h, const char *name, struct arena *a,
		       struct strlist *ret)
{
	for (size_t i = 0; i < h->count; i++)
		if (is_named(h, i, name))
			strlist_ref(ret, a, h->items[i].value);
}

typedef bool (*same_fn)(const char *old, const char *new, struct arena *a);

/* As wheel_headers_set among values for which `same` holds; NULL: all. */
static void replace(struct wheel_headers *h, struct arena *a, const char *name, const char *value,
		    same_fn same)
{
	bool done = false;

	for (size_t i = 0; i < h->count; i++) {
		struct wheel_header *item = &h->items[i];
		if (!is_named(h, i, name) || (same && !same(item->value, value, a)))
			continue;
		if (done)
			remove_at(h, i--);
		else if (strcmp(item->value, value) != 0)
			*item = (struct wheel_header){item->key, arena_strdup(a, value), NULL};
		done = true;
	}

	if (!done)
		wheel_headers_add(h, a, name, value);
}

void wheel_headers_set(struct wheel_headers *h, struct arena *a, const char *name,
		       const char *value)
{
	replace(h, a, name, value, NULL);
}

void wheel_headers_add(struct wheel_headers *h, struct arena *a, const char *name,
		       const char *value)
{
	size_t at = h->count;

	while (at > 0 && !is_named(h, at - 1, name))
		at--;
	if (at == 0)
		at = h->count;
	insert(h, a, at,
	       (struct wheel_header){arena_strdup(a, name), arena_strdup(a, value), NULL});
}

void wheel_headers_remove(struct wheel_headers *h, const char *name, const char *value_prefix)
{
	for (size_t i = h->count; i-- > 0;)
		if (is_named(h, i, name) &&
		    strncmp(h->items[i].value, value_prefix, strlen(value_prefix)) == 0)
			remove_at(h, i);
}

char *wheel_headers_text(const struct wheel_headers *h, struct arena *a)
{
	struct buf AUTO_BUF out = {0};

	for (size_t i = 0; i < h->count; i++) {
		/* The last line of a file may lack its end. */
		if (out.len && out.data[out.len - 1] != '\n')
			buf_addstr(&out, h->eol);
		if (h->items[i].raw)
			buf_addstr(&out, h->items[i].raw);
		else
			buf_printf(&out, "%s: %s%s", h->items[i].key, h->items[i].value, h->eol);
	}

	return arena_printf(a, "%s%s%s", buf_cstr(&out), h->separator, h->body);
}

char *wheel_requires_name(const char *requirement, struct arena *a)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

	requirement += strspn(requirement, " \t");
	return wheel_normalize(arena_strndup(a, requirement, strspn(requirement, letters)), a);
}

static bool same_distribution(const char *old, const char *new, struct arena *a)
{
	return strcmp(wheel_requires_name(old, a), wheel_requires_name(new, a)) == 0;
}

void wheel_requires_replace(struct wheel_headers *h, struct arena *a, const char *requirement)
{
	replace(h, a, "Requires-Dist", requirement, same_distribution);
}
