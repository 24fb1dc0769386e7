#include "base/strlist.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The arena cannot grow in place, so an outgrown array stays behind in it: doubling keeps that below the final size. */
static void *grow(struct arena *a, const void *items, size_t count, size_t size, size_t *cap)
{
	*cap = *cap ? *cap * 2 : 8;
	void *fresh = arena_array(a, *cap, size);
	if (count)
		memcpy(fresh, items, count * size);
	return fresh;
}

void strlist_ref(struct strlist *l, struct arena *a, const char *s)
{
	if (l->count + 1 >= l->cap)
		l->items = grow(a, l->items, l->count, sizeof(*l->items), &l->cap);
	l->items[l->count++] = s;
	l->items[l->count] = NULL;
}

void strlist_add(struct strlist *l, struct arena *a, const char *s)
{
	strlist_ref(l, a, arena_strdup(a, s));
}

void strlist_addf(struct strlist *l, struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	char *s = arena_alloc(a, (size_t)n + 1);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	strlist_ref(l, a, s);
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
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i], s) == 0)
			return true;
	return false;
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

static int cmp_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void strlist_sort(struct strlist *l)
{
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), cmp_strings);
}

const char *const *strlist_argv(struct strlist *l, struct arena *a)
{
	if (!l->items)
		l->items = grow(a, NULL, 0, sizeof(*l->items), &l->cap);
	return l->items;
}

void kvlist_set(struct kvlist *l, struct arena *a, const char *key, const char *value)
{
	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(l->items[i].key, key) == 0) {
			l->items[i].value = arena_strdup(a, value);
			return;
		}
	}
	if (l->count == l->cap)
		l->items = grow(a, l->items, l->count, sizeof(*l->items), &l->cap);
	l->items[l->count].key = arena_strdup(a, key);
	l->items[l->count++].value = arena_strdup(a, value);
}

const char *kvlist_get(const struct kvlist *l, const char *key)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i].key, key) == 0)
			return l->items[i].value;
	return NULL;
}

static int cmp_keys(const void *a, const void *b)
{
	return strcmp(((const struct kv *)a)->key, ((const struct kv *)b)->key);
}

void kvlist_sort(struct kvlist *l)
{
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), cmp_keys);
}
