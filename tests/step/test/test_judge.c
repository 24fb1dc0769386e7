#include "support.h"

#include <string.h>

#include "base/sys/json.h"
#include "step/test/test.h"

static struct test_expected_row rows[] = {
	{.test = "a.py::T.*known*", .reason = "no such device", .source = "seen"}};
static const struct test_package package = {
	.package = "pytorch", .expected = rows, .expected_count = 1};

static json_t *result(const char *outcome, int tries)
{
	return json_pack("{s:s, s:f, s:s, s:i}", "outcome", outcome, "seconds", 0.25, "detail",
			 "first\n<last> \"&\x01", "tries", tries);
}

static json_t *results(void)
{
	return json_pack("{s:{s:o, s:o, s:o, s:o, s:o, s:o}, s:{s:o, s:o}}", "a.py", "T.good",
			 result("passed", 1), "T.known", result("failed", 1), "T.known_mended",
			 result("passed", 1), "T.flaky", result("passed", 3), "T.skipped",
			 result("skipped", 1), "T.wrong", result("failed", 3), "b.py", "T.known",
			 result("crashed", 3), "T.slow", result("timeout", 3));
}

static const char *verdict(const json_t *files, const char *file, const char *test)
{
	return json_string_value(
		json_object_get(json_object_get(json_object_get(files, file), test), "verdict"));
}

static void test_verdicts(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = test_judge(&package, results());
	const json_t *files = json_object_get(doc, "files"), *s = json_object_get(doc, "summary");
	assert_string_equal(verdict(files, "a.py", "T.good"), "passed");
	assert_string_equal(verdict(files, "a.py", "T.known"), "expected");
	assert_string_equal(verdict(files, "a.py", "T.known_mended"), "passed, expected to fail");
	assert_string_equal(verdict(files, "a.py", "T.flaky"), "flaky");
	assert_string_equal(verdict(files, "a.py", "T.skipped"), "skipped");
	assert_string_equal(verdict(files, "a.py", "T.wrong"), "failed");
	/* a row is of one file */
	assert_string_equal(verdict(files, "b.py", "T.known"), "crashed");
	assert_string_equal(verdict(files, "b.py", "T.slow"), "timeout");
	assert_int_equal(json_int(s, "run"), 8);
	assert_int_equal(json_int(s, "passed"), 1);
	assert_int_equal(json_int(s, "skipped"), 1);
	assert_int_equal(json_int(s, "expected"), 1);
	assert_int_equal(json_int(s, "flaky"), 1);
	assert_int_equal(json_int(s, "unexpected"), 4);
}

static void test_text_names_what_matters(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = test_judge(&package, results());
	const char *text = show_string(doc, test_show, &a);
	assert_non_null(strstr(text, "failed: a.py::T.wrong\n  first\n  <last>"));
	assert_non_null(strstr(text, "flaky: a.py::T.flaky\n"));
	assert_non_null(strstr(text, "passed, expected to fail: a.py::T.known_mended\n"));
	assert_null(strstr(text, "T.good"));
	assert_null(strstr(text, "expected: a.py"));
	assert_non_null(strstr(text, "  unexpected  4\n"));
}

static void test_junit_escapes(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = test_judge(&package, results());
	AUTO_BUF struct buf out = {0};
	test_junit("a<b", doc, &out);
	const char *text = buf_cstr(&out);
	assert_non_null(strstr(
		text, "<testsuite name=\"a&#60;b\" tests=\"8\" failures=\"4\" skipped=\"2\">"));
	assert_non_null(
		strstr(text, "<testcase classname=\"a.py::T\" name=\"good\" time=\"0.250\"/>"));
	assert_non_null(strstr(text, "<skipped message=\"expected: no such device\">"));
	assert_non_null(strstr(
		text,
		"<failure message=\"failed\">first\n&#60;last&#62; &#34;&#38;\\x01</failure>"));
}

static void test_differences_of_both_sides(void **state)
{
	(void)state;
	AUTO_JSON json_t *here = results();
	AUTO_JSON json_t *there = results();
	json_object_del(json_object_get(there, "a.py"), "T.good");
	json_object_set_new(json_object_get(there, "b.py"), "T.slow", result("passed", 1));
	json_object_set_new(json_object_get(there, "b.py"), "T.more", result("failed", 1));
	AUTO_JSON json_t *d = test_differences(here, there);
	AUTO_JSON json_t *want =
		json_pack("{s:[s,s], s:[s,s], s:[s,s]}", "a.py::T.good", "passed", "none",
			  "b.py::T.slow", "timeout", "passed", "b.py::T.more", "none", "failed");
	assert_true(json_equal(d, want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_text_names_what_matters),
		cmocka_unit_test(test_junit_escapes),
		cmocka_unit_test(test_differences_of_both_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
