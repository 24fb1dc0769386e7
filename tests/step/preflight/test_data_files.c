/* The list of an installation's data files, and files that are not what it says. */
#include "support.h"

#include <stdio.h>

#include "base/sys/digest.h"
#include "step/preflight/preflight.h"

static struct arena a;

static void list(const char *name, const char *text)
{
	char digest[DIGEST_HEX_LEN + 1];

	digest_data(text, strlen(text), digest);
	test_write(test_path("%s", name), text);
	FILE *f = fopen(test_path("sha256sums"), "a");
	assert_non_null(f);
	assert_true(fprintf(f, "%s  %s\n", digest, name) > 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	(void)state;
	test_dir();
	list("profiles/isa.yaml", "one");
	list("profiles/trial/setup.py", "two");
	return 0;
}

static int teardown(void **state)
{
	arena_release(&a);
	return test_teardown(state);
}

static int check(size_t *count, struct err *e)
{
	return preflight_data_files(test_path("."), &a, count, e);
}

static void test_whole_with_files_beyond_the_list(void **state)
{
	(void)state;
	struct err e = {0};
	size_t count = 0;
	test_write(test_path("profiles/own.yaml"), "three");
	assert_int_equal(check(&count, &e), 0);
	assert_int_equal(count, 2);
}

static void test_missing_file_is_named(void **state)
{
	(void)state;
	struct err e = {0};
	size_t count = 7;
	assert_int_equal(remove(test_path("profiles/trial/setup.py")), 0);
	assert_err(check(&count, &e), &e, ERR_INTEGRITY, "'profiles/trial/setup.py' is missing");
	assert_string_equal(e.hint, "install ptbuild again");
}

static void test_changed_file_is_named(void **state)
{
	(void)state;
	struct err e = {0};
	size_t count;
	test_write(test_path("profiles/isa.yaml"), "One");
	assert_err(check(&count, &e), &e, ERR_INTEGRITY, "'profiles/isa.yaml' was changed");
}

static void test_many_are_counted(void **state)
{
	(void)state;
	struct err e = {0};
	size_t count;
	for (int i = 0; i < 6; i++) {
		const char *name = arena_printf(&a, "patches/%d.patch", i);
		list(name, "patch");
		assert_int_equal(remove(test_path("%s", name)), 0);
	}

	assert_err(check(&count, &e), &e, ERR_INTEGRITY, "'patches/2.patch' is missing, 3 more");
}

static void test_no_list(void **state)
{
	(void)state;
	struct err e = {0};
	size_t count;
	assert_int_equal(remove(test_path("sha256sums")), 0);
	assert_err(check(&count, &e), &e, ERR_INTEGRITY, "sha256sums");
	test_write(test_path("sha256sums"), "<html>\n");
	assert_err(check(&count, &e), &e, ERR_INTEGRITY, "is not a list of digests");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole_with_files_beyond_the_list),
		TEST(test_missing_file_is_named),
		TEST(test_changed_file_is_named),
		TEST(test_many_are_counted),
		TEST(test_no_list),
	};

	return cmocka_run_group_tests_name("step/preflight/data_files", tests, NULL, NULL);
}
