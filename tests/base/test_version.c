#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static void components_compare_as_numbers(void **state)
{
	(void)state;
	assert_true(version_cmp("12.8", "12.10") < 0);
	assert_true(version_cmp("12.10", "12.8") > 0);
	assert_true(version_cmp("9", "10") < 0);
	assert_true(version_cmp("3.13.1", "3.13") > 0);
	assert_int_equal(version_cmp("2.9.1", "2.9.1"), 0);
}

static void missing_components_are_zero(void **state)
{
	(void)state;
	assert_int_equal(version_cmp("2.6", "2.6.0"), 0);
	assert_int_equal(version_cmp("2.6.0.0", "2.6"), 0);
	assert_true(version_cmp("2.6", "2.6.0.1") < 0);
	assert_int_equal(version_cmp("", "0"), 0);
}

static void leading_zeros_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(version_cmp("2.06", "2.6"), 0);
	assert_int_equal(version_cmp("00", "0"), 0);
	assert_true(version_cmp("2.010", "2.9") > 0);
}

static void suffixes_are_ignored(void **state)
{
	(void)state;
	assert_int_equal(version_cmp("2.6.0a0+git1", "2.6.0"), 0);
	assert_int_equal(version_cmp("2.9.1+cu128.sm90", "2.9.1"), 0);
	assert_int_equal(version_cmp("13.0-rc1", "13"), 0);
	assert_int_equal(version_cmp("3.31.6-g123", "3.31.6"), 0);
	assert_int_equal(version_cmp("2.9.x", "2.9"), 0);
}

static void no_component_is_too_long(void **state)
{
	(void)state;
	assert_true(version_cmp("1.99999999999999999999999999", "1.100000000000000000000000000") <
		    0);
	assert_true(version_cmp("18446744073709551616", "1") > 0);
}

static bool in(const char *v, const char *range)
{
	struct err e = {0};
	bool ret = false;

	assert_ok(version_in(v, range, &ret, &e), &e);
	return ret;
}

static void ordering_clauses(void **state)
{
	(void)state;
	assert_true(in("3.27", ">=3.27,<4"));
	assert_true(in("3.31.6", ">=3.27,<4"));
	assert_false(in("4.0", ">=3.27,<4"));
	assert_false(in("3.9", ">=3.27,<4"));
	assert_true(in("4", "<=4.0"));
	assert_false(in("4", ">4.0"));
	assert_true(in("4.0.1", ">4"));
}

static void equality_clauses(void **state)
{
	(void)state;
	assert_true(in("1.2", "==1.2.0"));
	assert_false(in("1.2.1", "==1.2"));
	assert_false(in("1.2", "!=1.2"));
	assert_true(in("1.3", "!=1.2"));
}

static void wildcards_match_whole_components(void **state)
{
	(void)state;
	assert_true(in("2.9.1", "==2.9.*"));
	assert_true(in("2.9", "==2.9.*"));
	assert_false(in("2.90", "==2.9.*"));
	assert_false(in("2.10", "==2.1.*"));
	assert_true(in("2", "==2.0.*"));
	assert_true(in("2.8", "!=2.9.*"));
	assert_false(in("2.9.3", "!=2.9.*"));
}

static void compatible_release(void **state)
{
	(void)state;
	assert_true(in("3.9", "~=3.1"));
	assert_false(in("4.0", "~=3.1"));
	assert_false(in("3.0", "~=3.1"));
	assert_true(in("3.1.9", "~=3.1.2"));
	assert_false(in("3.2", "~=3.1.2"));
}

static void blanks_are_free(void **state)
{
	(void)state;
	assert_true(in("3", ""));
	assert_true(in("3", "  \t"));
	assert_true(in("3.30", "  >= 3.27 ,  < 4 "));
}

static void value_may_carry_a_suffix(void **state)
{
	(void)state;
	assert_true(in("2.6.0a0+git1", ">=2.6,<2.7"));
	assert_true(in("12.8.93", "==12.8.*"));
}

static void malformed_ranges_are_refused(void **state)
{
	(void)state;
	struct err e = {0};
	static const char *const bad[] = {
		"3.27",   ">=",  ">=3.27,", ",>=3",    ">=3,,<4",  "=3",
		"=>3",    ">=x", ">=3.x",   "<4.*",    ">=3.",     ">=3..1",
		"==.*",   "==*", "~=3",     "~=3.1.*", "==2.0rc1", "==2.0+cpu",
		">= 3 4", "== ", ">=3 <4",  "===3.0",  "!3",       "==1.*.2"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		bool ret = true;
		err_clear(&e);
		if (version_in("3.27", bad[i], &ret, &e) != -1)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(e.kind, ERR_CONFIG);
		assert_contains(e.msg, bad[i]);
		assert_string_not_equal(e.hint, "");
		assert_true(ret);
	}
}

static void a_bad_clause_behind_a_false_one_is_seen(void **state)
{
	(void)state;
	struct err e = {0};
	bool ret;
	assert_err(version_in("1", ">2,oops", &ret, &e), &e, ERR_CONFIG,
		   "malformed version range '>2,oops'");
}

static void value_must_begin_with_a_number(void **state)
{
	(void)state;
	struct err e = {0};
	bool ret;
	assert_err(version_in("", ">2", &ret, &e), &e, ERR_CONFIG, "not a version: ''");
	assert_err(version_in("v1.2", ">2", &ret, &e), &e, ERR_CONFIG, "not a version: 'v1.2'");
	assert_err(version_in(".5", "", &ret, &e), &e, ERR_CONFIG, "not a version");
}

static void validity(void **state)
{
	(void)state;
	assert_true(version_valid("3"));
	assert_true(version_valid("12.8.93.1"));
	static const char *const bad[] = {"",      ".",  "3.", ".3", "3..1", "3a",
					  "3.1+x", "v3", " 3", "3 ", "-1"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (version_valid(bad[i]))
			fail_msg("'%s' was taken", bad[i]);
}

/* Random ranges and versions: never a crash, and an answer
 * that is either an error or consistent with version_cmp. */
static void random_ranges_are_survived(void **state)
{
	(void)state;
	static const char alphabet[] = "0123456789..,,<>=!~*+- \tabrc\xff";
	unsigned seed = 20240601;
	for (int round = 0; round < 20000; round++) {
		char range[64] = {0}, v[32] = {0};
		size_t n = (size_t)rand_r(&seed) % (sizeof(range) - 1),
		       m = (size_t)rand_r(&seed) % (sizeof(v) - 1);
		for (size_t i = 0; i < n; i++)
			range[i] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
		for (size_t i = 0; i < m; i++)
			v[i] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
		struct err e = {0};
		bool ret = false, again = true;
		int rc = version_in(v, range, &ret, &e);
		assert_int_equal(e.kind, rc ? ERR_CONFIG : ERR_NONE);
		if (version_valid(v)) {
			char exact[80];
			snprintf(exact, sizeof(exact), ">=%s,<=%s", v, v);
			assert_ok(version_in(v, exact, &again, &e), &e);
			assert_true(again);
		}

		assert_int_equal(version_cmp(v, range), -version_cmp(range, v));
	}
}

/* Well-formed ranges with one byte changed. */
static void mutated_ranges_are_survived(void **state)
{
	(void)state;
	static const char *const seeds[] = {">=3.27,<4", "==2.9.*", "!=1.2,~=1.0", ">=62.3,<80"};
	unsigned seed = 7;
	int refused = 0, taken = 0;
	for (int round = 0; round < 20000; round++) {
		char range[32];
		snprintf(range, sizeof(range), "%s",
			 seeds[(size_t)rand_r(&seed) % ARRAY_LEN(seeds)]);
		range[(size_t)rand_r(&seed) % strlen(range)] = (char)(1 + rand_r(&seed) % 255);
		struct err e = {0};
		bool ret = false;
		if (version_in("3.9", range, &ret, &e) == 0)
			taken++;
		else
			refused++;
	}

	assert_true(refused > 1000);
	assert_true(taken > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(components_compare_as_numbers),
		cmocka_unit_test(missing_components_are_zero),
		cmocka_unit_test(leading_zeros_do_not_count),
		cmocka_unit_test(suffixes_are_ignored),
		cmocka_unit_test(no_component_is_too_long),
		cmocka_unit_test(ordering_clauses),
		cmocka_unit_test(equality_clauses),
		cmocka_unit_test(wildcards_match_whole_components),
		cmocka_unit_test(compatible_release),
		cmocka_unit_test(blanks_are_free),
		cmocka_unit_test(value_may_carry_a_suffix),
		cmocka_unit_test(malformed_ranges_are_refused),
		cmocka_unit_test(a_bad_clause_behind_a_false_one_is_seen),
		cmocka_unit_test(value_must_begin_with_a_number),
		cmocka_unit_test(validity),
		cmocka_unit_test(random_ranges_are_survived),
		cmocka_unit_test(mutated_ranges_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
