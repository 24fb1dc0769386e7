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

static _Atomic unsigned begun;

/* The items 3 and 7 fail. */
static int fail_some(unsigned thread, size_t i, void *user, struct err *e)
{
	size_t *order = user;

	assert_true(thread < 64);
	order[atomic_fetch_add(&begun, 1)] = i;
	return i == 3 || i == 7 ? err_set(e, ERR_BUILD, "item %zu", i) : 0;
}

static void the_largest_item_begins_first_and_the_first_error_counts(void **state)
{
	static const uint64_t sizes[] = {1, 2, 9, 1, 2, 1, 1, 8, 1};
	static const size_t order[] = {2, 7, 1, 4, 0, 3};
	size_t got[ARRAY_LEN(sizes)] = {0};
	struct err e = {0};

	(void)state;
	begun = 0;
	/* 8 is behind 7, which fails second; 5 and 6 are behind 3. */
	assert_err(thread_items(1, ARRAY_LEN(sizes), sizes, test_run(), fail_some, got, &e), &e,
		   ERR_BUILD, "item 3");
	assert_int_equal(begun, 6);
	assert_memory_equal(got, order, 6 * sizeof(*got));
	begun = 0;
	assert_ok(thread_items(8, 3, NULL, test_run(), fail_some, got, &e), &e);
	assert_int_equal(begun, 3);
	assert_ok(thread_items(8, 0, NULL, test_run(), fail_some, got, &e), &e);
}

static void no_item_begins_once_cancelled(void **state)
{
	size_t got[1];
	struct err e = {0};
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	close(ends[1]);
	const struct run run = {.log = test_run()->log, .cancel_fd = ends[0]};
	begun = 0;
	assert_err(thread_items(2, 5, NULL, &run, fail_some, got, &e), &e, ERR_INTERRUPTED,
		   "interrupted");
	assert_int_equal(begun, 0);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_done_once),
		cmocka_unit_test(the_largest_item_begins_first_and_the_first_error_counts),
		cmocka_unit_test(no_item_begins_once_cancelled)};

	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
