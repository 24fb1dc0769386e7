#include "base/strlist.h"

#include <fnmatch.h>

void strlist_ref(struct strlist *l, struct arena *a, const char *s)
{
	if (l->count + 1 >= l->cap) /* with room for the final NULL */
		l->items = arena_grow(a, l->items, &l->cap, 8, sizeof(*l->items));
	l->items[l->count++] = s;
	l->items[l->count] = NULL;
}

void strlist_add(struct strlist *l, struct arena *a, const char *s)
{
	strlist_ref(l, a, arena_strdup(a, s));
}

void strlist_once(struct strlist *l, struct arena *a, const char *s)
{
	if (!strlist_contains(l, s))
		strlist_ref(l, a, s);
}

void strlist_refs(struct strlist *l, struct arena *a, const char *const *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		strlist_ref(l, a, items[i]);
}

void strlist_addf(struct strlist *l, struct arena *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strlist_ref(l, a, arena_vprintf(a, fmt, ap));
	va_end(ap);
}

void strlist_append(struct strlist *l, struct arena *a, const struct strlist *other)
{
	/* The count is taken first: a list may be appended to itself. */
	size_t count = other->count;

	for (size_t i = 0; i < count; i++)
		strlist_add(l, a, other->items[i]);
}

void strlist_split(struct strlist *l, struct arena *a, const char *s, const char *seps)
{
	while (*s) {
		size_t n = strcspn(s, seps);
		if (n)
			strlist_ref(l, a, arena_strndup(a, s, n));
		s += n;
		if (*s)
			s++;
	}
}

bool strlist_contains(const struct strlist *l, const char *s)
{
	return strings_contain(l->items, l->count, s);
}

bool strings_contain(const char *const *items, size_t count, const char *s)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(items[i], s) == 0)
			return true;
	return false;
}

bool strings_allow(const char *const *items, size_t count, const char *s)
{
	return count == 0 || strings_contain(items, count, s);
}

char *strlist_join(const struct strlist *l, struct arena *a, const char *sep)
{
	size_t sep_len = strlen(sep), total = 1;

	for (size_t i = 0; i < l->count; i++)
		total += strlen(l->items[i]) + sep_len;
	char *out = arena_alloc(a, total), *to = out;
	for (size_t i = 0; i < l->count; i++) {
		if (i)
			to = stpcpy(to, sep);
		to = stpcpy(to, l->items[i]);
	}

	*to = '\0';
	return out;
}

bool strings_match(const char *const *patterns, size_t count, const char *s)
{
	for (size_t i = 0; i < count; i++)
		if (fnmatch(patterns[i], s, 0) == 0)
			return true;
	return false;
}

int text_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void *text_search(const char *text, const void *items, size_t count, size_t size)
{
	for (const char *it = items; count--; it += size)
		if (text_cmp(&text, it) == 0)
			return (void *)(uintptr_t)it;
	return NULL;
}

void *text_find(const char *text, const void *items, size_t count, size_t size)
{
	return count ? bsearch(&text, items, count, size, text_cmp) : NULL;
}

void strlist_sort(struct strlist *l)
{
	array_sort(l->items, l->count, sizeof(*l->items), text_cmp);
}

const char *const *strlist_argv(struct strlist *l, struct arena *a)
{
	if (!l->items)
		l->items = arena_grow(a, NULL, &l->cap, 8, sizeof(*l->items));
	return l->items;
}

static struct kv *find_key(const struct kvlist *l, const char *key)
{
	return text_search(key, l->items, l->count, sizeof(*l->items));
}

void kvlist_set(struct kvlist *l, struct arena *a, const char *key, const char *value)
{
	struct kv *have = find_key(l, key);

	if (have) {
		have->value = arena_strdup(a, value);
		return;
	}

	l->items = arena_room(a, l->items, l->count, &l->cap, 8, sizeof(*l->items));
	l->items[l->count].key = arena_strdup(a, key);
	l->items[l->count++].value = arena_strdup(a, value);
}

const char *kvlist_get(const struct kvlist *l, const char *key)
{
	const struct kv *have = find_key(l, key);
	return have ? have->value : NULL;
}

void kvlist_sort(struct kvlist *l)
{
	array_sort(l->items, l->count, sizeof(*l->items), text_cmp);
}
