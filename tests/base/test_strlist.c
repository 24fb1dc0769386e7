#include "support.h"

#include <string.h>

#include "base/strlist.h"

static void added_strings_are_copies(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	char text[] = "one";
	strlist_add(&l, &a, text);
	text[0] = 'X';
	assert_string_equal(l.items[0], "one");
}

static void referenced_strings_are_not(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	const char *text = "one";
	strlist_ref(&l, &a, text);
	assert_ptr_equal(l.items[0], text);
}

static void list_is_always_null_terminated(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	for (int i = 0; i < 100; i++) {
		strlist_addf(&l, &a, "item %d", i);
		assert_int_equal(l.count, i + 1);
		assert_null(l.items[l.count]);
	}

	assert_string_equal(l.items[0], "item 0");
	assert_string_equal(l.items[99], "item 99");
}

static void argv_of_an_empty_list_is_terminated(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	const char *const *argv = strlist_argv(&l, &a);
	assert_null(argv[0]);
	strlist_add(&l, &a, "x");
	assert_string_equal(strlist_argv(&l, &a)[0], "x");
	assert_null(strlist_argv(&l, &a)[1]);
}

static void append_works_on_itself(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	strlist_split(&l, &a, "a b c d e", " ");
	strlist_append(&l, &a, &l);
	assert_int_equal(l.count, 10);
	assert_string_equal(l.items[9], "e");
}

static void split_leaves_empty_pieces_out(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	strlist_split(&l, &a, ",a,,b c,", ", ");
	assert_int_equal(l.count, 3);
	assert_string_equal(l.items[0], "a");
	assert_string_equal(l.items[1], "b");
	assert_string_equal(l.items[2], "c");
	strlist_split(&l, &a, "", ",");
	strlist_split(&l, &a, ",,", ",");
	assert_int_equal(l.count, 3);
}

static void contains_compares_whole_strings(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	assert_false(strlist_contains(&l, "avx"));
	strlist_add(&l, &a, "avx2");
	assert_true(strlist_contains(&l, "avx2"));
	assert_false(strlist_contains(&l, "avx"));
}

static void an_empty_array_allows_anything(void **state)
{
	(void)state;
	static const char *const words[] = {"cpu", "cuda"};
	assert_true(strings_allow(NULL, 0, "mps"));
	assert_true(strings_allow(words, ARRAY_LEN(words), "cuda"));
	assert_false(strings_allow(words, ARRAY_LEN(words), "mps"));
	assert_false(strings_contain(NULL, 0, "mps"));
}

static void join_puts_separators_between(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	assert_string_equal(strlist_join(&l, &a, ";"), "");
	strlist_add(&l, &a, "8.0");
	assert_string_equal(strlist_join(&l, &a, "; "), "8.0");
	strlist_add(&l, &a, "9.0");
	assert_string_equal(strlist_join(&l, &a, "; "), "8.0; 9.0");
}

static void sort_is_by_bytes(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	strlist_sort(&l);
	strlist_split(&l, &a, "b _ B \xc3\xa9 a 10 9", " ");
	strlist_sort(&l);
	assert_string_equal(strlist_join(&l, &a, " "), "10 9 B _ a b \xc3\xa9");
}

static void kv_set_replaces_in_place(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l = {0};
	assert_null(kvlist_get(&l, "USE_CUDA"));
	kvlist_set(&l, &a, "USE_CUDA", "ON");
	kvlist_set(&l, &a, "BLAS", "MKL");
	kvlist_set(&l, &a, "USE_CUDA", "OFF");
	assert_int_equal(l.count, 2);
	assert_string_equal(kvlist_get(&l, "USE_CUDA"), "OFF");
	assert_string_equal(l.items[0].key, "USE_CUDA");
	assert_null(kvlist_get(&l, "USE"));
}

static void kv_grows_and_sorts_by_key(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l = {0};
	kvlist_sort(&l);
	for (int i = 99; i >= 0; i--)
		kvlist_set(&l, &a, arena_printf(&a, "k%02d", i), arena_printf(&a, "%d", i));
	kvlist_sort(&l);
	assert_int_equal(l.count, 100);
	for (int i = 0; i < 100; i++)
		assert_string_equal(l.items[i].value, arena_printf(&a, "%d", i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(added_strings_are_copies),
		cmocka_unit_test(referenced_strings_are_not),
		cmocka_unit_test(list_is_always_null_terminated),
		cmocka_unit_test(argv_of_an_empty_list_is_terminated),
		cmocka_unit_test(append_works_on_itself),
		cmocka_unit_test(split_leaves_empty_pieces_out),
		cmocka_unit_test(contains_compares_whole_strings),
		cmocka_unit_test(an_empty_array_allows_anything),
		cmocka_unit_test(join_puts_separators_between),
		cmocka_unit_test(sort_is_by_bytes),
		cmocka_unit_test(kv_set_replaces_in_place),
		cmocka_unit_test(kv_grows_and_sorts_by_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
