#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/sys/fs.h"
#include "core/plan/plan.h"
#include "step/compile/build.h"

static struct arena arena;
static struct root root;

static int cleanup(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

/* A tree "builds/<key>" of a variant, last used at that second. */
static void make_tree(const char *key, const char *variant, int64_t used)
{
	struct sandbox s;
	struct err e = {0};
	const struct plan p = {.variant = variant};
	char *dir = arena_strdup(&arena, test_path("builds/%s", key));

	assert_ok(root_open("/", &arena, &root, &e), &e);
	assert_ok(fs_mkdirs(TRUSTED, dir, &e), &e);
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &root, &arena, &e), &e);
	sandbox_add(&s, SANDBOX_RW, dir, SANDBOX_SRC);
	kvlist_set(&s.env, &arena, "PATH", "/usr/bin:/bin");
	kvlist_set(&s.env, &arena, "MARK", "of the build");
	s.cwd = SANDBOX_SRC;
	assert_ok(build_tree_save(dir, &p, &s, &e), &e);
	const struct timespec t[2] = {{.tv_sec = used}, {.tv_sec = used}};
	assert_int_equal(utimensat(AT_FDCWD, test_path("builds/%s/tree.json", key), t, 0), 0);
}

static void trees_are_listed_the_latest_first(void **state)
{
	(void)state;
	struct build_tree *trees;
	size_t count;
	struct err e = {0};
	test_dir();
	assert_ok(build_tree_list(test_path("builds"), &arena, &trees, &count, &e), &e);
	assert_int_equal(count, 0);
	make_tree("one", "a", 100);
	make_tree("two", "b", 300);
	make_tree("three", "a", 200);
	test_write(test_path("builds/four/tree.json"), "{");
	test_write(test_path("builds/five/other"), "");
	assert_ok(build_tree_list(test_path("builds"), &arena, &trees, &count, &e), &e);
	assert_int_equal(count, 3);
	assert_string_equal(trees[0].key, "two");
	assert_string_equal(trees[1].key, "three");
	assert_string_equal(trees[1].variant, "a");
	assert_string_equal(trees[2].key, "one");
}

static void a_command_sees_the_builds_environment_and_paths(void **state)
{
	(void)state;
	static const char *const argv[] = {"sh", "-c",
					   "echo $MARK $HOME_OF_THE_HOST in $PWD > result", NULL};
	struct build_tree *trees;
	size_t count;
	struct err e = {0};
	test_dir();
	make_tree("one", "a", 100);
	assert_int_equal(setenv("HOME_OF_THE_HOST", "seen", 1), 0);
	assert_ok(build_tree_list(test_path("builds"), &arena, &trees, &count, &e), &e);
	assert_ok(build_tree_enter(&trees[0], argv, test_run(), &e), &e);
	char *text = test_read(test_path("builds/one/result"));
	assert_string_equal(text, "of the build in /ptbuild/src\n");
	free(text);
}

static void a_command_that_fails_is_an_error(void **state)
{
	(void)state;
	static const char *const argv[] = {"sh", "-c", "exit 3", NULL};
	struct build_tree *trees;
	size_t count;
	struct err e = {0};
	test_dir();
	make_tree("one", "a", 100);
	assert_ok(build_tree_list(test_path("builds"), &arena, &trees, &count, &e), &e);
	assert_err(build_tree_enter(&trees[0], argv, test_run(), &e), &e, ERR_BUILD,
		   "'sh' ended with status 3");
	test_write(test_path("builds/one/tree.json"), "{\"variant\":\"a\"}");
	assert_err(build_tree_enter(&trees[0], argv, test_run(), &e), &e, ERR_INTEGRITY,
		   "does not describe a sandbox");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(trees_are_listed_the_latest_first, cleanup),
		cmocka_unit_test_teardown(a_command_sees_the_builds_environment_and_paths, cleanup),
		cmocka_unit_test_teardown(a_command_that_fails_is_an_error, cleanup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
