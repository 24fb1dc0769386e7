#include "support.h"

#include <math.h>
#include <string.h>

#include "base/sys/json.h"
#include "step/bench/bench.h"

enum { PAIRS = 3 };

static struct arena arena;
static struct bench_said said[PAIRS * BENCH_SIDES];
static json_t *set;

static int setup(void **state)
{
	(void)state;
	set = NULL;
	memset(said, 0, sizeof(said));
	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		said[i].arena = &arena;
	return 0;
}

static int teardown(void **state)
{
	json_decref(set);
	arena_release(&arena);
	return test_teardown(state);
}

static void tell(unsigned pair, enum bench_side side, const char *name, const char *rest)
{
	struct bench_said *s = &said[pair * BENCH_SIDES + side];
	const char *lines[] = {arena_printf(&arena, "{\"bench\": \"begin\", \"name\": \"%s\"}", name),
			       arena_printf(&arena, "{\"bench\": %s, \"name\": \"%s\"}", rest, name)};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		bench_said_line(s, lines[i], strlen(lines[i]));
	assert_null(s->wrong);
}

static void value(unsigned pair, enum bench_side side, const char *name, double seconds, double sum)
{
	tell(pair, side, name,
	     arena_printf(&arena,
			  "\"value\", \"value\": %.17g, \"unit\": \"s\", \"mean\": true, \"sums\": [%.17g, 0], "
			  "\"tolerance\": 0.001",
			  seconds, sum));
}

static void values(const char *name, double ours, double other)
{
	for (unsigned p = 0; p < PAIRS; p++) {
		value(p, BENCH_OURS, name, ours, 7);
		value(p, BENCH_OTHER, name, other, 7);
	}
}

static void judge(void)
{
	const struct bench_said *runs[ARRAY_LEN(said)];
	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		runs[i] = &said[i];
	set = bench_judge(runs, PAIRS, 2, NULL, &arena);
}

static const json_t *of(const char *name)
{
	const json_t *w;
	size_t i;
	json_array_foreach(json_object_get(set, "workloads"), i,
			   w) if (strcmp(json_text(w, "name"), name) == 0) return w;
	fail_msg("no workload '%s'", name);
	return NULL;
}

static const char *state_of(const char *name)
{
	return json_text(of(name), "state");
}

static const char *why_of(const char *name, const char *side)
{
	return json_member(json_object_get(of(name), side), "why");
}

static double number(const json_t *of, const char *side, const char *key)
{
	const json_t *n = json_object_get(side ? json_object_get(of, side) : of, key);
	assert_true(json_is_number(n));
	return json_number_value(n);
}

static const char *lowest(void)
{
	struct strlist names = {0};
	const json_t *name;
	size_t i;
	json_array_foreach(json_object_get(set, "lowest"), i, name)
		strlist_ref(&names, &arena, json_string_value(name));
	return strlist_join(&names, &arena, " ");
}

static bool near(double x, double y)
{
	return fabs(x - y) < 1e-9;
}

static void test_every_second_pair_is_turned(void **state)
{
	(void)state;
	assert_false(bench_other_first(0));
	assert_true(bench_other_first(1));
	assert_false(bench_other_first(2));
}

/* A machine that becomes slower slows both of a pair: the ratio of the medians would be 3.5. */
static void test_a_ratio_is_that_of_pairs(void **state)
{
	(void)state;
	const double ours[PAIRS] = {1, 2, 4}, other[PAIRS] = {2, 7, 8};
	for (unsigned p = 0; p < PAIRS; p++) {
		value(p, BENCH_OURS, "gemm", ours[p], 7);
		value(p, BENCH_OTHER, "gemm", other[p], 7.001);
	}
	judge();
	const json_t *w = of("gemm"), *samples = json_object_get(json_object_get(w, "other"), "samples");
	assert_string_equal(state_of("gemm"), "compared");
	assert_true(near(number(w, NULL, "ratio"), 2));
	assert_true(near(number(w, "wheel", "median"), 2) && near(number(w, "other", "median"), 7));
	assert_true(near(number(w, "wheel", "spread"), 1.5));
	assert_int_equal(json_array_size(samples), PAIRS);
	assert_true(near(json_real_value(json_array_get(samples, 1)), 7));
	assert_int_equal(json_int(set, "threads"), 2);
}

static void test_the_mean_and_the_lowest(void **state)
{
	(void)state;
	values("even", 1, 1);
	values("fast", 1, 4);
	values("slow", 4, 1);
	values("slower", 16, 2);
	for (unsigned p = 0; p < PAIRS; p++)
		for (enum bench_side s = BENCH_OURS; s < BENCH_SIDES; s++)
			tell(p, s, "import",
			     "\"value\", \"value\": 3, \"unit\": \"s\", \"mean\": false, \"sums\": null, "
			     "\"tolerance\": null");
	judge();
	assert_int_equal(json_int(set, "compared"), 4);
	assert_true(near(number(set, NULL, "geometric_mean"), pow(1.0 * 4 * 0.25 * 0.125, 0.25)));
	assert_string_equal(lowest(), "slower slow");
	assert_string_equal(state_of("import"), "compared");
	assert_true(near(number(of("import"), NULL, "ratio"), 1));
}

static void test_only_the_five_lowest_are_named(void **state)
{
	(void)state;
	for (int i = 0; i < 9; i++)
		values(arena_printf(&arena, "w%d", i), 10, 1 + (i * 5) % 9);
	judge();
	const json_t *shown = json_object_get(set, "-lowest"), *names = json_object_get(set, "lowest");
	assert_int_equal(json_array_size(names), 5);
	for (size_t i = 0; i < 5; i++) {
		const char *name = json_string_value(json_array_get(names, i));
		assert_true(near(number(of(name), NULL, "ratio"), (double)(i + 1) / 10));
		assert_string_equal(json_text(json_array_get(shown, i), "name"), name);
	}
}

static void test_one_failure_is_told_and_left_out(void **state)
{
	(void)state;
	values("good", 1, 2);
	value(0, BENCH_OURS, "bad", 1, 7);
	tell(0, BENCH_OTHER, "bad", "\"failed\", \"why\": \"RuntimeError: no\"");
	value(1, BENCH_OURS, "late", 1, 7);
	value(1, BENCH_OTHER, "late", 1, 7);
	tell(2, BENCH_OURS, "late", "\"failed\", \"why\": \"not done in 5 s\"");
	judge();
	assert_int_equal(json_int(set, "compared"), 1);
	assert_true(near(number(set, NULL, "geometric_mean"), 2));
	assert_int_equal(json_int(set, "failed"), 2);
	assert_string_equal(state_of("bad"), "failed");
	assert_null(why_of("bad", "wheel"));
	assert_string_equal(why_of("bad", "other"), "RuntimeError: no");
	assert_true(json_is_null(json_object_get(of("bad"), "ratio")));
	assert_string_equal(state_of("late"), "failed");
	assert_string_equal(why_of("late", "wheel"), "not done in 5 s");
}

static void test_an_answer_that_is_missing_is_a_failure(void **state)
{
	(void)state;
	value(0, BENCH_OURS, "alone", 1, 7);
	value(0, BENCH_OURS, "apart", 1, 7);
	value(1, BENCH_OTHER, "apart", 1, 7);
	judge();
	assert_string_equal(state_of("alone"), "failed");
	assert_string_equal(why_of("alone", "other"), "it gave no answer");
	assert_string_equal(state_of("apart"), "failed"); /* never in one pair */
	assert_int_equal(json_int(set, "compared"), 0);
	assert_true(json_is_null(json_object_get(set, "geometric_mean")));
}

static void test_another_result_is_told_not_timed(void **state)
{
	(void)state;
	values("same", 1, 1);
	for (unsigned p = 0; p < PAIRS; p++) {
		value(p, BENCH_OURS, "other", 1, 7);
		value(p, BENCH_OTHER, "other", 1, p == 2 ? 7.1 : 7);
		value(p, BENCH_OURS, "without", 1, 7);
		tell(p, BENCH_OTHER, "without",
		     "\"value\", \"value\": 3, \"unit\": \"s\", \"mean\": true, \"sums\": null, \"tolerance\": null");
	}
	judge();
	assert_string_equal(state_of("other"), "differs");
	assert_string_equal(state_of("without"), "differs");
	assert_int_equal(json_int(set, "differing"), 2);
	assert_int_equal(json_int(set, "compared"), 1);
	assert_true(json_is_null(json_object_get(of("other"), "ratio")));
}

static void test_what_both_skip_is_not_a_failure(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PAIRS; p++)
		for (enum bench_side s = BENCH_OURS; s < BENCH_SIDES; s++)
			tell(p, s, "loader", "\"skipped\", \"why\": \"not for this device\"");
	judge();
	assert_string_equal(state_of("loader"), "skipped");
	assert_int_equal(json_int(set, "failed"), 0);
}

/* In the table and in the page: the line of equal speed is in the middle of a bar. */
static void test_what_is_shown(void **state)
{
	(void)state;
	static const struct {
		double ratio;
		const char *bar;
	} bars[] = {{2, "faster 50.00 25.00"}, {0.5, "slower 25.00 25.00"}, {900, "faster 50.00 50.00"}};
	static const struct show bar[] = {{.text = "{-class} {-left:.2} {-width:.2}", .each = "workloads"}, {0}};
	static const struct show sets[] = {{.each = "sets", .rows = bar}, {0}};
	for (size_t i = 0; i < ARRAY_LEN(bars); i++) {
		json_decref(set);
		(void)setup(NULL);
		values("gemm", 1, bars[i].ratio);
		tell(0, BENCH_OURS, "conv", "\"failed\", \"why\": \"it <died>\"");
		tell(0, BENCH_OTHER, "conv",
		     "\"value\", \"value\": 1, \"unit\": \"s\", \"mean\": true, \"sums\": null, "
		     "\"tolerance\": null");
		judge();
		const struct bench_request q = {.pairs = 2, .device = "cpu", .names = {"a", "b"}};
		const struct bench_result r = {.torch = {"1", "1"}, .cpu = {"avx2", ""}, .sets = json_pack("[O]", set)};
		AUTO_JSON json_t *doc = bench_json(&q, &r);
		assert_contains(show_string(doc, sets, &arena), bars[i].bar);
		const char *text = show_string(doc, bench_rows, &arena);
		assert_contains(text, "the wheel  a (torch 1, code for avx2)\nthe other  b (torch 1)\n2 pairs, ");
		assert_contains(text, "failed: the wheel: it <died>\n");
		assert_contains(text, "geometric mean of 1  ");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_second_pair_is_turned),
		cmocka_unit_test_setup_teardown(test_a_ratio_is_that_of_pairs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_mean_and_the_lowest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_the_five_lowest_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_failure_is_told_and_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_answer_that_is_missing_is_a_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_result_is_told_not_timed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_both_skip_is_not_a_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_shown, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
