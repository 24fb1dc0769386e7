#include "support.h"

#include "base/utf8.h"

static struct arena arena;

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void test_valid(void **state)
{
	(void)state;
	static const char *const good[] = {"",
					   "ascii\n",
					   "\xc3\xa4",
					   "\xe2\x82\xac",
					   "\xf0\x9f\x90\x8d",
					   "\xf4\x8f\xbf\xbf",
					   "\xee\x80\x80",
					   "a\xc2\x80z"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(utf8_valid(good[i]));
}

static void test_invalid(void **state)
{
	(void)state;
	static const char *const bad[] = {"\xff",
					  "\x80",
					  "\xc3",
					  "a\xc3z",
					  "\xe2\x82",
					  "\xc0\x80",
					  "\xc1\xbf",
					  "\xe0\x80\x80",
					  "\xed\xa0\x80",
					  "\xf0\x80\x80\x80",
					  "\xf4\x90\x80\x80",
					  "\xf8\x88\x80\x80\x80"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(utf8_valid(bad[i]));
}

static void test_printable(void **state)
{
	(void)state;
	assert_string_equal(utf8_printable("plain \xc3\xa4 text", &arena), "plain \xc3\xa4 text");
	assert_string_equal(utf8_printable("a\033[31m\xff\n\x7f", &arena), "a?[31m???");
	assert_string_equal(utf8_printable("\xe2\x82", &arena), "??");
	assert_string_equal(utf8_printable("", &arena), "");
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_valid),
		TEST(test_invalid),
		TEST(test_printable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
