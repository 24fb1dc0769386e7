#include "support.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static const char *const isas[] = {"avx", "avx2", "avx512", "avx512bf16", "armv8_2", "armv9"};

static void a_slip_finds_its_name(void **state)
{
	(void)state;
	assert_string_equal(suggest_nearest("axv512", isas, ARRAY_LEN(isas)), "avx512");
	assert_string_equal(suggest_nearest("avx512bf1", isas, ARRAY_LEN(isas)), "avx512bf16");
	assert_string_equal(suggest_nearest("arm9", isas, ARRAY_LEN(isas)), "armv9");
}

static void exact_name_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(isas); i++)
		assert_string_equal(suggest_nearest(isas[i], isas, ARRAY_LEN(isas)), isas[i]);
}

static void other_case_is_the_same_name(void **state)
{
	(void)state;
	const char *const c[] = {"ml", "mkl", "blis"};
	assert_string_equal(suggest_nearest("MKL", c, 3), "mkl");
	assert_string_equal(suggest_nearest("LBIS", c, 3), "blis");
	assert_null(suggest_nearest("XYZ", c, 3));
	const char *const twice[] = {"Mkl", "mkl"};
	assert_string_equal(suggest_nearest("MKL", twice, 2), "Mkl");
}

static void transposition_counts_one(void **state)
{
	(void)state;
	/* Without transpositions both are two steps away, and the first would win. */
	const char *const c[] = {"abxx", "bacd"};
	assert_string_equal(suggest_nearest("abcd", c, 2), "bacd");
}

static void first_wins_on_a_tie(void **state)
{
	(void)state;
	const char *const c[] = {"sm80", "sm90"};
	assert_string_equal(suggest_nearest("sm70", c, 2), "sm80");
}

static void far_names_are_not_offered(void **state)
{
	(void)state;
	assert_null(suggest_nearest("pytorch", isas, ARRAY_LEN(isas)));
	assert_null(suggest_nearest("avx", isas, 0));
	assert_null(suggest_nearest("", isas, ARRAY_LEN(isas)));
}

static void nothing_in_common_is_not_near(void **state)
{
	(void)state;
	const char *const c[] = {"xy", "q"};
	assert_null(suggest_nearest("ab", c, 2));
}

static void very_long_names_are_safe(void **state)
{
	(void)state;
	char big[1000];
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	const char *const c[] = {big, "avx"};
	assert_null(suggest_nearest(big, isas, ARRAY_LEN(isas)));
	assert_string_equal(suggest_nearest("avx", c, 2), "avx");
	big[128] = '\0';
	const char *const edge[] = {big};
	assert_ptr_equal(suggest_nearest(big, edge, 1), big);
}

static void versions_are_read_as_versions(void **state)
{
	(void)state;
	static const char *const all[] = {"2.6.0", "2.6.0-debian", "2.7.1",
					  "2.9.0", "2.9.1",        "2.11.0"};
	static const char *const asked[][2] = {
		{"2.11", "2.11.0"},   {"2.9", "2.9.1"},     {"2.6", "2.6.0"},
		{"2.9.1.1", "2.9.1"}, {"latest", "2.11.0"}, {"271", "2.7.1"},
		{"v2.9.1", "2.9.1"},  {"2.9.2", "2.9.1"},   {"2.6.0-debain", "2.6.0-debian"}};
	for (size_t i = 0; i < ARRAY_LEN(asked); i++)
		assert_string_equal(suggest_version(asked[i][0], all, ARRAY_LEN(all)), asked[i][1]);
	static const char *const toolkits[] = {"12.8", "12.9", "13.0"};
	assert_string_equal(suggest_version("13", toolkits, 3), "13.0");
	assert_string_equal(suggest_version("cuda12_8", toolkits, 3), "12.8");
	assert_null(suggest_version("no such thing", toolkits, 3));
	static const char *const pythons[] = {"3.9",  "3.10", "3.11", "3.12",
					      "3.13", "3.14", "3.15"};
	assert_string_equal(suggest_version("3.13.1", pythons, 7), "3.13");
	assert_string_equal(suggest_version("313", pythons, 7), "3.13");
	assert_string_equal(suggest_version("3.16", pythons, 7), "3.15");
	assert_string_equal(suggest_version("3.8", pythons, 7), "3.9");
	/* What all begin with says nothing of which one is meant. */
	assert_null(suggest_version("3", pythons, 7));
	assert_null(suggest_version("2", all, ARRAY_LEN(all)));
	assert_string_equal(suggest_version("12", (const char *const[]){"12.8"}, 1), "12.8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_read_as_versions),
		cmocka_unit_test(a_slip_finds_its_name),
		cmocka_unit_test(exact_name_is_found),
		cmocka_unit_test(other_case_is_the_same_name),
		cmocka_unit_test(transposition_counts_one),
		cmocka_unit_test(first_wins_on_a_tie),
		cmocka_unit_test(far_names_are_not_offered),
		cmocka_unit_test(nothing_in_common_is_not_near),
		cmocka_unit_test(very_long_names_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
