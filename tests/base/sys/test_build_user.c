#include "support.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys/build_user.h"
#include "base/sys/fs.h"

static void plant(const char *path)
{
	test_write(path, "#!/bin/sh\n");
	assert_int_equal(chmod(path, 04755), 0);
}

static bool is_plain(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && !(st.st_mode & (S_ISUID | S_ISGID));
}

/* The exit status of what drops the bits as an ordinary user, whom permissions bind. */
static int drop_as_user(const char *dir)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct err e = {0};
		size_t dropped;
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(99);
		_exit(build_user_drop_bits(dir, &dropped, &e) < 0 ? 98 : (int)dropped);
	}

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

/* Its owner may not enter such a directory, and everybody else may. */
static void bits_go_where_the_owner_may_not_look(void **state)
{
	static const mode_t modes[] = {0055, 0455, 0155, 0755};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct err e = {0};
		test_dir();
		plant(test_path("tree/d/sh"));
		if (geteuid() == 0)
			assert_ok(build_user_give(test_path("tree"), 65534, &e), &e);
		plant(test_path("tree/d/sh"));
		if (geteuid() == 0)
			assert_int_equal(chown(test_path("tree/d/sh"), 65534, 65534), 0);
		assert_int_equal(chmod(test_path("tree/d/sh"), 04755), 0);
		assert_int_equal(chmod(test_path("tree/d"), modes[i]), 0);
		assert_int_equal(chmod(test_path("."), 0755), 0);
		assert_int_equal(drop_as_user(test_path("tree")), 1);
		assert_int_equal(chmod(test_path("tree/d"), 0755), 0);
		assert_true(is_plain(test_path("tree/d/sh")));
	}
}

/* Deeper than the walk goes: nobody else can go there either. */
static void what_lies_too_deep_is_closed(void **state)
{
	struct err e = {0};
	size_t dropped;
	struct stat st;
	struct rlimit limit;

	(void)state;
	test_dir();
	/* as Debian's pam_limits has it */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_ok(fs_mkdirs(TRUSTED, test_path("tree"), &e), &e);
	int fd = open(test_path("tree"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 520; i++) {
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
		if (i == 512) {
			assert_int_equal(fstat(fd, &st), 0);
			assert_int_equal(st.st_mode & 07777, 0755);
		}
	}

	close(fd);
	assert_ok(build_user_drop_bits(test_path("tree"), &dropped, &e), &e);
	fd = open(test_path("tree"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	mode_t all = 0777;
	for (int i = 0; i < 520; i++) {
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0 && fstat(next, &st) == 0);
		close(fd);
		fd = next;
		all &= st.st_mode;
	}

	close(fd);
	assert_int_equal(all, 0700);
	/* A tree that changes hands is given whole or not at all. */
	if (geteuid() == 0)
		assert_err(build_user_give(test_path("tree"), 65534, &e), &e, ERR_SYSTEM,
			   "nested more than 512 deep");
}

#define T(name) cmocka_unit_test_teardown(name, test_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(bits_go_where_the_owner_may_not_look),
		T(what_lies_too_deep_is_closed),
	};

	return cmocka_run_group_tests_name("build_user", tests, NULL, NULL);
}
