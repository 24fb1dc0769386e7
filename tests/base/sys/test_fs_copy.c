#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/fs.h"

static void copy_keeps_bytes_and_bits(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat st;
	test_dir();
	char *big = malloc(3000000);
	for (int i = 0; i < 3000000; i++)
		big[i] = (char)(i * 7 + i / 256);
	test_write_bytes(test_path("f"), big, 3000000);
	chmod(test_path("f"), 0751);
	test_write(test_path("g"), "old");
	assert_ok(fs_copy(TRUSTED, test_path("f"), test_path("g"), &e), &e);
	AUTO_BUF struct buf b = {0};
	assert_ok(fs_read(TRUSTED, test_path("g"), 3000000, &b, &e), &e);
	assert_int_equal(b.len, 3000000);
	assert_memory_equal(b.data, big, 3000000);
	free(big);
	assert_int_equal(stat(test_path("g"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0751);
	assert_int_equal(test_count_entries(test_path(".")), 2);
}

static void copy_between_file_systems(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	assert_ok(fs_copy(TRUSTED, "/proc/self/cmdline", test_path("c"), &e), &e);
	struct stat st;
	assert_int_equal(stat(test_path("c"), &st), 0);
	assert_true(st.st_size > 0);
}

static void copy_failure_leaves_the_target(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("to"), "old");
	assert_err(fs_copy(TRUSTED, test_path("none"), test_path("to"), &e), &e, ERR_SYSTEM,
		   "/none': No such file");
	assert_err(fs_copy(TRUSTED, test_path("."), test_path("to"), &e), &e, ERR_SYSTEM,
		   "not a regular file");
	assert_err(fs_copy(TRUSTED, test_path("to"), test_path("no/to"), &e), &e, ERR_SYSTEM,
		   "/no/to': No such file");
	assert_file(test_path("to"), "old");
	assert_int_equal(test_count_entries(test_path(".")), 1);
}

static void copy_names_the_full_disk(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("from"), "bytes");
	AUTO_FD int full = open("/dev/full", O_WRONLY);
	assert_err(fs_copy_fd(TRUSTED, test_path("from"), full, "the copy", &e), &e, ERR_SYSTEM,
		   "cannot write 'the copy': No space left");
}

static void set_times(const char *path, time_t seconds)
{
	const struct timespec t[2] = {{.tv_sec = seconds, .tv_nsec = 123456789},
				      {.tv_sec = seconds, .tv_nsec = 987654321}};
	assert_int_equal(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW), 0);
}

static void assert_same_meta(const char *a, const char *b)
{
	struct stat x, y;

	assert_int_equal(lstat(a, &x), 0);
	assert_int_equal(lstat(b, &y), 0);
	assert_int_equal(x.st_mode, y.st_mode);
	assert_int_equal(x.st_mtim.tv_sec, y.st_mtim.tv_sec);
	assert_int_equal(x.st_mtim.tv_nsec, y.st_mtim.tv_nsec);
}

static void copy_tree_keeps_everything(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("t/bin/tool"), "run");
	test_write(test_path("t/lib/empty"), "");
	assert_int_equal(mkdir(test_path("t/void"), 0750), 0);
	assert_int_equal(symlink("../lib/gone", test_path("t/bin/link")), 0);
	assert_int_equal(symlink("/etc", test_path("t/out")), 0);
	chmod(test_path("t/bin/tool"), 0755);
	chmod(test_path("t/lib/empty"), 0444);
	const char *const names[] = {"bin/tool", "lib/empty", "bin/link", "out",
				     "bin",      "lib",       "void",     "."};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		set_times(test_path("t/%s", names[i]), 1000000000 + (time_t)i);
	chmod(test_path("t/lib"), 0555);
	assert_ok(fs_copy_tree(test_path("t"), test_path("u"), &e), &e);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_same_meta(test_path("t/%s", names[i]), test_path("u/%s", names[i]));
	assert_file(test_path("u/bin/tool"), "run");
	char target[64] = {0};
	assert_true(readlink(test_path("u/bin/link"), target, sizeof(target) - 1) > 0);
	assert_string_equal(target, "../lib/gone");
}

static void copy_tree_refuses_an_existing_target(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("t/f"), "");
	test_write(test_path("u/mine"), "kept");
	assert_err(fs_copy_tree(test_path("t"), test_path("u"), &e), &e, ERR_SYSTEM, "File exists");
	assert_file(test_path("u/mine"), "kept");
	assert_int_equal(symlink("nowhere", test_path("dangling")), 0);
	assert_err(fs_copy_tree(test_path("t"), test_path("dangling"), &e), &e, ERR_SYSTEM,
		   "File exists");
}

static void copy_tree_failure_leaves_nothing(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	test_write(test_path("t/a/f"), "");
	assert_int_equal(mkfifo(test_path("t/a/pipe"), 0600), 0);
	assert_err(fs_copy_tree(test_path("t"), test_path("u"), &e), &e, ERR_SYSTEM,
		   "cannot copy 'a/pipe': neither file");
	assert_false(fs_exists(TRUSTED, test_path("u")));
	assert_err(fs_copy_tree(test_path("none"), test_path("u"), &e), &e, ERR_SYSTEM,
		   "No such file");
	assert_err(fs_copy_tree(test_path("t/a/f"), test_path("u"), &e), &e, ERR_SYSTEM,
		   "Not a directory");
	assert_false(fs_exists(TRUSTED, test_path("u")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(copy_keeps_bytes_and_bits, test_teardown),
		cmocka_unit_test_teardown(copy_between_file_systems, test_teardown),
		cmocka_unit_test_teardown(copy_failure_leaves_the_target, test_teardown),
		cmocka_unit_test_teardown(copy_names_the_full_disk, test_teardown),
		cmocka_unit_test_teardown(copy_tree_keeps_everything, test_teardown),
		cmocka_unit_test_teardown(copy_tree_refuses_an_existing_target, test_teardown),
		cmocka_unit_test_teardown(copy_tree_failure_leaves_nothing, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
