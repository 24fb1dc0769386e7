#include "support.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/sys/json.h"
#include "step/pipeline/make.h"

static struct err err;

/* What the program says of a store below it that has a wheel with these keys. */
static char *told_of(const char *compile_key, const char *pack_key, const char *output_text)
{
	char key[65] = "";
	struct store *lower, *own;

	test_dir();
	memset(key, 'a', sizeof(key) - 1);
	assert_ok(store_open(test_path("lower"), test_run(), &lower, &err), &err);
	store_close(lower);
	char *record = NULL;
	AUTO_JSON json_t *j = json_pack("{s:s, s:s, s:s}", "compile_key", compile_key, "pack_key",
					pack_key, "output_text", output_text);
	assert_non_null(record = json_dumps(j, 0));
	test_write(test_path("lower/objects/wheel/%s/build.json", key), record);
	free(record);
	assert_ok(store_open(test_path("own"), test_run(), &own, &err), &err);
	assert_ok(store_add_fallback(own, test_path("lower"), &err), &err);
	struct log log;
	int fd = open(test_path("said"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	log_init(&log, fd, LOG_NORMAL);
	const struct run run = {.log = &log};
	const struct plan plan = {.package = "torchvision",
				  .compile_key = "c1",
				  .pack_key = "p1",
				  .output_text = "version: 1\nzip: 4 libdeflate 1.23\n"};
	log_packed_otherwise(own, &plan, &run);
	store_close(own);
	close(fd);
	return test_read(test_path("said"));
}

static void test_a_wheel_of_another_ptbuild_is_told(void **state)
{
	(void)state;
	char *AUTO_FREE said = told_of("c1", "p2", "version: 1\nzip: 4 libdeflate 1.14\n");
	assert_contains(said, "lower' has a wheel of the same build made by another ptbuild, which "
			      "is not taken:");
	assert_contains(said, "zip: 4 libdeflate 1.14 → 4 libdeflate 1.23");
	assert_not_contains(said, "version");
}

static void test_others_are_not(void **state)
{
	(void)state;
	char *AUTO_FREE other = told_of("c2", "p2", "zip: 4 libdeflate 1.14\n");
	assert_string_equal(other, "");
	char *AUTO_FREE revision = told_of("c1", "p1", "version: 1\nzip: 4 libdeflate 1.14\n");
	assert_string_equal(revision, "");
	char *AUTO_FREE old = told_of("c1", "p2", "");
	assert_string_equal(old, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_wheel_of_another_ptbuild_is_told, test_teardown),
		cmocka_unit_test_teardown(test_others_are_not, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
