#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "step/pack/pack.h"

#define WHEEL "torch-1.0-cp313-cp313-linux_x86_64.whl"

/* An object of the store as the pipeline leaves it; gives the wheel's digest. */
static void make_object(const char *bytes, char digest[DIGEST_HEX_LEN + 1])
{
	test_dir();
	test_write(test_path("object/" WHEEL), bytes);
	test_write(test_path("object/build.json"), "{\"wheel\": \"" WHEEL "\"}");
	digest_data(bytes, strlen(bytes), digest);
}

static int export_rev(const char *digest, unsigned rev, struct arena *a, const char **path,
		      struct err *e)
{
	return publish_export(test_path("object"), WHEEL, digest, rev, "variant", test_path("dist"),
			      test_run(), a, path, e);
}

static void test_everything_is_put_out(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *path = NULL;
	make_object("wheel", digest);
	assert_ok(export_rev(digest, 3, &a, &path, &e), &e);
	assert_string_equal(path, test_path("dist/" WHEEL));
	assert_file(path, "wheel");
	assert_file(test_path("dist/" WHEEL ".metadata-rev"), "3\n");
	assert_file(test_path("dist/variant/build.json"), "{\"wheel\": \"" WHEEL "\"}");
}

static void test_what_a_kill_left_is_swept(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *path;
	make_object("wheel", digest);
	test_write(test_path("dist/.ptbuild-00000000000000aa"), "half a wh");
	test_write(test_path("dist/variant/.ptbuild-00000000000000bb"), "{");
	assert_ok(export_rev(digest, 1, &a, &path, &e), &e);
	assert_false(fs_exists(TRUSTED, test_path("dist/.ptbuild-00000000000000aa")));
	assert_false(fs_exists(TRUSTED, test_path("dist/variant/.ptbuild-00000000000000bb")));
}

static void test_nothing_else_is_left(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct strlist names = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *path;
	make_object("wheel", digest);
	assert_ok(export_rev(digest, 1, &a, &path, &e), &e);
	assert_ok(fs_list(TRUSTED, test_path("dist"), &a, &names, &e), &e);
	assert_int_equal(names.count, 3);
}

static void test_the_same_wheel_is_left_alone(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct stat before, after;
	char digest[DIGEST_HEX_LEN + 1];
	const char *path;
	make_object("wheel", digest);
	assert_ok(export_rev(digest, 1, &a, &path, &e), &e);
	assert_int_equal(stat(path, &before), 0);
	assert_ok(export_rev(digest, 1, &a, &path, &e), &e);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino);
}

static void test_another_wheel_of_that_name_is_replaced_whole(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *path;
	make_object("new bytes", digest);
	test_write(test_path("dist/" WHEEL), "old");
	const char *log_file = arena_strdup(&a, test_path("log")),
		   *from = arena_strdup(&a, test_path("object/" WHEEL));
	struct log log = {.level = LOG_NORMAL,
			  .fd = open(log_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
	const struct run run = {.log = &log, .cancel_fd = -1};
	path = arena_strdup(&a, test_path("dist/" WHEEL));
	for (int i = 0; i < 2; i++) /* once, and then it has these bytes */
		assert_ok(publish_wheel(from, path, digest, &run, &a, &e), &e);
	close(log.fd);
	assert_file(path, "new bytes");
	digest_data("old", 3, digest);
	assert_file(log_file, arena_printf(&a,
					   "warning: replacing '%s', which has other contents "
					   "(sha256 %s); use another "
					   "--out to keep both\n",
					   path, digest));
}

static void test_a_missing_object_leaves_nothing(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *path = NULL;
	make_object("wheel", digest);
	assert_int_equal(unlink(test_path("object/" WHEEL)), 0);
	assert_err(export_rev(digest, 1, &a, &path, &e), &e, ERR_SYSTEM, WHEEL);
	assert_null(path);
	assert_false(fs_exists(TRUSTED, test_path("dist/" WHEEL)));
	assert_false(fs_exists(TRUSTED, test_path("dist/" WHEEL ".metadata-rev")));
}

static void test_an_output_directory_that_is_a_file(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *path = NULL;
	make_object("wheel", digest);
	test_write(test_path("dist"), "in the way");
	assert_err(export_rev(digest, 1, &a, &path, &e), &e, ERR_SYSTEM, "dist");
	assert_file(test_path("dist"), "in the way");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_everything_is_put_out, test_teardown),
		cmocka_unit_test_teardown(test_what_a_kill_left_is_swept, test_teardown),
		cmocka_unit_test_teardown(test_nothing_else_is_left, test_teardown),
		cmocka_unit_test_teardown(test_the_same_wheel_is_left_alone, test_teardown),
		cmocka_unit_test_teardown(test_another_wheel_of_that_name_is_replaced_whole,
					  test_teardown),
		cmocka_unit_test_teardown(test_a_missing_object_leaves_nothing, test_teardown),
		cmocka_unit_test_teardown(test_an_output_directory_that_is_a_file, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
