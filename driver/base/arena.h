/* Arena: memory with one lifetime. Allocation failure aborts. */
#pragma once

#include "base/cleanup.h"

struct arena_block;

/* Zero-initialise: `struct arena a = {0};` */
struct arena {
	struct arena_block *head;
};

/* arena_alloc: `size` zeroed bytes, aligned for any object; never NULL, also for size 0. */
void *arena_alloc(struct arena *a, size_t size) __attribute__((malloc, returns_nonnull));
/* arena_array: `count` zeroed objects of `size` bytes; aborts on overflow. */
void *arena_array(struct arena *a, size_t count, size_t size)
	__attribute__((malloc, returns_nonnull));
/* arena_grow: a copy of a full array of `*cap` objects with twice the room (`first` objects for an
 * empty one), the rest zeroed; *cap follows. */
void *arena_grow(struct arena *a, const void *items, size_t *cap, size_t first, size_t size)
	__attribute__((returns_nonnull));
/* array_sort: qsort of an array that may be empty, and then NULL. */
static inline void array_sort(void *items, size_t count, size_t size,
			      int (*compare)(const void *, const void *))
{
	if (count)
		qsort(items, count, size, compare);
}
/* number_cmp: for array_sort: the order of objects that begin with a uint64_t. */
int number_cmp(const void *a, const void *b) __attribute__((pure));
/* arena_room: the array, grown where its `count` objects fill it. */
static inline void *arena_room(struct arena *a, void *items, size_t count, size_t *cap,
			       size_t first, size_t size)
{
	return count < *cap ? items : arena_grow(a, items, cap, first, size);
}
char *arena_strdup(struct arena *a, const char *s) __attribute__((returns_nonnull));
char *arena_strndup(struct arena *a, const char *s, size_t n) __attribute__((returns_nonnull));
char *arena_printf(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0), returns_nonnull));
/* arena_join: what `from` holds lives as long as `a` from now on; `from` is empty. */
void arena_join(struct arena *a, struct arena *from);
/* arena_release: frees everything; the arena may be used again. */
void arena_release(struct arena *a);

#define AUTO_ARENA CLEANUP(arena_release)
