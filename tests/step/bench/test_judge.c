#include "support.h"

#include <math.h>
#include <string.h>

#include "base/sys/json.h"
#include "step/bench/bench.h"

enum { PAIRS = 3 };

static struct arena arena;
static struct bench_said said[PAIRS * BENCH_SIDES];
static struct bench_set set;

static int setup(void **state)
{
	(void)state;
	memset(said, 0, sizeof(said));
	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		said[i].arena = &arena;
	return 0;
}

static int teardown(void **state)
{
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
	bench_judge(runs, PAIRS, 2, &arena, &set);
}

static const struct bench_workload *of(const char *name)
{
	for (size_t i = 0; i < set.count; i++)
		if (strcmp(set.workloads[i].name, name) == 0)
			return &set.workloads[i];
	fail_msg("no workload '%s'", name);
	return NULL;
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
	const struct bench_workload *w = of("gemm");
	assert_int_equal(w->state, BENCH_COMPARED);
	assert_true(near(w->ratio, 2));
	assert_true(near(w->of[BENCH_OURS].median, 2) && near(w->of[BENCH_OTHER].median, 7));
	assert_true(near(w->of[BENCH_OURS].spread, 1.5));
	assert_int_equal(w->of[BENCH_OTHER].count, PAIRS);
	assert_true(near(w->of[BENCH_OTHER].samples[1], 7));
	assert_int_equal(set.threads, 2);
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
	assert_int_equal(set.compared, 4);
	assert_true(near(set.mean, pow(1.0 * 4 * 0.25 * 0.125, 0.25)));
	assert_int_equal(set.lowest_count, 2);
	assert_string_equal(set.workloads[set.lowest[0]].name, "slower");
	assert_string_equal(set.workloads[set.lowest[1]].name, "slow");
	assert_int_equal(of("import")->state, BENCH_COMPARED);
	assert_true(near(of("import")->ratio, 1));
}

static void test_only_the_five_lowest_are_named(void **state)
{
	(void)state;
	for (int i = 0; i < 9; i++)
		values(arena_printf(&arena, "w%d", i), 10, 1 + (i * 5) % 9);
	judge();
	assert_int_equal(set.lowest_count, BENCH_LOWEST);
	for (size_t i = 0; i < BENCH_LOWEST; i++)
		assert_true(near(set.workloads[set.lowest[i]].ratio, (double)(i + 1) / 10));
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
	assert_int_equal(set.compared, 1);
	assert_true(near(set.mean, 2));
	assert_int_equal(set.failed, 2);
	assert_int_equal(of("bad")->state, BENCH_FAILED);
	assert_null(of("bad")->of[BENCH_OURS].why);
	assert_string_equal(of("bad")->of[BENCH_OTHER].why, "RuntimeError: no");
	assert_true(near(of("bad")->ratio, 0));
	assert_int_equal(of("late")->state, BENCH_FAILED);
	assert_string_equal(of("late")->of[BENCH_OURS].why, "not done in 5 s");
}

static void test_an_answer_that_is_missing_is_a_failure(void **state)
{
	(void)state;
	value(0, BENCH_OURS, "alone", 1, 7);
	value(0, BENCH_OURS, "apart", 1, 7);
	value(1, BENCH_OTHER, "apart", 1, 7);
	judge();
	assert_int_equal(of("alone")->state, BENCH_FAILED);
	assert_string_equal(of("alone")->of[BENCH_OTHER].why, "it gave no answer");
	assert_int_equal(of("apart")->state, BENCH_FAILED); /* never in one pair */
	assert_int_equal(set.compared, 0);
	assert_true(near(set.mean, 0));
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
	assert_int_equal(of("other")->state, BENCH_DIFFERS);
	assert_int_equal(of("without")->state, BENCH_DIFFERS);
	assert_int_equal(set.differing, 2);
	assert_int_equal(set.compared, 1);
	assert_true(near(of("other")->ratio, 0));
}

static void test_what_both_skip_is_not_a_failure(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PAIRS; p++)
		for (enum bench_side s = BENCH_OURS; s < BENCH_SIDES; s++)
			tell(p, s, "loader", "\"skipped\", \"why\": \"not for this device\"");
	judge();
	assert_int_equal(of("loader")->state, BENCH_SKIPPED);
	assert_int_equal(set.failed, 0);
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
	struct bench_workload w = {.name = "gemm", .unit = "s", .state = BENCH_COMPARED};
	struct bench_workload died = {.name = "conv", .unit = "s", .state = BENCH_FAILED};
	died.of[BENCH_OURS].why = "it <died>";
	for (size_t i = 0; i < ARRAY_LEN(bars); i++) {
		w.ratio = bars[i].ratio;
		struct bench_workload both[] = {w, died};
		struct bench_set one = {.threads = 1, .workloads = both, .count = 2, .compared = 1, .mean = w.ratio};
		const struct bench_request q = {.pairs = 2, .device = "cpu"};
		const struct bench_result r = {.torch = {"1", "1"}, .cpu = {"avx2", ""}, .sets = &one, .sets_count = 1};
		const struct bench_shown s = {.request = &q, .result = &r, .names = {"a", "b"}};
		AUTO_JSON json_t *doc = bench_json(&s);
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
