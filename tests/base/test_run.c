#include "support.h"

#include <unistd.h>

static void without_a_descriptor_nothing_cancels(void **state)
{
	(void)state;
	struct err e = {0};
	struct run r = {.cancel_fd = -1};
	assert_false(run_cancelled(&r));
	assert_int_equal(run_check(&r, &e), 0);
	assert_int_equal(e.kind, ERR_NONE);
}

static void readable_means_cancelled_and_stays_so(void **state)
{
	(void)state;
	struct err e = {0};
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	struct run r = {.cancel_fd = fds[0]};
	assert_false(run_cancelled(&r));
	assert_int_equal(write(fds[1], "x", 1), 1);
	for (int i = 0; i < 3; i++)
		assert_true(run_cancelled(&r));
	assert_err(run_check(&r, &e), &e, ERR_INTERRUPTED, "interrupted");
	close(fds[0]);
	close(fds[1]);
}

static void a_closed_writer_cancels(void **state)
{
	(void)state;
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	struct run r = {.cancel_fd = fds[0]};
	close(fds[1]);
	assert_true(run_cancelled(&r));
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_descriptor_nothing_cancels),
		cmocka_unit_test(readable_means_cancelled_and_stays_so),
		cmocka_unit_test(a_closed_writer_cancels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
