#include "base/sys/json.h"
#include "step/test/test.h"

#define WORDS 400 /* of a failure's detail, from its end */

static const char *verdict_of(const struct test_expected_row *expected, const json_t *result)
{
	const char *outcome = json_text(result, "outcome");

	if (strcmp(outcome, "skipped") == 0 || strcmp(outcome, "stale") == 0)
		return outcome;
	if (strcmp(outcome, "passed") != 0)
		return expected ? "expected" : outcome;
	if (expected)
		return "passed, expected to fail";
	return json_integer_value(json_object_get(result, "tries")) > 1 ? "flaky" : "passed";
}

/* Whether a verdict is one of the last four. */
static bool is_unexpected(const char *verdict)
{
	static const char *const fine[] = {"passed", "skipped", "expected", "flaky"};
	return !strings_contain(fine, ARRAY_LEN(fine), verdict);
}

/* The last lines. */
static const char *last_words(const char *words)
{
	size_t len = strlen(words);
	const char *at = len > WORDS ? strchr(words + len - WORDS, '\n') : words;
	return at ? at + (len > WORDS) : words + len - WORDS;
}

static const struct show words[] = {{.text = "{-words}", .indent = 2}, {0}};
static const struct show tests_rows[] = {
	{.text = "{-verdict}: {^^}::{^}", .each = "", .rows = words}, {0}};

const struct show test_show[] = {
	{.each = "files", .rows = tests_rows},
	SHOW("run", "{summary.run}", .indent = 2),
	SHOW("passed", "{summary.passed}", .indent = 2),
	SHOW("skipped", "{summary.skipped}", .indent = 2),
	SHOW("expected", "{summary.expected} (failures that the table has)", .indent = 2),
	SHOW("flaky", "{summary.flaky}", .indent = 2),
	SHOW("unexpected", "{summary.unexpected}", .indent = 2),
	{0}};

static void judge_one(const struct test_package *p, const char *file, const char *name,
		      json_t *result, json_t *summary)
{
	AUTO_ARENA struct arena a = {0};
	const struct test_expected_row *row =
		test_expected(p, arena_printf(&a, "%s::%s", file, name));
	const char *verdict = verdict_of(row, result);
	const char *const counts[] = {"run", is_unexpected(verdict) ? "unexpected" : verdict};

	json_object_set_new(result, "verdict", json_string(verdict));
	if (strcmp(verdict, "expected") == 0)
		json_object_set_new(result, "reason", json_string(row->reason));
	if (is_unexpected(verdict) || strcmp(verdict, "flaky") == 0) {
		json_object_set_new(result, "-verdict", json_string(verdict));
		json_object_set_new(result, "-words",
				    json_string(last_words(json_text(result, "detail"))));
	}

	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		json_object_set_new(summary, counts[i],
				    json_integer(json_int(summary, counts[i]) + 1));
}

json_t *test_judge(const struct test_package *p, json_t *files)
{
	const char *file, *name;
	json_t *tests, *result;
	json_t *summary = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "run", 0, "passed", 0,
				    "skipped", 0, "expected", 0, "flaky", 0, "unexpected", 0);

	json_object_foreach(files, file, tests) json_object_foreach(tests, name, result)
		judge_one(p, file, name, result, summary);
	return json_pack("{s:o, s:o}", "summary", summary, "files", files);
}

static const struct show case_rows[] = {
	{.text = "    <testcase classname=\"{-class}\" name=\"{-name}\" "
		 "time=\"{seconds:.3}\"[{!-element}/>\n]"
		 "[{?-element}><{-element} message=\"{verdict}[: "
		 "{reason}]\">{detail|}</{-element}></testcase>\n]",
	 .each = ""},
	{0}};

static const struct show junit_rows[] = {
	{.text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
		 "name=\"{-suite}\" "
		 "tests=\"{summary.run}\" failures=\"{summary.unexpected}\" "
		 "skipped=\"{-skipped}\">\n"},
	{.each = "files", .rows = case_rows},
	{.text = "  </testsuite>\n</testsuites>\n"},
	{0}};

void test_junit(const char *name, json_t *doc, struct buf *out)
{
	AUTO_ARENA struct arena a = {0};
	const json_t *summary = json_object_get(doc, "summary");
	const char *file, *test;
	json_t *tests, *result;

	json_object_set_new(doc, "-suite", json_or_null(name));
	json_object_set_new(
		doc, "-skipped",
		json_integer(json_int(summary, "skipped") + json_int(summary, "expected")));
	json_object_foreach(json_object_get(doc, "files"), file, tests)
		json_object_foreach(tests, test, result)
	{
		const char *verdict = json_text(result, "verdict"), *dot = strchr(test, '.');
		const int class = dot ? (int)(dot - test) : 0;
		json_object_set_new(result, "-class",
				    json_or_null(arena_printf(&a, "%s::%.*s", file, class, test)));
		json_object_set_new(result, "-name", json_or_null(dot ? dot + 1 : test));
		if (is_unexpected(verdict) || strcmp(verdict, "skipped") == 0 ||
		    strcmp(verdict, "expected") == 0)
			json_object_set_new(
				result, "-element",
				json_string(is_unexpected(verdict) ? "failure" : "skipped"));
	}

	show_markup(doc, junit_rows, show_html, out);
}

static void add_differences(const json_t *here, const json_t *there, bool turned, json_t *out)
{
	AUTO_ARENA struct arena a = {0};
	const char *file, *name;
	json_t *tests, *result;

	json_object_foreach((json_t *)(uintptr_t)here, file, tests)
	{
		json_object_foreach(tests, name, result)
		{
			const char *x = json_text(result, "outcome");
			const char *y = json_text(
				json_object_get(json_object_get(there, file), name), "outcome");
			y = *y ? y : "none";
			if (strcmp(x, y) != 0)
				json_object_set_new(
					out, arena_printf(&a, "%s::%s", file, name),
					json_pack("[s, s]", turned ? y : x, turned ? x : y));
		}
	}
}

json_t *test_differences(const json_t *here, const json_t *there)
{
	json_t *out = json_object();

	add_differences(here, there, false, out);
	add_differences(there, here, true, out);
	return out;
}
