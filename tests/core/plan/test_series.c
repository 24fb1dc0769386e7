#include "support.h"

#include "core/plan/plan.h"

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	test_dir();
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static int series(const char *text, const struct strlist *skip, struct strlist *ret, struct err *e)
{
	test_write(test_path("series"), text);
	return series_read(test_path("series"), skip, &arena, ret, e);
}

static void test_series(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0};
	assert_ok(series("# a comment\n\n0001-a.patch\n  sub/b.diff -p1 # why\r\n0003-c.patch #x",
			 NULL, &got, &e),
		  &e);
	assert_string_equal(strlist_join(&got, &arena, " "),
			    "0001-a.patch sub/b.diff 0003-c.patch");
}

static void test_series_skips(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0}, skip = {0};
	strlist_add(&skip, &arena, "b");
	assert_ok(series("a\nb\nc\n", &skip, &got, &e), &e);
	assert_string_equal(strlist_join(&got, &arena, " "), "a c");
}

static void test_series_skip_that_is_not_there(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0}, skip = {0};
	strlist_add(&skip, &arena, "zz.patch");
	assert_err(series("a\nb\n", &skip, &got, &e), &e, ERR_CONFIG,
		   "no patch 'zz.patch' to skip");
	assert_int_equal(got.count, 0);
}

static void test_series_options(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0};
	assert_err(series("a\nb -p0\n", NULL, &got, &e), &e, ERR_CONFIG,
		   ":2: option '-p0' of patch 'b'");
	assert_err(series("a -R\n", NULL, &got, &e), &e, ERR_CONFIG, ":1: option '-R'");
	assert_int_equal(got.count, 0);
}

static void test_series_unsafe_names(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0};
	assert_err(series("../x.patch\n", NULL, &got, &e), &e, ERR_CONFIG,
		   ":1: unsafe patch name '../x.patch'");
	assert_err(series("a\n/etc/x\n", NULL, &got, &e), &e, ERR_CONFIG, ":2: unsafe");
}

static void test_series_twice(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0};
	assert_err(series("a\nb\na\n", NULL, &got, &e), &e, ERR_CONFIG,
		   ":3: patch 'a' is listed twice");
}

static void test_series_missing_or_no_text(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0};
	assert_err(series_read(test_path("none"), NULL, &arena, &got, &e), &e, ERR_SYSTEM, "none");
	test_write_bytes(test_path("bin"), "a\0b\n", 4);
	assert_err(series_read(test_path("bin"), NULL, &arena, &got, &e), &e, ERR_CONFIG,
		   "not a text file");
}

static void test_series_empty(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist got = {0};
	assert_ok(series("# nothing\n", NULL, &got, &e), &e);
	assert_int_equal(got.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(test_series),
		TEST(test_series_skips),
		TEST(test_series_skip_that_is_not_there),
		TEST(test_series_options),
		TEST(test_series_unsafe_names),
		TEST(test_series_twice),
		TEST(test_series_missing_or_no_text),
		TEST(test_series_empty),
	};
	return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
