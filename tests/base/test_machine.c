#include "support.h"

#include <unistd.h>

#include "base/machine.h"

static void test_there_is_a_processor(void **state)
{
	(void)state;
	unsigned n = machine_processors();
	assert_true(n >= 1 && n <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
}

static void test_memory_is_between_nothing_and_all(void **state)
{
	(void)state;
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t free_now = machine_memory();
	assert_true(free_now > UINT64_C(1) << 20);
	assert_true(free_now <= all);
}

static void test_features_are_whole_words(void **state)
{
	(void)state;
#if defined(__x86_64__)
	assert_true(machine_has_feature("sse2"));
	assert_false(machine_has_feature("sse2x"));
#endif
	assert_false(machine_has_feature("no-such-feature"));
	assert_false(machine_has_feature(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_is_a_processor),
		cmocka_unit_test(test_memory_is_between_nothing_and_all),
		cmocka_unit_test(test_features_are_whole_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
