#include "support.h"

#include "base/path.h"

static void join_never_doubles_the_slash(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(path_join(&a, "a", "b"), "a/b");
	assert_string_equal(path_join(&a, "a/", "b"), "a/b");
	assert_string_equal(path_join(&a, "a//", "//b/c"), "a/b/c");
	assert_string_equal(path_join(&a, "/", "b"), "/b");
}

static void join_takes_the_second_as_relative(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(path_join(&a, "/root", "/usr/lib"), "/root/usr/lib");
	assert_string_equal(path_join(&a, "", "/usr"), "usr");
}

static void join_with_nothing(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(path_join(&a, "a/", ""), "a");
	assert_string_equal(path_join(&a, "/", ""), "/");
	assert_string_equal(path_join(&a, "/", "/"), "/");
	assert_string_equal(path_join(&a, "", ""), "");
}

static void base_is_behind_the_last_slash(void **state)
{
	(void)state;
	assert_string_equal(path_base("a/b/c.so"), "c.so");
	assert_string_equal(path_base("c.so"), "c.so");
	assert_string_equal(path_base("/"), "");
	assert_string_equal(path_base("a/"), "");
}

static void dir_is_before_the_last_slash(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(path_dir(&a, "a/b/c"), "a/b");
	assert_string_equal(path_dir(&a, "c"), ".");
	assert_string_equal(path_dir(&a, "/c"), "/");
	assert_string_equal(path_dir(&a, "//c"), "/");
	assert_string_equal(path_dir(&a, "a//c"), "a");
}

static void safe_relative_takes_plain_paths(void **state)
{
	(void)state;
	assert_true(path_is_safe_relative("a"));
	assert_true(path_is_safe_relative("a/b.c/..d/e.."));
	assert_true(path_is_safe_relative(".hidden/x y"));
	assert_true(path_is_safe_relative("\xc3\xa9t\xc3\xa9"));
}

static void safe_relative_refuses_the_rest(void **state)
{
	(void)state;
	const char *const bad[] = {"",     "/",    "/etc/passwd", "..",    ".",
				   "a/..", "../a", "a/../b",      "a/./b", "a//b",
				   "a/",   "a\nb", "a/\x01",      "\x7f"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (path_is_safe_relative(bad[i]))
			fail_msg("'%s' was taken", bad[i]);
}

static void links_that_stay_inside(void **state)
{
	(void)state;
	assert_true(path_stays_inside("", "a"));
	assert_true(path_stays_inside("a/b", "../../c"));
	assert_true(path_stays_inside("a", "../a"));
	assert_true(path_stays_inside("a", ".."));
	assert_true(path_stays_inside("a/./b/", ".././../x"));
}

static void links_that_leave(void **state)
{
	(void)state;
	assert_false(path_stays_inside("", ".."));
	assert_false(path_stays_inside("a", "../.."));
	assert_false(path_stays_inside("a", "../../a"));
	assert_false(path_stays_inside("a", "/etc"));
	assert_false(path_stays_inside("a", "b/../../../c"));
	assert_false(path_stays_inside("/a", "b"));
	assert_false(path_stays_inside("../a", "b"));
	assert_false(path_stays_inside("a", ""));
}

static void absolute_resolves_dots(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(path_absolute(&a, "/home/u", "x"), "/home/u/x");
	assert_string_equal(path_absolute(&a, "/home/u", "../v/./w"), "/home/v/w");
	assert_string_equal(path_absolute(&a, "/home/u", "/a//b/../c/"), "/a/c");
	assert_string_equal(path_absolute(&a, "/home/u", "."), "/home/u");
	assert_string_equal(path_absolute(&a, "/home/u", ""), "/home/u");
	assert_string_equal(path_absolute(&a, "/", "../../.."), "/");
	assert_string_equal(path_absolute(&a, "/a", "../../../b"), "/b");
}

static void from_here_is_nowhere_without_a_directory(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const char *dir = arena_strdup(&a, test_dir());
	assert_int_equal(chdir(dir), 0);
	assert_string_equal(path_from_here(&a, "x/../y"), path_join(&a, dir, "y"));
	assert_int_equal(rmdir(dir), 0);
	assert_string_equal(path_from_here(&a, "x/y"), "x/y");
	assert_string_equal(path_from_here(&a, "/a/../b"), "/b");
	assert_int_equal(chdir("/"), 0);
}

static void below_is_the_rest(void **state)
{
	(void)state;
	assert_string_equal(path_below("/a/b/c", "/a"), "b/c");
	assert_string_equal(path_below("/a/", "/a"), "");
	assert_null(path_below("/a", "/a"));
	assert_null(path_below("/ab/c", "/a"));
	assert_null(path_below("/b", "/a"));
}

static void suffix(void **state)
{
	(void)state;
	assert_true(path_has_suffix("a.whl", ".whl"));
	assert_true(path_has_suffix(".whl", ".whl"));
	assert_true(path_has_suffix("a", ""));
	assert_false(path_has_suffix("whl", ".whl"));
	assert_false(path_has_suffix("a.whl.part", ".whl"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(join_never_doubles_the_slash),
		cmocka_unit_test(join_takes_the_second_as_relative),
		cmocka_unit_test(join_with_nothing),
		cmocka_unit_test(base_is_behind_the_last_slash),
		cmocka_unit_test(dir_is_before_the_last_slash),
		cmocka_unit_test(safe_relative_takes_plain_paths),
		cmocka_unit_test(safe_relative_refuses_the_rest),
		cmocka_unit_test(links_that_stay_inside),
		cmocka_unit_test(links_that_leave),
		cmocka_unit_test(absolute_resolves_dots),
		cmocka_unit_test_teardown(from_here_is_nowhere_without_a_directory, test_teardown),
		cmocka_unit_test(below_is_the_rest),
		cmocka_unit_test(suffix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
