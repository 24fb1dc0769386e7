#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/sys/json.h"
#include "step/bench/bench.h"

static struct arena arena;
static struct bench_said said;

static int setup(void **state)
{
	(void)state;
	said = (struct bench_said){.arena = &arena};
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void say(const char *line)
{
	bench_said_line(&said, line, strlen(line));
}

static void begin(const char *name)
{
	say(arena_printf(&arena, "{\"bench\": \"begin\", \"name\": \"%s\"}", name));
}

#define VALUE "{\"bench\": \"value\", \"name\": \"gemm\", \"unit\": \"s\", \"mean\": true, "
#define SUMS "\"sums\": [3, -1.5], \"tolerance\": 0.001}"

static void test_reads_a_run(void **state)
{
	(void)state;
	say("{\"bench\": \"about\", \"torch\": \"2.6.0+cpu\", \"cpu\": \"AVX2\", \"cuda\": false}");
	begin("gemm");
	assert_string_equal(said.open, "gemm");
	say(VALUE "\"value\": 0.25, " SUMS);
	assert_null(said.open);
	begin("sort 1M");
	say("{\"bench\": \"failed\", \"name\": \"sort 1M\", \"why\": \"RuntimeError: no\"}");
	begin("memory");
	say("{\"bench\": \"value\", \"name\": \"memory\", \"unit\": \"bytes\", \"mean\": false, \"value\": 5, "
	    "\"sums\": "
	    "null, \"tolerance\": null}");
	begin("loader");
	say("{\"bench\": \"skipped\", \"name\": \"loader\", \"why\": \"not here\"}");
	say("{\"bench\": \"end\"}");
	assert_null(said.wrong);
	assert_true(said.done);
	assert_string_equal(said.torch, "2.6.0+cpu");
	assert_int_equal(said.count, 4);
	const struct bench_answer *gemm = bench_said_find(&said, "gemm");
	assert_true(gemm->value == 0.25 && gemm->in_mean && gemm->has_sums && gemm->sums[1] == -1.5);
	assert_string_equal(bench_said_find(&said, "sort 1M")->why, "RuntimeError: no");
	assert_false(bench_said_find(&said, "memory")->has_sums);
	assert_true(bench_said_find(&said, "loader")->skipped);
	assert_null(bench_said_find(&said, "other"));
}

static void test_what_else_is_printed_is_kept_to_its_end(void **state)
{
	(void)state;
	char block[300];
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 20; i++)
		bench_said_line(&said, block, sizeof(block));
	bench_said_line(&said, "a\0b", 3);
	say("ImportError: the last");
	assert_null(said.wrong);
	assert_true(strlen(said.words) < sizeof(said.words));
	assert_contains(said.words, "a b\nImportError: the last\n");
	AUTO_FREE char *huge = malloc(1 << 20);
	memset(huge, 'y', 1 << 20);
	bench_said_line(&said, huge, 1 << 20);
	assert_true(strlen(said.words) == sizeof(said.words) - 1);
	assert_not_contains(said.words, "x");
}

static void test_a_death_is_the_answer(void **state)
{
	(void)state;
	begin("gemm");
	bench_said_close(&said, "the process died of signal 4");
	assert_string_equal(bench_said_find(&said, "gemm")->why, "the process died of signal 4");
	bench_said_close(&said, "nothing is open");
	assert_int_equal(said.count, 1);
}

static void test_reasons_are_plain_and_short(void **state)
{
	(void)state;
	AUTO_BUF struct buf line = {0};
	buf_addstr(&line, "{\"bench\": \"failed\", \"name\": \"gemm\", \"why\": \"a\\u001b[2J\\nb\\u007f");
	for (int i = 0; i < 300; i++)
		buf_addstr(&line, "\u00e9");
	buf_addstr(&line, "\"}");
	begin("gemm");
	say(buf_cstr(&line));
	assert_null(said.wrong);
	const char *why = bench_said_find(&said, "gemm")->why;
	assert_memory_equal(why, "a [2J b ", 8);
	assert_int_equal(strlen(why), 500);
	AUTO_JSON json_t *text = json_string(why); /* NULL unless it is UTF-8 */
	assert_non_null(text);
	setup(state);
	buf_reset(&line);
	buf_addstr(&line, "{\"bench\": \"failed\", \"name\": \"gemm\", \"why\": \"x");
	for (int i = 0; i < 300; i++)
		buf_addstr(&line, "\u00e9");
	buf_addstr(&line, "\"}");
	begin("gemm");
	say(buf_cstr(&line));
	assert_int_equal(strlen(bench_said_find(&said, "gemm")->why), 499);
}

/* Each is told as wrong, leaves nothing behind, and so does a right line behind it. */
static void test_lines_that_cannot_be_right(void **state)
{
	static const char *const lines[] = {
		"{\"bench\": \"value\", \"name\": ",
		"{\"bench\": 5}",
		"{\"bench\": \"value\", \"bench\": \"end\"}",
		"{\"bench\": \"begin\", \"name\": \"within another\"}",
		"{\"bench\": \"end\"}",
		"{\"bench\": \"odd\", \"name\": \"gemm\"}",
		"{\"bench\": \"failed\", \"name\": \"gemm\"}",
		"{\"bench\": \"failed\", \"name\": \"sort\", \"why\": \"another\"}",
		VALUE SUMS,
		VALUE "\"value\": NaN, " SUMS,
		VALUE "\"value\": Infinity, " SUMS,
		VALUE "\"value\": 1e999, " SUMS,
		VALUE "\"value\": 1e300, " SUMS,
		VALUE "\"value\": 99999999999999999999999, " SUMS,
		VALUE "\"value\": 0, " SUMS,
		VALUE "\"value\": -1, " SUMS,
		VALUE "\"value\": 1e-300, " SUMS,
		VALUE "\"value\": \"1\", " SUMS,
		VALUE "\"value\": 1}",
		VALUE "\"value\": 1, \"sums\": [1], \"tolerance\": 0.1}",
		VALUE "\"value\": 1, \"sums\": [1, 2, 3], \"tolerance\": 0.1}",
		VALUE "\"value\": 1, \"sums\": [1, null], \"tolerance\": 0.1}",
		VALUE "\"value\": 1, \"sums\": [1, NaN], \"tolerance\": 0.1}",
		VALUE "\"value\": 1, \"sums\": [1, 2], \"tolerance\": 0}",
		VALUE "\"value\": 1, \"sums\": [1, 2], \"tolerance\": 2}",
		VALUE "\"value\": 1, \"sums\": [1, 2], \"tolerance\": null}",
		"{\"bench\": \"value\", \"name\": \"gemm\", \"unit\": \"miles\", \"value\": 1, " SUMS,
		"{\"bench\": \"value\", \"name\": \"gemm\", \"value\": 1, " SUMS,
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		setup(state);
		begin("gemm");
		say(lines[i]);
		if (!said.wrong)
			fail_msg("taken: %s", lines[i]);
		assert_contains(said.wrong, "line 2: ");
		say(VALUE "\"value\": 1, " SUMS);
		assert_int_equal(said.count, 0);
		assert_false(said.done);
	}
}

static void test_names_and_order(void **state)
{
	static const char *const names[] = {"",
					    " x",
					    "x ",
					    "a\\u001b[31m",
					    "\\u00e9",
					    "a\\nb",
					    "0123456789012345678901234567890123456789012345678901234567890123456789"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		setup(state);
		begin(names[i]);
		assert_string_equal(said.wrong, "line 1: not the begin of a workload");
	}
	setup(state);
	begin("gemm");
	say("{\"bench\": \"failed\", \"name\": \"gemm\", \"why\": \"x\"}");
	begin("gemm"); /* a second answer */
	assert_non_null(said.wrong);
	setup(state);
	say(VALUE "\"value\": 1, " SUMS); /* did not begin */
	assert_non_null(said.wrong);
	setup(state);
	say("{\"bench\": \"end\"}");
	begin("gemm");
	assert_string_equal(said.wrong, "line 2: a line behind the end");
}

static void test_what_is_known_of_a_torch(void **state)
{
	static const char *const lines[] = {
		"{\"bench\": \"about\", \"torch\": \"1\"}",
		"{\"bench\": \"about\", \"torch\": 1, \"cpu\": \"\"}",
		"{\"bench\": \"about\", \"torch\": \"\\u001b\", \"cpu\": \"\"}",
		"{\"bench\": \"about\", \"cpu\": \"\"}",
		"{\"bench\": \"about\", \"torch\": \"1\", \"cpu\": \"a\\nb\"}",
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		setup(state);
		say(lines[i]);
		assert_non_null(said.wrong);
	}
	setup(state);
	say("{\"bench\": \"about\", \"torch\": \"1\", \"cpu\": \"\"}");
	assert_null(said.wrong);
	say("{\"bench\": \"about\", \"torch\": \"1\", \"cpu\": \"\"}"); /* a second time */
	assert_non_null(said.wrong);
}

static void test_many_and_long_lines(void **state)
{
	(void)state;
	for (int i = 0; i < BENCH_WORKLOADS_MAX; i++) {
		const char *name = arena_printf(&arena, "w%d", i);
		begin(name);
		say(arena_printf(&arena, "{\"bench\": \"skipped\", \"name\": \"%s\", \"why\": \"x\"}", name));
	}
	assert_null(said.wrong);
	begin("one more");
	assert_non_null(said.wrong);
	setup(state);
	begin("gemm");
	AUTO_BUF struct buf line = {0};
	buf_addstr(&line, "{\"bench\": \"failed\", \"name\": \"gemm\", \"why\": \"");
	for (int i = 0; i < 300 << 10; i++)
		buf_addc(&line, 'x');
	buf_addstr(&line, "\"}");
	say(buf_cstr(&line));
	assert_string_equal(said.wrong, "line 2: not an object");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reads_a_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_else_is_printed_is_kept_to_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_death_is_the_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reasons_are_plain_and_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lines_that_cannot_be_right, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_and_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_known_of_a_torch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_and_long_lines, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
