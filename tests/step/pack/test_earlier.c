/* The record of another release in the place of a new one. */
#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "step/pack/pack.h"

static struct arena arena;
static struct err err;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void earlier(const char *release)
{
	test_write(test_path("dist/v/build.json"),
		   arena_printf(&arena, "{\"release\": \"%s\", \"wheel\": \"a.whl\"}", release));
	test_write(test_path("dist/v/build.html"), release);
}

/* What the log says when a wheel of 2.6.0 is put there. */
static const char *kept(void)
{
	const char *log_file = arena_strdup(&arena, test_path("log"));
	const struct earlier_request q = {arena_strdup(&arena, test_path("dist")), "v", "2.6.0"};
	int fd = open(log_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct log log = {.level = LOG_NORMAL, .fd = fd};
	const struct run run = {.log = &log, .cancel_fd = -1};

	assert_true(fd >= 0);
	assert_ok(earlier_keep(&q, &run, &arena, &err), &err);
	close(fd);
	char *text = test_read(log_file);
	const char *said = arena_strdup(&arena, text);
	free(text);
	return said;
}

static bool is_there(const char *name)
{
	return fs_exists(TRUSTED, test_path("dist/v/%s", name));
}

static void of_another_release_is_kept(void **state)
{
	(void)state;
	earlier("2.6.0-debian");
	const char *said = kept();
	assert_contains(said, "the record of 2.6.0-debian is kept as 'build-2.6.0-debian.json'");
	assert_true(is_there("build-2.6.0-debian.json") && is_there("build-2.6.0-debian.html"));
	assert_false(is_there("build.json") || is_there("build.html"));
}

static void turns_leave_one_record_of_each(void **state)
{
	(void)state;
	earlier("2.6.0");
	test_write(test_path("dist/v/build-2.6.0.json"), "old");
	assert_string_equal(kept(), "");
	earlier("2.7.1");
	kept();
	assert_false(is_there("build-2.6.0.json"));
	assert_true(is_there("build-2.7.1.json"));
}

static void what_cannot_be_read_is_left(void **state)
{
	static const char *const releases[] = {"../../x", "", "a/b", "2.6.0"};

	(void)state;
	assert_string_equal(kept(), "");
	test_write(test_path("dist/v/build.json"), "not json");
	assert_string_equal(kept(), "");
	for (size_t i = 0; i < ARRAY_LEN(releases); i++) {
		earlier(releases[i]);
		assert_string_equal(kept(), "");
		assert_true(is_there("build.json"));
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(of_another_release_is_kept),
		T(turns_leave_one_record_of_each),
		T(what_cannot_be_read_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
