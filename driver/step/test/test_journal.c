#include <string.h>

#include "base/strlist.h"
#include "base/sys/json.h"
#include "step/test/test.h"

static const char *const outcomes[] = {"passed", "skipped", "failed", "crashed", "timeout", "stale"};

static void add_outcome(json_t *tests, const char *name, const char *outcome, double seconds, const char *detail)
{
	json_int_t tries = json_integer_value(json_object_get(json_object_get(tests, name), "tries"));
	json_object_set_new(tests, name,
			    json_pack("{s:s, s:f, s:s, s:I}", "outcome", outcome, "seconds", seconds, "detail", detail,
				      "tries", tries + 1));
}

/* The file as a whole stands in the place of a test. */
#define WHOLE "(file)"

/* One line; NULL if it is right, else what is wrong with it. */
static const char *add_line(const json_t *row, struct arena *a, struct test_journal *j)
{
	const char *begin = json_member(row, "begin");
	const char *test = json_member(row, "test");
	const char *error = json_member(row, "error");
	const char *skipped = json_member(row, "skipped");
	if (begin) {
		j->open = arena_strdup(a, begin);
		j->open_at = json_number_value(json_object_get(row, "at"));
		j->done = false;
		return NULL;
	}
	if (test) {
		const char *outcome = json_member(row, "outcome");
		const char *detail = json_member(row, "detail");
		if (!outcome || !strings_contain(outcomes, ARRAY_LEN(outcomes), outcome))
			return "an outcome that is not known";
		add_outcome(j->tests, test, outcome, json_number_value(json_object_get(row, "seconds")),
			    detail ? detail : "");
		j->open = NULL;
		return NULL;
	}
	if (error || skipped)
		add_outcome(j->tests, WHOLE, error ? "failed" : "skipped", 0, error ? error : skipped);
	else if (!json_is_integer(json_object_get(row, "end")))
		return "neither a test nor an end";
	j->done = error || json_integer_value(json_object_get(row, "end")) == 0;
	return NULL;
}

int test_journal_parse(const char *text, size_t len, const char *name, struct arena *a, struct test_journal *ret,
		       struct err *e)
{
	struct test_journal j = {.tests = json_object()};
	size_t line = 1;
	for (size_t at = 0; at < len; line++) {
		const char *end = memchr(text + at, '\n', len - at);
		if (!end)
			break;
		json_error_t why;
		json_t *row = json_loadb(text + at, (size_t)(end - (text + at)), JSON_REJECT_DUPLICATES, &why);
		const char *wrong = json_is_object(row) ? add_line(row, a, &j) : "not an object";
		json_decref(row);
		if (wrong) {
			json_decref(j.tests);
			err_set(e, ERR_INTEGRITY, "%s:%zu: %s", name, line, wrong);
			return err_hint(e, "'--again' begins anew");
		}
		at = (size_t)(end - text) + 1;
	}
	j.lines = line - 1;
	*ret = j;
	return 0;
}
