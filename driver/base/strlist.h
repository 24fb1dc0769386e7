/* Lists of strings and of key-value pairs, living in an arena. */
#pragma once

#include "base/arena.h"

/* items is always NULL-terminated once something was added, so it serves as an argv. */
struct strlist {
	const char **items;
	size_t count;
	size_t cap;
};

/* strlist_add: copies `s` into the arena. strlist_ref: keeps the pointer. */
void strlist_add(struct strlist *l, struct arena *a, const char *s);
void strlist_ref(struct strlist *l, struct arena *a, const char *s);
/* strlist_once: strlist_ref of what is not in the list yet. strlist_refs: of an array. */
void strlist_once(struct strlist *l, struct arena *a, const char *s);
void strlist_refs(struct strlist *l, struct arena *a, const char *const *items, size_t count);
void strlist_addf(struct strlist *l, struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void strlist_append(struct strlist *l, struct arena *a, const struct strlist *other);
/* strlist_split: adds the pieces of `s` between the characters `seps`, empty ones left out. */
void strlist_split(struct strlist *l, struct arena *a, const char *s, const char *seps);
bool strlist_contains(const struct strlist *l, const char *s);
/* strings_contain: like strlist_contains, for a plain array. */
bool strings_contain(const char *const *items, size_t count, const char *s);
/* strings_allow: like strings_contain, but an empty array allows anything. */
bool strings_allow(const char *const *items, size_t count, const char *s);
/* strings_match: whether one of the patterns of fnmatch(3) fits; '*' fits '/' too. */
bool strings_match(const char *const *patterns, size_t count, const char *s);
/* text_cmp: for qsort and bsearch: the order, by bytes, of objects that begin with a string. */
int text_cmp(const void *a, const void *b);
/* text_search: the first such object whose string is `text`; NULL. text_find: of sorted ones. */
void *text_search(const char *text, const void *items, size_t count, size_t size);
void *text_find(const char *text, const void *items, size_t count, size_t size);
/* strlist_join: one string, `sep` between; "" for an empty list. */
char *strlist_join(const struct strlist *l, struct arena *a, const char *sep)
	__attribute__((returns_nonnull));
/* strlist_sort: by bytes (strcmp), independent of the locale. */
void strlist_sort(struct strlist *l);
/* strlist_argv: the items, NULL-terminated, also for an empty list. */
const char *const *strlist_argv(struct strlist *l, struct arena *a)
	__attribute__((returns_nonnull));

struct kv {
	const char *key;
	const char *value;
};

struct kvlist {
	struct kv *items;
	size_t count;
	size_t cap;
};

/* kvlist_set: replaces the value of a key that is there, else appends; copies both. */
void kvlist_set(struct kvlist *l, struct arena *a, const char *key, const char *value);
/* kvlist_get: the value, or NULL. */
const char *kvlist_get(const struct kvlist *l, const char *key);
void kvlist_sort(struct kvlist *l);
