#include "support.h"

#include <string.h>

#include "base/text.h"

static void sizes_are_powers_of_1024(void **state)
{
	(void)state;
	assert_true(size_bytes("17") == 17);
	assert_true(size_bytes("0") == 0);
	assert_true(size_bytes("3K") == 3072);
	assert_true(size_bytes("2300M") == UINT64_C(2300) << 20);
	assert_true(size_bytes("2G") == UINT64_C(2) << 30);
	assert_true(size_bytes("1T") == UINT64_C(1) << 40);
	assert_true(size_bytes("9223372036854775807") == INT64_MAX);
}

static void all_else_is_refused_by_name(void **state)
{
	static const char *const texts[] = {"",
					    "-1",
					    "+1",
					    "-1G",
					    " 1G",
					    "1GB",
					    "1.5G",
					    "x",
					    "G",
					    "1X",
					    "1g",
					    "1 G",
					    "99999999T",
					    "9223372036854775808",
					    "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err e = {0};
		char want[64];
		uint64_t n = 7;
		snprintf(want, sizeof(want), "not a size: '%s'", texts[i]);
		assert_err(size_parse(texts[i], &n, &e), &e, ERR_CONFIG, want);
		assert_non_null(strstr(e.hint, "such as 20G"));
		assert_true(n == 7);
		assert_true(size_bytes(texts[i]) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(all_else_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
