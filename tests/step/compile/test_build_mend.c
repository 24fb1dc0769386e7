#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "step/compile/build.h"
#include "step/compile/build_parts.h"

#define LAST 1700000000 /* when the last file was written */

static void put(const char *name, const char *text, int64_t when)
{
	test_write(test_path("%s", name), text);
	const struct timespec t[2] = {{.tv_sec = when}, {.tv_sec = when}};
	assert_int_equal(utimensat(AT_FDCWD, test_path("%s", name), t, 0), 0);
}

static bool there(const char *name)
{
	struct stat st;
	return lstat(test_path("%s", name), &st) == 0;
}

/* The state a run left that was in another boot, or in this one. */
static void put_state(bool other_boot)
{
	struct build_state s;
	struct err e = {0};
	build_state_now(&s);
	s.jobs = 1;
	s.running = true;
	if (other_boot)
		snprintf(s.boot, sizeof(s.boot), "of another day");
	assert_ok(build_state_write(test_path("."), &s, &e), &e);
}

#define LOG                                                                                                            \
	"# ninja log "                                                                                                 \
	"v5\n0\t10\t1700000000\told.o\tab\n0\t10\t1700000000\tyoung.o\tab\n0\t10\t1700000000\tempty.o\tab\n"           \
	"0\t10\t1700000000\t../gen/made.h\tab\n0\t10\t1700000000\t../../outside\tab\n0\t10\t1700000000\t/ptbuild/src/" \
	"abs.o\tab\n"                                                                                                  \
	"0\t10\t1700000000\tlink/victim\tab\n0\t10\t1700000000\t/etc/hostname\tab\n"

static void put_tree(void)
{
	test_dir();
	put("src.ok", "key", LAST - 5000);
	put("src/build/CMakeCache.txt", "", LAST - 4000);
	put("src/build/.ninja_log", LOG, LAST);
	put("src/build/old.o", "x", LAST - 1000);
	put("src/build/young.o", "x", LAST);
	put("src/build/empty.o", "", LAST - 1000);
	put("src/gen/made.h", "x", LAST - 10);
	put("src/abs.o", "x", LAST - 10);
	put("outside", "x", LAST);
	put("elsewhere/victim", "x", LAST);
	put("src/build/lib.linux/torch/_C.so", "x", LAST - 10);
	put("src/build/not-in-the-log.txt", "", LAST);
	char *target = strdup(test_path("elsewhere"));
	assert_int_equal(symlink(target, test_path("src/build/link")), 0);
	free(target);
}

static void mend(void)
{
	struct err e = {0};
	assert_ok(build_mend(test_path("."), test_run(), &e), &e);
}

static void after_a_loss_of_power_young_and_empty_outputs_go(void **state)
{
	(void)state;
	put_tree();
	put_state(true);
	mend();
	assert_true(there("src/build/old.o"));
	assert_false(there("src/build/young.o"));
	assert_false(there("src/build/empty.o"));
	assert_false(there("src/gen/made.h"));
	assert_false(there("src/abs.o"));
	assert_false(there("src/build/lib.linux"));
	assert_true(there("src/build/not-in-the-log.txt"));
	assert_true(there("src.ok"));
}

static void nothing_outside_the_sources_is_touched(void **state)
{
	(void)state;
	put_tree();
	put_state(true);
	mend();
	assert_true(there("outside"));
	assert_true(there("elsewhere/victim"));
	assert_int_equal(access("/etc/hostname", F_OK), 0);
}

static void after_a_kill_everything_stays_that_ninja_made(void **state)
{
	(void)state;
	put_tree();
	put_state(false);
	mend();
	assert_true(there("src/build/young.o") && there("src/build/empty.o") && there("src/gen/made.h"));
	/* A copy that was cut short is newer than its origin. */
	assert_false(there("src/build/lib.linux"));
}

static void torn_logs_are_cut_in_either_case(void **state)
{
	(void)state;
	put_tree();
	put_state(false);
	put("src/build/.ninja_log", "# ninja log v5\n0\t10\t1\told.o\tab\n0\t10\t1\tyou", LAST);
	put("src/build/temp.x/.ninja_log", "# ninja log v5\n0\t1", LAST);
	mend();
	char *text = test_read(test_path("src/build/.ninja_log"));
	assert_string_equal(text, "# ninja log v5\n0\t10\t1\told.o\tab\n");
	free(text);
	text = test_read(test_path("src/build/temp.x/.ninja_log"));
	assert_string_equal(text, "# ninja log v5\n");
	free(text);
}

static void a_young_configuration_is_made_again(void **state)
{
	(void)state;
	put_tree();
	put_state(true);
	put("src/build/CMakeCache.txt", "", LAST - 60);
	mend();
	assert_false(there("src/build"));
	assert_true(there("src.ok") && there("src/abs.o"));
}

static void young_sources_are_unpacked_again(void **state)
{
	(void)state;
	put_tree();
	put_state(true);
	put("src.ok", "key", LAST - 60);
	mend();
	assert_false(there("src.ok"));
}

static void a_tree_without_a_state_is_left_alone(void **state)
{
	(void)state;
	put_tree();
	mend();
	assert_true(there("src/build/young.o") && there("src.ok"));
	test_dir();
	mend();
}

static void an_unlogged_extension_is_built_again_and_a_logged_one_is_not(void **state)
{
	(void)state;
	put_tree();
	put_state(true);
	put("src/build/temp.a/x.o", "x", LAST - 1000);
	put("src/build/temp.b/.ninja_log", "# ninja log v5\n0\t1\t1\t/ptbuild/src/build/temp.b/y.o\tab\n", LAST);
	put("src/build/temp.b/y.o", "x", LAST - 1000);
	mend();
	assert_false(there("src/build/temp.a"));
	assert_true(there("src/build/temp.b/y.o"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(after_a_loss_of_power_young_and_empty_outputs_go, test_teardown),
		cmocka_unit_test_teardown(nothing_outside_the_sources_is_touched, test_teardown),
		cmocka_unit_test_teardown(after_a_kill_everything_stays_that_ninja_made, test_teardown),
		cmocka_unit_test_teardown(torn_logs_are_cut_in_either_case, test_teardown),
		cmocka_unit_test_teardown(a_young_configuration_is_made_again, test_teardown),
		cmocka_unit_test_teardown(young_sources_are_unpacked_again, test_teardown),
		cmocka_unit_test_teardown(a_tree_without_a_state_is_left_alone, test_teardown),
		cmocka_unit_test_teardown(an_unlogged_extension_is_built_again_and_a_logged_one_is_not, test_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
