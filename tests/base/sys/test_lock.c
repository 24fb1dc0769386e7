#include "support.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys/file_lock.h"

static void one_exclusive_holder(void **state)
{
	(void)state;
	struct err e = {0};
	bool got = false;
	test_dir();
	AUTO_LOCK struct lock a = LOCK_NONE;
	AUTO_LOCK struct lock b = LOCK_NONE;
	assert_ok(lock_try(&a, test_path("l"), false, &got, &e), &e);
	assert_true(got);
	assert_ok(lock_try(&b, test_path("l"), false, &got, &e), &e);
	assert_false(got);
	assert_int_equal(b.fd, -1);
	assert_ok(lock_try(&b, test_path("l"), true, &got, &e), &e);
	assert_false(got);
	lock_release(&a);
	assert_int_equal(a.fd, -1);
	assert_ok(lock_try(&b, test_path("l"), false, &got, &e), &e);
	assert_true(got);
}

static void many_shared_holders(void **state)
{
	(void)state;
	struct err e = {0};
	bool got = false;
	test_dir();
	AUTO_LOCK struct lock a = LOCK_NONE;
	AUTO_LOCK struct lock b = LOCK_NONE;
	AUTO_LOCK struct lock c = LOCK_NONE;
	assert_ok(lock_acquire(&a, test_path("l"), true, test_run(), &e), &e);
	assert_ok(lock_acquire(&b, test_path("l"), true, test_run(), &e), &e);
	assert_ok(lock_try(&c, test_path("l"), false, &got, &e), &e);
	assert_false(got);
}

static void release_twice_is_fine(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	struct lock a = LOCK_NONE;
	lock_release(&a);
	assert_ok(lock_acquire(&a, test_path("l"), false, test_run(), &e), &e);
	lock_release(&a);
	lock_release(&a);
	assert_int_equal(a.fd, -1);
}

static void file_names_the_holder(void **state)
{
	(void)state;
	struct err e = {0};
	char want[32];
	test_dir();
	test_write(test_path("l"), "99999999999999999999\n");
	AUTO_LOCK struct lock a = LOCK_NONE;
	assert_ok(lock_acquire(&a, test_path("l"), false, test_run(), &e), &e);
	snprintf(want, sizeof(want), "%ld\n", (long)getpid());
	char *text = test_read(test_path("l"));
	assert_string_equal(text, want);
	free(text);
}

/* A child that holds the lock until it is told to go on. */
static pid_t start_holder(const char *path, int *ret_go)
{
	int go[2], ready[2];
	char c;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = {0};
		struct lock l = LOCK_NONE;
		close(go[1]);
		if (lock_acquire(&l, path, false, test_run(), &e) != 0 ||
		    write(ready[1], "r", 1) != 1)
			_exit(1);
		_exit(read(go[0], &c, 1) < 0); /* exits without a release */
	}

	assert_int_equal(read(ready[0], &c, 1), 1);
	close(go[0]);
	close(ready[0]);
	close(ready[1]);
	*ret_go = go[1];
	return pid;
}

/* Closes one end, of what holds the lock or of who cancels, when somebody said that it waits. */
static void *let_go(void *arg)
{
	const int *ends = arg;
	bool said = poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, HANG_S * 1000) == 1;

	close(ends[1]);
	return said ? arg : NULL;
}

static void waiting_says_who_holds_it_and_ends_with_the_holder(void **state)
{
	(void)state;
	struct err e = {0};
	int go, fds[2];
	pthread_t thread;
	test_dir();
	pid_t holder = start_holder(test_path("l"), &go);
	assert_int_equal(pipe(fds), 0);
	struct log log;
	log_init(&log, fds[1], LOG_NORMAL);
	const struct run run = {.log = &log, .cancel_fd = -1};
	int ends[] = {fds[0], go};
	void *said;
	assert_int_equal(pthread_create(&thread, NULL, let_go, ends), 0);
	AUTO_LOCK struct lock l = LOCK_NONE;
	assert_ok(lock_acquire(&l, test_path("l"), false, &run, &e), &e);
	pthread_join(thread, &said);
	assert_non_null(said);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	close(fds[1]);
	char text[1024] = {0}, want[1024];
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	close(fds[0]);
	snprintf(want, sizeof(want), "waiting for '%s', held by process %ld\n", test_path("l"),
		 (long)holder);
	assert_string_equal(text, want); /* once */
}

static void who_was_cancelled_gets_what_is_free(void **state)
{
	(void)state;
	struct err e = {0};
	int cancel[2];
	test_dir();
	assert_int_equal(pipe(cancel), 0);
	assert_int_equal(write(cancel[1], "", 1), 1);
	struct log log = {.level = LOG_QUIET, .fd = 2};
	const struct run run = {.log = &log, .cancel_fd = cancel[0]};
	struct lock l = LOCK_NONE;
	assert_ok(lock_acquire(&l, test_path("l"), false, &run, &e), &e);
	lock_release(&l);
	close(cancel[0]);
	close(cancel[1]);
}

static void waiting_can_be_cancelled(void **state)
{
	(void)state;
	struct err e = {0};
	int go, fds[2], cancel[2];
	pthread_t thread;
	test_dir();
	pid_t holder = start_holder(test_path("l"), &go);
	assert_int_equal(pipe(cancel), 0);
	assert_int_equal(pipe(fds), 0);
	struct log log;
	log_init(&log, fds[1], LOG_NORMAL);
	const struct run run = {.log = &log, .cancel_fd = cancel[0]};
	int ends[] = {fds[0], cancel[1]};
	assert_int_equal(pthread_create(&thread, NULL, let_go, ends), 0);
	struct lock l = LOCK_NONE;
	assert_err(lock_acquire(&l, test_path("l"), false, &run, &e), &e, ERR_INTERRUPTED,
		   "interrupted");
	assert_int_equal(l.fd, -1);
	pthread_join(thread, NULL);
	close(fds[0]);
	close(fds[1]);
	close(cancel[0]);
	close(go);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
}

static void removed_lock_file_is_made_anew(void **state)
{
	(void)state;
	struct err e = {0};
	bool got = false;
	test_dir();
	AUTO_LOCK struct lock a = LOCK_NONE;
	AUTO_LOCK struct lock b = LOCK_NONE;
	assert_ok(lock_try(&a, test_path("l"), false, &got, &e), &e);
	assert_int_equal(unlink(test_path("l")), 0);
	assert_ok(lock_try(&b, test_path("l"), false, &got, &e), &e);
	assert_true(got);
	assert_int_equal(access(test_path("l"), F_OK), 0);
}

static void test_lock_drop_removes_the_file(void **state)
{
	struct err e = {0};
	bool got;

	(void)state;
	AUTO_LOCK struct lock a = LOCK_NONE;
	AUTO_LOCK struct lock b = LOCK_NONE;
	assert_ok(lock_try(&a, test_path("l"), false, &got, &e), &e);
	assert_true(got);
	lock_drop(&a, test_path("l"));
	assert_int_equal(access(test_path("l"), F_OK), -1);
	assert_ok(lock_try(&b, test_path("l"), false, &got, &e), &e);
	assert_true(got);
	lock_drop(&a, test_path("l")); /* it holds nothing any more */
	assert_int_equal(access(test_path("l"), F_OK), 0);
}

static void impossible_lock_is_named(void **state)
{
	(void)state;
	struct err e = {0};
	bool got = true;
	struct lock l = LOCK_NONE;
	test_dir();
	assert_err(lock_try(&l, test_path("no/l"), false, &got, &e), &e, ERR_SYSTEM,
		   "/no/l': No such file");
	assert_err(lock_acquire(&l, test_path("."), false, test_run(), &e), &e, ERR_SYSTEM,
		   "Is a directory");
	assert_true(got);
	assert_int_equal(l.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_exclusive_holder, test_teardown),
		cmocka_unit_test_teardown(many_shared_holders, test_teardown),
		cmocka_unit_test_teardown(release_twice_is_fine, test_teardown),
		cmocka_unit_test_teardown(file_names_the_holder, test_teardown),
		cmocka_unit_test_teardown(waiting_says_who_holds_it_and_ends_with_the_holder,
					  test_teardown),
		cmocka_unit_test_teardown(who_was_cancelled_gets_what_is_free, test_teardown),
		cmocka_unit_test_teardown(waiting_can_be_cancelled, test_teardown),
		cmocka_unit_test_teardown(removed_lock_file_is_made_anew, test_teardown),
		cmocka_unit_test_teardown(test_lock_drop_removes_the_file, test_teardown),
		cmocka_unit_test_teardown(impossible_lock_is_named, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
