#include "support.h"

#include <string.h>

#include "base/arena.h"

static void memory_is_zeroed_and_aligned(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	for (size_t size = 0; size < 200; size++) {
		unsigned char *p = arena_alloc(&a, size);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, size);
	}
}

static void objects_do_not_overlap(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	enum { N = 3000 };
	uint32_t *items[N];
	for (uint32_t i = 0; i < N; i++) {
		items[i] = arena_alloc(&a, 40 + i % 100);
		*items[i] = i;
	}

	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(*items[i], i);
}

static void large_objects_leave_small_ones_intact(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	char *small = arena_strdup(&a, "small");
	char *big = arena_alloc(&a, 1 << 20);
	memset(big, 'b', 1 << 20);
	char *after = arena_strdup(&a, "after");
	assert_string_equal(small, "small");
	assert_string_equal(after, "after");
	assert_int_equal(big[(1 << 20) - 1], 'b');
}

static void array_is_zeroed(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	uint64_t *v = arena_array(&a, 1000, sizeof(*v));
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(v[i], 0);
	assert_non_null(arena_array(&a, 0, 8));
}

static void strndup_stops_at_n_or_nul(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(arena_strndup(&a, "hello", 3), "hel");
	assert_string_equal(arena_strndup(&a, "hello", 99), "hello");
	const char raw[3] = {'a', 'b', 'c'}; /* no NUL at all */
	assert_string_equal(arena_strndup(&a, raw, 3), "abc");
	assert_string_equal(arena_strndup(&a, "", 0), "");
}

static void printf_formats_any_length(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(arena_printf(&a, "%s-%d", "sm", 90), "sm-90");
	char *wide = arena_printf(&a, "%100000d", 7);
	assert_int_equal(strlen(wide), 100000);
	assert_int_equal(wide[99999], '7');
}

static void released_arena_may_be_used_again(void **state)
{
	(void)state;
	struct arena a = {0};
	arena_strdup(&a, "one");
	arena_release(&a);
	assert_null(a.head);
	assert_string_equal(arena_strdup(&a, "two"), "two");
	arena_release(&a);
	arena_release(&a);
	assert_null(a.head);
}

static void an_array_grows_and_keeps_what_it_has(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	size_t cap = 0, count = 0;
	unsigned *items = NULL;
	for (unsigned i = 1; i <= 100; i++) {
		if (count == cap)
			items = arena_grow(&a, items, &cap, 3, sizeof(*items));
		assert_int_equal(items[count], 0);
		items[count++] = i;
	}

	assert_int_equal(cap, 192);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(items[i], i + 1);
}

static void joined_arenas_live_as_long_as_the_first(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct arena b = {0};
	arena_join(&a, &b);
	assert_null(a.head);
	const char *two = arena_strdup(&b, "two"), *large = arena_printf(&b, "%100000d", 7);
	arena_join(&a, &b);
	assert_null(b.head);
	const char *one = arena_strdup(&a, "one");
	arena_strdup(&b, "three");
	arena_join(&a, &b);
	arena_release(&b);
	assert_string_equal(one, "one");
	assert_string_equal(two, "two");
	assert_int_equal(strlen(large), 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_and_aligned),
		cmocka_unit_test(objects_do_not_overlap),
		cmocka_unit_test(large_objects_leave_small_ones_intact),
		cmocka_unit_test(array_is_zeroed),
		cmocka_unit_test(strndup_stops_at_n_or_nul),
		cmocka_unit_test(printf_formats_any_length),
		cmocka_unit_test(an_array_grows_and_keeps_what_it_has),
		cmocka_unit_test(joined_arenas_live_as_long_as_the_first),
		cmocka_unit_test(released_arena_may_be_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
