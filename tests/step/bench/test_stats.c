#include "support.h"

#include <math.h>

#include "step/bench/bench.h"

static bool near(double x, double y)
{
	return fabs(x - y) < 1e-12;
}

static void test_median(void **state)
{
	(void)state;
	const double odd[] = {9, 1, 4}, even[] = {8, 2, 6, 4};
	assert_true(near(bench_median(odd, 3), 4));
	assert_true(near(bench_median(even, 4), 5));
	assert_true(near(bench_median(odd, 1), 9));
	assert_true(near(bench_median(odd, 0), 0));
	assert_true(near(odd[0], 9) && near(odd[1], 1)); /* they stay as they are */
}

static void test_spread(void **state)
{
	(void)state;
	const double values[] = {4, 5, 3}, same[] = {2, 2};
	assert_true(near(bench_spread(values, 3), 0.5));
	assert_true(near(bench_spread(same, 2), 0));
	assert_true(near(bench_spread(values, 1), 0));
	assert_true(near(bench_spread(values, 0), 0));
}

static void test_geometric_mean(void **state)
{
	(void)state;
	const double opposite[] = {2, 0.5}, three[] = {1, 10, 100}, huge[] = {1e27, 1e27, 1e27};
	assert_true(near(bench_geometric_mean(opposite, 2), 1));
	assert_true(near(bench_geometric_mean(three, 3), 10));
	assert_true(isfinite(bench_geometric_mean(huge, 3)));
	assert_true(near(bench_geometric_mean(three, 0), 0));
}

static void test_same(void **state)
{
	(void)state;
	const double a[] = {100, -3}, close[] = {100.05, -3.05}, larger[] = {100.2, -3}, turned[] = {100, 3};
	const double zero[] = {0, 0};
	assert_true(bench_same(a, a, 1e-9));
	assert_true(bench_same(a, close, 1e-3));
	assert_false(bench_same(a, larger, 1e-3));
	assert_false(bench_same(larger, a, 1e-3));
	assert_false(bench_same(a, turned, 1e-3)); /* the same magnitudes, at other places */
	assert_false(bench_same(a, zero, 1e-3));
	assert_true(bench_same(zero, zero, 1e-9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_geometric_mean),
		cmocka_unit_test(test_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
