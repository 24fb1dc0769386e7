#include "base/arena.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ONE_BLOCK_EACH 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define ONE_BLOCK_EACH 1
#endif

/* Under AddressSanitizer every allocation is a block of
 * its own, so that an overrun inside the arena is seen. */
#ifdef ONE_BLOCK_EACH
#define FIRST_BLOCK 0
#else
#define FIRST_BLOCK ((size_t)2 * 1024)
#endif
#define LARGEST_BLOCK ((size_t)64 * 1024)

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t size;
	_Alignas(max_align_t) unsigned char data[];
};

static size_t align_up(size_t n)
{
	const size_t mask = _Alignof(max_align_t) - 1;
	return (n + mask) & ~mask;
}

static struct arena_block *block_new(size_t size)
{
	/* calloc, because fresh pages from the kernel are zero already and need no second pass. */
	struct arena_block *b = calloc(1, sizeof(*b) + size);

	if (!b)
		abort();
	b->size = size;
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		abort();
	size = align_up(size ? size : 1);
	struct arena_block *b = a->head;
	if (b && size <= b->size - b->used) {
		void *p = b->data + b->used;
		b->used += size;
		return p;
	}

	/* Most arenas stay small, and each block costs zeroes. */
	size_t room = !b || !FIRST_BLOCK            ? FIRST_BLOCK
		      : b->size < LARGEST_BLOCK / 2 ? b->size * 2
						    : LARGEST_BLOCK;
	struct arena_block *fresh = block_new(size > room ? size : room);
	fresh->used = size;
	if (b && size > room / 4) {
		/* A large object must not retire a block that still has room. */
		fresh->next = b->next;
		b->next = fresh;
	} else {
		fresh->next = b;
		a->head = fresh;
	}

	return fresh->data;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(count, size, &total))
		abort();
	return arena_alloc(a, total);
}

void *arena_grow(struct arena *a, const void *items, size_t *cap, size_t first, size_t size)
{
	size_t more;

	if (__builtin_mul_overflow(*cap, 2, &more))
		abort();
	void *grown = arena_array(a, more ? more : first, size);
	if (*cap)
		memcpy(grown, items, *cap * size);
	*cap = more ? more : first;
	return grown;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *out = arena_alloc(a, len + 1);

	memcpy(out, s, len);
	return out;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
	char small[256]; /* most texts fit */
	va_list again;

	va_copy(again, ap);
	int n = vsnprintf(small, sizeof(small), fmt, again);
	va_end(again);
	if (n < 0)
		abort();
	char *out = arena_alloc(a, (size_t)n + 1);
	if ((size_t)n < sizeof(small))
		memcpy(out, small, (size_t)n);
	else
		vsnprintf(out, (size_t)n + 1, fmt, ap);
	return out;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *out = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return out;
}

void arena_join(struct arena *a, struct arena *from)
{
	struct arena_block **end = &a->head;

	while (*end)
		end = &(*end)->next;
	*end = from->head;
	from->head = NULL;
}

void arena_release(struct arena *a)
{
	struct arena_block *b = a->head;

	while (b) {
		struct arena_block *next = b->next;
		free(b);
		b = next;
	}

	a->head = NULL;
}

int number_cmp(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}
