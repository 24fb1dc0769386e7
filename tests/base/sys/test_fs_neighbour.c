#include "support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"

static void a_neighbour_is_swept_once_nobody_has_it(void **state)
{
	(void)state;
	struct arena a = {0};
	struct err e = {0};
	struct strlist names = {0};
	char *name = NULL;
	test_dir();
	test_write(test_path("d/wheel"), "");
	test_write(test_path("d/.ptbuild-0123"), "of somebody else");
	test_write(test_path("d/.ptbuild-0123456789abcdeg"), "of somebody else");
	assert_ok(fs_mkdirs(TRUSTED, test_path("d/.ptbuild-0123456789abcdeg0"), &e), &e);
	assert_int_equal(symlink("wheel", test_path("d/.ptbuild-fedcba9876543210")), 0);
	int fd = fs_neighbour(test_path("d/wheel"), 0644, &a, &name, &e);
	assert_true(fd >= 0);
	char *folder = NULL;
	int held = fs_neighbour(test_path("d/wheel"), S_IFDIR | 0700, &a, &folder, &e);
	assert_true(held >= 0);
	test_write(path_join(&a, folder, "more/file"), "");
	assert_ok(fs_sweep(TRUSTED, test_path("d"), &e), &e);
	assert_true(fs_exists(TRUSTED, name) &&
		    fs_exists(TRUSTED, path_join(&a, folder, "more/file")));
	close(fd);
	close(held);
	assert_ok(fs_sweep(TRUSTED, test_path("d"), &e), &e);
	assert_false(fs_exists(TRUSTED, name) || fs_exists(TRUSTED, folder));
	assert_ok(fs_list(TRUSTED, test_path("d"), &a, &names, &e), &e);
	assert_int_equal(names.count, 5);
	assert_ok(fs_sweep(TRUSTED, test_path("none"), &e), &e);
	arena_release(&a);
}

static void copying_into_an_open_file(void **state)
{
	(void)state;
	struct arena a = {0};
	struct err e = {0};
	char *name = NULL;
	struct stat st;
	test_dir();
	test_write(test_path("from"), "bytes");
	assert_int_equal(chmod(test_path("from"), 0750), 0);
	int fd = fs_neighbour(test_path("to"), 0600, &a, &name, &e);
	assert_true(fd >= 0);
	assert_ok(fs_copy_fd(TRUSTED, test_path("from"), fd, "to", &e), &e);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(st.st_size, 5);
	assert_err(fs_copy_fd(TRUSTED, test_path("none"), fd, "to", &e), &e, ERR_SYSTEM,
		   "cannot read");
	close(fd);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_neighbour_is_swept_once_nobody_has_it, test_teardown),
		cmocka_unit_test_teardown(copying_into_an_open_file, test_teardown),
	};

	return cmocka_run_group_tests_name("fs_neighbour", tests, NULL, NULL);
}
