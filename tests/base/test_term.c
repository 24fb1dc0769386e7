#include "support.h"

#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/term.h"

static struct term of_terminal(unsigned short columns)
{
	struct winsize ws = {.ws_row = 24, .ws_col = columns};
	int outer, inner;

	assert_int_equal(openpty(&outer, &inner, NULL, NULL, &ws), 0);
	struct term t = term_of(inner);
	close(inner);
	close(outer);
	return t;
}

static int clear(void **state)
{
	(void)state;
	unsetenv("COLUMNS");
	unsetenv("NO_COLOR");
	return setenv("TERM", "xterm", 1);
}

static void the_width_is_the_terminals(void **state)
{
	(void)state;
	assert_int_equal(of_terminal(132).width, 132);
	assert_int_equal(of_terminal(0).width, 80);
	setenv("COLUMNS", "40", 1);
	assert_int_equal(of_terminal(132).width, 40);
	setenv("COLUMNS", "wide", 1);
	assert_int_equal(of_terminal(132).width, 132);
}

static void a_pipe_has_neither_width_nor_colours(void **state)
{
	(void)state;
	int ends[2];
	setenv("COLUMNS", "40", 1);
	assert_int_equal(pipe(ends), 0);
	struct term t = term_of(ends[1]);
	assert_int_equal(t.width, 0);
	assert_false(t.colour);
	close(ends[0]);
	close(ends[1]);
}

static void colours_are_for_terminals_that_have_them(void **state)
{
	(void)state;
	assert_true(of_terminal(80).colour);
	setenv("NO_COLOR", "", 1);
	assert_true(of_terminal(80).colour);
	setenv("NO_COLOR", "0", 1);
	assert_false(of_terminal(80).colour);
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_false(of_terminal(80).colour);
	unsetenv("TERM");
	assert_false(of_terminal(80).colour);
}

static void words_wrap_by_characters(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	term_wrap(&b, "one two three\nnext", 2, 2, 10);
	assert_string_equal(buf_cstr(&b), "one two\n  three\n");
	buf_reset(&b);
	term_wrap(&b, "äöü äöü x", 0, 0, 7);
	assert_string_equal(buf_cstr(&b), "äöü äöü\nx\n");
	buf_reset(&b);
	term_wrap(&b, "a-word-that-is-too-long b", 4, 4, 10);
	assert_string_equal(buf_cstr(&b), "a-word-that-is-too-long\n    b\n");
	buf_reset(&b);
	term_wrap(&b, "one  two three\nnext", 0, 0, 0);
	assert_string_equal(buf_cstr(&b), "one  two three\n");
	buf_reset(&b);
	term_wrap(&b, "next", 2, 9, 10); /* behind a word that leaves no room */
	assert_string_equal(buf_cstr(&b), "\n  next\n");
}

static const char *const cells[] = {"name",       "what",
				    "x", /* */
				    "a",          "some words of",
				    "", /* */
				    "bb",         "-",
				    "last column"};

static void a_table_without_a_terminal_has_a_line_for_each_row(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	term_table(&b, &(struct term){0}, cells, 3, 3);
	assert_string_equal(buf_cstr(&b), "name  what           x\n"
					  "a     some words of\n"
					  "bb    -              last column\n");
}

static void a_table_fits_the_terminal(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	term_table(&b, &(struct term){.width = 24, .colour = true}, cells, 3, 3);
	assert_string_equal(buf_cstr(&b),
			    "\033[1mname\033[0m  \033[1mwhat\033[0m      \033[1mx\033[0m\n"
			    "a     some\n"
			    "      words of\n"
			    "bb    -         last\n"
			    "                column\n");
	buf_reset(&b);
	static const char *const no_room[] = {"name", "note", "a-name-to-be-copied", "some words"};
	term_table(&b, &(struct term){.width = 22}, no_room, 2, 2);
	assert_string_equal(buf_cstr(&b), "name\na-name-to-be-copied\n    note: some words\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_width_is_the_terminals, clear),
		cmocka_unit_test_setup(a_pipe_has_neither_width_nor_colours, clear),
		cmocka_unit_test_setup(colours_are_for_terminals_that_have_them, clear),
		cmocka_unit_test(words_wrap_by_characters),
		cmocka_unit_test(a_table_without_a_terminal_has_a_line_for_each_row),
		cmocka_unit_test(a_table_fits_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
