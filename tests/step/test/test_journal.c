#include "support.h"

#include <string.h>

#include "step/test/test.h"

static struct arena arena;
static struct err err;
static struct test_journal journal;

static int setup(void **state)
{
	(void)state;
	err_clear(&err);
	journal = (struct test_journal){0};
	return 0;
}

static int teardown(void **state)
{
	json_decref(journal.tests);
	arena_release(&arena);
	return test_teardown(state);
}

static int parse(const char *text)
{
	return test_journal_parse(&(struct file_bytes){text, strlen(text), "j"}, &arena, &journal,
				  &err);
}

static const char *of(const char *test, const char *key)
{
	return json_string_value(json_object_get(json_object_get(journal.tests, test), key));
}

static void test_counts_tries_and_keeps_the_last_outcome(void **state)
{
	(void)state;
	assert_ok(parse("{\"begin\": \"T.a\", \"at\": 5.5}\n"
			"{\"test\": \"T.a\", \"outcome\": \"failed\", \"seconds\": 1.5, "
			"\"detail\": \"no\"}\n"
			"{\"end\": 1}\n"
			"{\"test\": \"T.a\", \"outcome\": \"passed\", \"seconds\": 1, \"detail\": "
			"\"\"}\n"
			"{\"end\": 0}\n"),
		  &err);
	assert_string_equal(of("T.a", "outcome"), "passed");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(journal.tests, "T.a"), "tries")),
		2);
	assert_true(journal.done);
	assert_null(journal.open);
	assert_int_equal(journal.lines, 5);
}

static void test_names_the_test_that_did_not_end(void **state)
{
	(void)state;
	assert_ok(parse("{\"begin\": \"T.a\", \"at\": 5.5}\n{\"test\": \"T.a\", \"outcome\": "
			"\"passed\"}\n"
			"{\"begin\": \"T.b\", \"at\": 7}\n"),
		  &err);
	assert_string_equal(journal.open, "T.b");
	assert_true(journal.open_at == 7);
	assert_false(journal.done);
}

/* What a kill leaves: nothing of the last line counts. */
static void test_leaves_half_a_line_out(void **state)
{
	(void)state;
	assert_ok(parse("{\"end\": 0}\n{\"test\": \"T.b\", \"outc"), &err);
	assert_int_equal(json_object_size(journal.tests), 0);
	assert_int_equal(journal.lines, 1);
}

static void test_a_file_that_cannot_be_run_is_a_failure(void **state)
{
	(void)state;
	assert_ok(parse("{\"error\": \"ImportError: x\"}\n"), &err);
	assert_string_equal(of("(file)", "outcome"), "failed");
	assert_string_equal(of("(file)", "detail"), "ImportError: x");
	assert_true(journal.done);
}

static void test_a_file_that_skips_itself_is_skipped(void **state)
{
	(void)state;
	assert_ok(parse("{\"end\": 0, \"skipped\": \"no CUDA\"}\n"), &err);
	assert_string_equal(of("(file)", "outcome"), "skipped");
	assert_true(journal.done);
}

static void test_refuses_other_lines(void **state)
{
	(void)state;
	assert_err(parse("{\"end\": 0}\n[]\n"), &err, ERR_INTEGRITY, "j:2: not an object");
	assert_err(parse("nonsense\n"), &err, ERR_INTEGRITY, "j:1: not an object");
	assert_err(parse("{\"test\": \"T.a\", \"outcome\": \"fine\"}\n"), &err, ERR_INTEGRITY,
		   "j:1: an outcome that is not known");
	assert_err(parse("{\"test\": \"T.a\"}\n"), &err, ERR_INTEGRITY,
		   "j:1: an outcome that is not known");
	assert_err(parse("{\"end\": \"0\"}\n"), &err, ERR_INTEGRITY,
		   "j:1: neither a test nor an end");
	assert_err(parse("{\"end\": 0, \"end\": 1}\n"), &err, ERR_INTEGRITY, "j:1: not an object");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts_tries_and_keeps_the_last_outcome, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_names_the_test_that_did_not_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_leaves_half_a_line_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_run_is_a_failure, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_file_that_skips_itself_is_skipped, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_refuses_other_lines, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
