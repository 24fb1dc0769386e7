#include "support.h"

#include <stdatomic.h>

#include "base/cleanup.h"
#include "base/run.h"

static _Atomic unsigned seen[200];

static void count(unsigned i, void *user)
{
	atomic_fetch_add(&seen[i], 1);
	atomic_fetch_add((_Atomic unsigned *)user, 1);
}

static void each_is_done_once(void **state)
{
	(void)state;
	_Atomic unsigned all = 0;
	thread_each(0, count, &all);
	assert_int_equal(all, 0);
	thread_each(ARRAY_LEN(seen), count, &all);
	assert_int_equal(all, ARRAY_LEN(seen));
	for (size_t i = 0; i < ARRAY_LEN(seen); i++)
		assert_int_equal(seen[i], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_done_once)};
	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
