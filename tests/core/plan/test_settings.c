#include "support.h"

#include "core/plan/buildenv.h"

#define ITEM(n, v, f, l, w)                                                                        \
	(&(struct setting){.name = (n), .value = (v), .file = (f), .line = (l), .why = (w)})

static void put_adds_a_new_name(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct settings s = {0};
	settings_put(&s, &a, ITEM("A", "1", "x.yaml", 3, "first"));
	assert_int_equal(s.count, 1);
	assert_string_equal(settings_value(&s, "A"), "1");
	assert_string_equal(settings_get(&s, "A")->why, "first");
}

static void put_replaces_and_tells(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct settings s = {0};
	settings_put(&s, &a, ITEM("A", "1", "x.yaml", 3, "first"));
	settings_put(&s, &a, ITEM("A", "2", "command line", 0, "second"));
	assert_int_equal(s.count, 1);
	assert_string_equal(settings_value(&s, "A"), "2");
	assert_string_equal(settings_get(&s, "A")->why, "second (instead of '1' from x.yaml:3)");
	assert_string_equal(settings_origin(settings_get(&s, "A"), &a), "command line");
}

static void put_of_the_same_value_takes_the_new_origin_only(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct settings s = {0};
	settings_put(&s, &a, ITEM("A", "1", "x.yaml", 3, "first"));
	settings_put(&s, &a, ITEM("A", "1", "y.yaml", 9, "second"));
	assert_string_equal(settings_get(&s, "A")->why, "second");
	assert_string_equal(settings_origin(settings_get(&s, "A"), &a), "y.yaml:9");
}

static void check_and_cache_stay_set_and_fixed_does_not(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct settings s = {0};
	settings_put(&s, &a,
		     &(struct setting){.name = "A",
				       .value = "1",
				       .file = "f",
				       .why = "w",
				       .check = true,
				       .cache = true,
				       .fixed = true});
	settings_put(&s, &a, ITEM("A", "2", "f", 0, "w"));
	assert_true(settings_get(&s, "A")->check);
	assert_true(settings_get(&s, "A")->cache);
	assert_false(settings_get(&s, "A")->fixed);
}

static void a_missing_name_is_null(void **state)
{
	(void)state;
	struct settings s = {0};
	assert_null(settings_get(&s, "A"));
	assert_null(settings_value(&s, "A"));
}

static void many_are_kept_and_sorted_by_bytes(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct settings s = {0};
	for (int i = 99; i >= 0; i--)
		settings_put(&s, &a, ITEM(arena_printf(&a, "N%02d", i), "v", "f", 0, "w"));
	settings_put(&s, &a, ITEM("M_", "v", "f", 0, "w"));
	assert_int_equal(s.count, 101);
	assert_string_equal(s.items[0].name, "M_");
	assert_string_equal(s.items[1].name, "N00");
	assert_string_equal(s.items[100].name, "N99");
	for (size_t i = 0; i < s.count; i++)
		assert_ptr_equal(settings_get(&s, s.items[i].name), &s.items[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_adds_a_new_name),
		cmocka_unit_test(put_replaces_and_tells),
		cmocka_unit_test(put_of_the_same_value_takes_the_new_origin_only),
		cmocka_unit_test(check_and_cache_stay_set_and_fixed_does_not),
		cmocka_unit_test(a_missing_name_is_null),
		cmocka_unit_test(many_are_kept_and_sorted_by_bytes),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
