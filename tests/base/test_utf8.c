#include "support.h"

#include <string.h>

#include "base/text.h"

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
	assert_string_equal(utf8_printable("a\u202egnp.exe\u2066\u200b\xc2\x9b"
					   "2Jz",
					   &arena),
			    "a?gnp.exe???2Jz");
}

static void shown(const char *text, bool colours, const char *want)
{
	AUTO_BUF struct buf out = {0};
	utf8_show(&out, text, strlen(text), colours);
	assert_string_equal(buf_cstr(&out), want);
}

static void test_show(void **state)
{
	(void)state;
	shown("plain \xc3\xa4\ttext\n", false, "plain \xc3\xa4\ttext\n");
	shown("\033]0;title\a\033[2J\r\b\x7f", false, "\\x1b]0;title\\x07\\x1b[2J\\x0d\\x08\\x7f");
	shown("\u202e\u2066\xc2\x9b"
	      "31m\u200b\ufeff"
	      "\U000e0041",
	      false, "\\u{202e}\\u{2066}\\u{9b}31m\\u{200b}\\u{feff}\\u{e0041}");
	shown("\xff\xc3", false, "\\xff\\xc3");
	shown("\033[1;31mred\033[0m", false, "\\x1b[1;31mred\\x1b[0m");
	shown("\033[1;31mred\033[0m", true, "\033[1;31mred\033[0m");
	shown("\033[8mhidden\033[33", true, "\\x1b[8mhidden\\x1b[33");
	shown("\033[mm\033[1;31;5mm", true, "\\x1b[mm\\x1b[1;31;5mm");
	/* What goes over the end is not one. */
	AUTO_BUF struct buf out = {0};
	utf8_show(&out, "a\xc3\xa4\0b", 2, false);
	buf_addc(&out, '|');
	utf8_show(&out, "x\0y", 3, false);
	assert_string_equal(buf_cstr(&out), "a\\xc3|x\\x00y");
}

static void test_json_has_escapes_for_what_is_hidden(void **state)
{
	AUTO_BUF struct buf out = {0};

	(void)state;
	utf8_escape(&out, "{\n \"\xc3\xa4\u202e\x7f\xc2\x9b\": \"\U000e0041\"\n}");
	assert_string_equal(buf_cstr(&out),
			    "{\n \"\xc3\xa4\\u202e\\u007f\\u009b\": \"\\udb40\\udc41\"\n}");
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_valid),
		TEST(test_invalid),
		TEST(test_printable),
		TEST(test_show),
		TEST(test_json_has_escapes_for_what_is_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
