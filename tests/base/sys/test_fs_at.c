#include "support.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/sys/fs.h"

static void bytes_at_an_offset(void **state)
{
	(void)state;
	struct err e = {0};
	char got[8] = "";
	test_dir();
	test_write(test_path("f"), "0123456789");
	AUTO_FD int fd = open(test_path("f"), O_RDWR);
	assert_true(fd >= 0);
	assert_ok(fs_write_at(fd, "abc", 3, 4, "f", &e), &e);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	assert_int_equal(fs_read_at(fd, got, 5, 3), 5);
	assert_string_equal(got, "3abc7");
	assert_int_equal(fs_read_at(fd, got, 5, 8), 2);
	assert_int_equal(fs_read_at(fd, got, 5, 100), 0);
	AUTO_FD int readable = open(test_path("f"), O_RDONLY), closed = -1;
	assert_err(fs_write_at(readable, "x", 1, 0, "the file", &e), &e, ERR_SYSTEM, "the file");
	assert_int_equal(fs_read_at(closed, got, 1, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(bytes_at_an_offset, test_teardown)};
	return cmocka_run_group_tests_name("fs_at", tests, NULL, NULL);
}
