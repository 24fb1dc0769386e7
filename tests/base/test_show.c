#include "support.h"

#include <string.h>
#include <time.h>

#include "base/show.h"
#include "base/sys/json.h"

/* What a document in JSON with ' for " shows; malloc'd. */
static char *shown(const char *json, const struct show *rows, size_t width)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf out = {0};
	const struct term t = {.width = width};

	for (; *json; json++)
		buf_addc(&text, *json == '\'' ? '"' : *json);
	AUTO_JSON json_t *doc = json_loads(buf_cstr(&text), 0, NULL);
	assert_non_null(doc);
	show_text(doc, rows, &t, &out);
	return strdup(buf_cstr(&out));
}

/* One row that has this text. */
static void expect(const char *json, const char *text, const char *wanted)
{
	const struct show rows[] = {{.text = text}, {0}};
	AUTO_FREE char *got = shown(json, rows, 0);
	assert_string_equal(got, wanted);
}

static void members_stand_in_their_places(void **state)
{
	(void)state;
	expect("{'a': 'x', 'b': {'c': 3}, 'l': ['p', 'q']}", "{a} of {b.c}: {l}, {l:,}",
	       "x of 3: p q, p, q\n");
	expect("{'t': true, 'f': false, 'r': 1.5}", "{t} {f} {r} {r:.2}", "yes no 1.5 1.50\n");
	expect("{'a': '0123456789'}", "{a:.4} \\{a\\} \\[a\\]", "0123 {a} [a]\n");
}

static void what_is_missing_takes_its_row_or_its_bracket_with_it(void **state)
{
	(void)state;
	static const char *const without[] = {"{}", "{'a': null}", "{'a': ''}", "{'a': []}",
					      "{'a': {}}"};
	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		expect(without[i], "a is {a}", "");
		expect(without[i], "this[, and {a}[ of {b}]].", "this.\n");
		expect(without[i], "{a|none} {!a}there", "none there\n");
		expect(without[i], "{?a}there", "");
	}

	expect("{'a': 0}", "{a}[{?a} set][{!a} not set]", "0 not set\n");
	expect("{'a': 1, 'b': 2}", "this[, and {a}[ of {b}]].", "this, and 1 of 2.\n");
}

static void forms(void **state)
{
	(void)state;
	expect("{'n': 1500}", "{n:MB} {n:MiB} {n:time}", "1.5 kB 1.5 KiB 25 min\n");
	expect("{'n': 12345678901}", "{n:MB} {n:MiB}", "12345.7 MB 11.5 GiB\n");
	expect("{'n': 0}", "{n:MB} {n:MiB} {n} byte{n:s}", "0 B 0 B 0 bytes\n");
	expect("{'n': 1, 'l': [7]}", "{n} wheel{n:s}, {l:#} librar{l:y}", "1 wheel, 1 library\n");
	expect("{'l': []}", "{l:#} librar{l:y}", "0 libraries\n");
	AUTO_ARENA struct arena a = {0};
	expect("{'n': 0}", "{n:ago}", arena_printf(&a, "%ld days\n", (long)time(NULL) / 86400));
}

static void labels_begin_one_column(void **state)
{
	(void)state;
	const struct show rows[] = {SHOW("name", "{name}", .indent = 1),
				    SHOW("why", "{}", .each = "why", .indent = 1),
				    SHOW("{^}", "{}", .each = "more", .indent = 1),
				    SHOW("a longer one", "{nothing}"),
				    SHOW("steps", "{s} {t:.1} s", .each = "steps", .join = ", "),
				    {0}};
	AUTO_FREE char *got = shown(
		"{'name': 'n', 'why': ['one', 'two\\nlines'], 'more': {'x': 1, 'y': 2}, 'steps': "
		"[{'s': 'a', 't': 1}, {'s': 'b', 't': 2}]}",
		rows, 0);
	assert_string_equal(
		got,
		" name          n\n why           one\n               two\n               lines\n"
		" x             1\n y             2\nsteps         a 1.0 s, b 2.0 s\n");
}

static void things_have_rows_below_them_and_know_what_they_are_in(void **state)
{
	(void)state;
	static const struct show tests[] = {
		{.text = "{of} {^^}::{^} {verdict}", .each = "", .indent = 2}, {0}};
	static const struct show rows[] = {
		{.text = "\n{^}", .each = "files", .rows = tests}, {.text = "\nend"}, {0}};
	AUTO_FREE char *got = shown("{'of': 'all', 'files': {'f': {'one': {'verdict': 'ok'}, "
				    "'two': {'verdict': 'bad'}}}}",
				    rows, 0);
	assert_string_equal(got, "f\n  all f::one ok\n  all f::two bad\n\nend\n");
}

static void tables_and_lines_keep_to_the_terminal(void **state)
{
	(void)state;
	static const struct show rows[] = {
		{.each = "l", .columns = {"name", ">SIZE={n:MB}", "note"}},
		SHOW("note", "{long}"),
		{0}};
	const char *doc = "{'l': [{'name': 'a', 'n': 5}, {'name': 'b', 'n': 70000, 'note': 'x'}], "
			  "'long': 'one two "
			  "three four five six'}";
	AUTO_FREE char *pipe = shown(doc, rows, 0);
	assert_string_equal(pipe, "name     SIZE  note\na         5 B  -\nb     70.0 kB  x\n"
				  "note  one two three four five six\n");
	AUTO_FREE char *narrow = shown(doc, rows, 20);
	assert_string_equal(narrow, "name     SIZE  note\na         5 B  -\nb     70.0 kB  x\n"
				    "note  one two three\n      four five six\n");
}

static void json_has_nothing_that_only_texts_show(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = json_pack("{s:i, s:s, s:[{s:i, s:i}, {s:i}, {}]}", "a", 1, "-text",
					  "x", "l", "b", 2, "-c", 3, "-d", 4);
	AUTO_JSON json_t *wanted = json_pack("{s:i, s:[{s:i}, {}]}", "a", 1, "l", "b", 2);
	assert_true(show_strip(doc));
	assert_true(json_equal(doc, wanted));
}

static void test_page_keeps_units_on_the_line_of_their_numbers(void **state)
{
	(void)state;
	AUTO_BUF struct buf out = {0};
	show_page("12.3 GiB free, 4 h 11 min, 98 % <b> of 5 sheep", &out);
	assert_string_equal(
		buf_cstr(&out),
		"12.3\u00a0GiB free, 4\u00a0h 11\u00a0min, 98\u00a0% &#60;b&#62; of 5 sheep");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_stand_in_their_places),
		cmocka_unit_test(what_is_missing_takes_its_row_or_its_bracket_with_it),
		cmocka_unit_test(forms),
		cmocka_unit_test(labels_begin_one_column),
		cmocka_unit_test(things_have_rows_below_them_and_know_what_they_are_in),
		cmocka_unit_test(tables_and_lines_keep_to_the_terminal),
		cmocka_unit_test(test_page_keeps_units_on_the_line_of_their_numbers),
		cmocka_unit_test(json_has_nothing_that_only_texts_show),
	};

	return cmocka_run_group_tests_name("base/show", tests, NULL, NULL);
}
