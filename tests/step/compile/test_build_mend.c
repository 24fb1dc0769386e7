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

static void put_tree(void)
{
	test_dir();
	put("src.ok", "key", LAST - 5000);
	put("src/build/CMakeCache.txt", "", LAST - 4000);
	put("src/build/.ninja_log", "# ninja log v5\n0\t10\t1700000000\tyoung.o\tab\n0\t1", LAST);
	put("src/build/young.o", "x", LAST);
	put("src/build/temp.linux/x.o", "x", LAST);
	put("src/build/lib.linux/torch/_C.so", "x", LAST - 10);
	put("src/build/bdist.linux/x", "x", LAST - 10);
	put("elsewhere/victim", "x", LAST);
	char *target = strdup(test_path("elsewhere"));
	assert_int_equal(symlink(target, test_path("src/build/lib.link")), 0);
	free(target);
}

static void mend(void)
{
	struct err e = {0};
	assert_ok(build_mend(test_path("."), test_run(), &e), &e);
}

static void after_a_loss_of_power_the_tree_is_made_anew(void **state)
{
	(void)state;
	put_tree();
	put_state(true);
	mend();
	assert_false(there("src.ok"));
	assert_true(there("elsewhere/victim"));
}

static void after_a_kill_everything_stays_that_ninja_made(void **state)
{
	(void)state;
	put_tree();
	put_state(false);
	mend();
	assert_true(there("src.ok") && there("src/build/young.o") &&
		    there("src/build/temp.linux/x.o"));
	/* A copy that was cut short is newer than its origin. */
	assert_false(there("src/build/lib.linux") || there("src/build/bdist.linux") ||
		     there("src/build/lib.link"));
	assert_true(there("elsewhere/victim"));
}

static void a_tree_without_a_state_is_left_alone(void **state)
{
	(void)state;
	put_tree();
	mend();
	assert_true(there("src/build/lib.linux") && there("src.ok"));
	test_dir();
	mend();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(after_a_loss_of_power_the_tree_is_made_anew,
					  test_teardown),
		cmocka_unit_test_teardown(after_a_kill_everything_stays_that_ninja_made,
					  test_teardown),
		cmocka_unit_test_teardown(a_tree_without_a_state_is_left_alone, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
