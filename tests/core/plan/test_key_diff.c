#include "support.h"

#include <string.h>

#include "core/plan/plan.h"

#define DIGEST_A "099a9601bc40d67656e75735c44abedb0fbe92d08817852ab7472eebb7e6ddff"
#define DIGEST_B "3290d4e5168b6e44191882213f61ad41c134a912fe11a44364c2e74f81f68af0"

static void differs(const char *old, const char *new, const char *want)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist lines = {0};

	key_diff(old, new, &a, &lines);
	assert_string_equal(strlist_join(&lines, &a, "\n"), want);
}

static void the_compiler_is_named(void **state)
{
	(void)state;
	differs("python: 3.13\ntoolchain: gcc: gcc (Debian 14.2.0-19) 14.2.0\n",
		"python: 3.13\ntoolchain: gcc: gcc (Debian 14.3.0-1) 14.3.0\n",
		"toolchain gcc: gcc (Debian 14.2.0-19) 14.2.0 → gcc (Debian 14.3.0-1) 14.3.0");
}

static void settings_are_told_by_name(void **state)
{
	(void)state;
	differs("env: A=1\nenv: B=2\nenv: D=4\n", "env: B=3\nenv: C=1\nenv: D=4\n",
		"env A: 1 → none\nenv B: 2 → 3\nenv C: none → 1");
	differs("cmake: X=\n", "cmake: X=a=b\n", "cmake X:  → a=b");
}

static void digests_are_short(void **state)
{
	(void)state;
	differs("source 01: " DIGEST_A " into ''\n", "source 01: " DIGEST_B " into ''\n",
		"source 01: 099a9601bc40 into '' → 3290d4e5168b into ''");
	differs("torch: sha256:" DIGEST_A "\n", "torch: sha256:" DIGEST_B "\n",
		"torch: sha256:099a9601bc40 → sha256:3290d4e5168b");
}

static void equal_texts_have_no_difference(void **state)
{
	(void)state;
	differs("a: 1\nb: 2\n", "b: 2\na: 1\n", "");
	differs("", "", "");
}

static void several_lines_of_one_name_are_lined_up(void **state)
{
	(void)state;
	differs("skipped patch: a.patch\nskipped patch: b.patch\n", "skipped patch: a.patch\n",
		"skipped patch: b.patch → none");
}

static void any_bytes_will_do(void **state)
{
	(void)state;
	differs("no colon\n\n: \n", "x\n\xff: \xfe\n",
		":  → none\nno colon:  → none\nx: none → \n\xff: none → \xfe");
	char long_line[600];
	memset(long_line, 'x', sizeof(long_line));
	memcpy(long_line, "a: ", 3);
	long_line[sizeof(long_line) - 1] = '\0';
	AUTO_ARENA struct arena a = {0};
	struct strlist lines = {0};
	key_diff(long_line, "a: 1", &a, &lines);
	assert_int_equal(lines.count, 1);
	assert_true(strlen(lines.items[0]) < 200);
	assert_contains(lines.items[0], "xxx... → 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_compiler_is_named),
		cmocka_unit_test(settings_are_told_by_name),
		cmocka_unit_test(digests_are_short),
		cmocka_unit_test(equal_texts_have_no_difference),
		cmocka_unit_test(several_lines_of_one_name_are_lined_up),
		cmocka_unit_test(any_bytes_will_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
