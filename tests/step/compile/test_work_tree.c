#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/root/sandbox.h"
#include "step/compile/build.h"

static struct arena arena;

static int cleanup(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static const char *place(void)
{
	return arena_strdup(&arena, test_path("place"));
}

/* A home in a store, with files of a tree. */
static const char *make_home(const char *name)
{
	const char *home = arena_strdup(&arena, test_path("store/build/%s", name));

	test_write(path_join(&arena, home, "src/unit.c"), name);
	test_write(path_join(&arena, home, "src.ok"), name);
	test_write(path_join(&arena, home, "tree.json"), "{}");
	return home;
}

static struct work_tree take(const char *home)
{
	struct work_tree w = WORK_TREE_NONE;
	struct err e = {0};

	assert_ok(work_tree_take(place(), home, test_run(), &arena, &w, &e), &e);
	return w;
}

static void assert_at_rest(void)
{
	struct sandbox_place p;

	assert_false(fs_exists(TRUSTED, test_path("place/" SANDBOX_PLACE_TREE)));
	for (size_t i = 0; i < sandbox_place_names_count; i++)
		assert_false(fs_exists(TRUSTED, test_path("place/%s", sandbox_place_names[i])));
	sandbox_place_look(place(), &arena, &p);
	assert_true(p.fine);
}

static void a_tree_lies_in_the_place_and_goes_home(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	const char *home = make_home("one");
	struct work_tree w = take(home);
	assert_string_equal(w.dir, place());
	assert_string_equal(w.rest, home);
	assert_file(test_path("place/src/unit.c"), "one");
	assert_file(test_path("place/src.ok"), "one");
	assert_true(fs_is_dir(TRUSTED, test_path("place/home")) &&
		    fs_is_dir(TRUSTED, test_path("place/tmp")));
	assert_true(fs_is_dir(TRUSTED, home) &&
		    !fs_exists(TRUSTED, path_join(&arena, home, "src")));
	test_write(test_path("place/src/unit.o"), "object");
	test_write(test_path("place/tmp/left"), "");
	assert_ok(work_tree_give_back(&w, &e), &e);
	assert_file(path_join(&arena, home, "src/unit.o"), "object");
	assert_false(fs_exists(TRUSTED, path_join(&arena, home, "tmp")));
	assert_at_rest();
}

static void a_tree_that_is_done_leaves_nothing(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	struct work_tree w = take(make_home("one"));
	assert_ok(work_tree_remove(&w, &e), &e);
	assert_false(fs_exists(TRUSTED, test_path("store/build/one")));
	assert_at_rest();
}

static void without_a_place_it_stays_where_it_is(void **state)
{
	(void)state;
	struct err e = {0};
	struct work_tree w;
	test_dir();
	const char *home = make_home("one");
	assert_ok(work_tree_take(NULL, home, test_run(), &arena, &w, &e), &e);
	assert_string_equal(w.dir, home);
	assert_ok(work_tree_give_back(&w, &e), &e);
	assert_file(path_join(&arena, home, "src/unit.c"), "one");
	assert_ok(work_tree_take(NULL, home, test_run(), &arena, &w, &e), &e);
	assert_ok(work_tree_remove(&w, &e), &e);
	assert_false(fs_exists(TRUSTED, home));
}

static void a_killed_build_is_gone_on_with(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	const char *home = make_home("one");
	struct work_tree w = take(home);
	test_write(test_path("place/src/unit.o"), "object");
	work_tree_release(&w); /* all that a kill does */
	w = take(home);
	assert_file(test_path("place/src/unit.o"), "object");
	/* Killed while it was moved: what is still at
	 * home, or there already, is no less its own. */
	assert_int_equal(rename(test_path("place/src.ok"), path_join(&arena, home, "src.ok")), 0);
	work_tree_release(&w);
	w = take(home);
	assert_file(test_path("place/src.ok"), "one");
	assert_ok(work_tree_give_back(&w, &e), &e);
	assert_file(path_join(&arena, home, "src/unit.o"), "object");
}

static void a_killed_build_makes_room_for_another(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	const char *one = make_home("one"), *two = make_home("two");
	struct work_tree w = take(one);
	test_write(test_path("place/src/unit.o"), "object");
	test_write(test_path("place/.ptbuild-0123456789abcdef"), "half a file");
	work_tree_release(&w);
	w = take(two);
	assert_file(test_path("place/src/unit.c"), "two");
	assert_false(fs_exists(TRUSTED, test_path("place/src/unit.o")));
	assert_false(fs_exists(TRUSTED, test_path("place/.ptbuild-0123456789abcdef")));
	assert_file(path_join(&arena, one, "src/unit.o"), "object");
	assert_ok(work_tree_give_back(&w, &e), &e);
	assert_file(path_join(&arena, two, "src/unit.c"), "two");
	assert_at_rest();
}

static void a_tree_whose_home_is_gone_goes(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	const char *one = make_home("one");
	struct work_tree w = take(one);
	work_tree_release(&w);
	assert_ok(fs_remove(TRUSTED, one, &e), &e);
	/* Who makes a link of that name gets nothing. */
	assert_int_equal(mkdir(test_path("trap"), 0755), 0);
	assert_int_equal(symlink(test_path("trap"), one), 0);
	w = take(make_home("two"));
	assert_file(test_path("place/src/unit.c"), "two");
	assert_false(fs_exists(TRUSTED, test_path("trap/src")));
	assert_ok(work_tree_remove(&w, &e), &e);
	assert_at_rest();
}

static void settling_takes_a_killed_build_home(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	const char *home = make_home("one");
	work_tree_settle(place(), test_run());
	assert_false(fs_exists(TRUSTED, place()));
	struct work_tree w = take(home);
	work_tree_settle(place(), test_run()); /* somebody works there */
	assert_true(fs_exists(TRUSTED, test_path("place/src")));
	work_tree_release(&w);
	work_tree_settle(place(), test_run());
	assert_file(path_join(&arena, home, "src/unit.c"), "one");
	assert_at_rest();
	assert_ok(fs_remove(TRUSTED, home, &e), &e);
}

static void what_others_keep_there_stays(void **state)
{
	(void)state;
	struct err e = {0};
	struct work_tree w = WORK_TREE_NONE;
	test_dir();
	const char *home = make_home("one");
	test_write(test_path("place/notes.txt"), "mine");
	assert_err(work_tree_take(place(), home, test_run(), &arena, &w, &e), &e, ERR_POLICY,
		   "'notes.txt'");
	assert_false(fs_exists(TRUSTED, test_path("place/" SANDBOX_PLACE_OWN)));
	assert_file(path_join(&arena, home, "src/unit.c"), "one");
	assert_int_equal(unlink(test_path("place/notes.txt")), 0);
	test_write(test_path("place/buildah-cache-lockfile"), "lock");
	w = take(home);
	test_write(test_path("place/put-there-meanwhile"), "mine");
	assert_ok(work_tree_remove(&w, &e), &e);
	assert_file(test_path("place/put-there-meanwhile"), "mine");
	assert_file(test_path("place/buildah-cache-lockfile"), "lock");
	/* A name of a tree that is no tree's is refused, and not removed. */
	test_write(test_path("place/src/mine.c"), "mine");
	home = make_home("two");
	assert_err(work_tree_take(place(), home, test_run(), &arena, &w, &e), &e, ERR_POLICY,
		   "'src'");
	assert_file(test_path("place/src/mine.c"), "mine");
	assert_file(path_join(&arena, home, "src/unit.c"), "two");
}

static void links_and_places_of_others_are_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct work_tree w = WORK_TREE_NONE;
	test_dir();
	const char *home = make_home("one");
	assert_int_equal(mkdir(test_path("trap"), 0755), 0);
	assert_int_equal(symlink(test_path("trap"), place()), 0);
	assert_err(work_tree_take(place(), home, test_run(), &arena, &w, &e), &e, ERR_POLICY,
		   "is a link");
	assert_int_equal(unlink(place()), 0);
	assert_int_equal(mkdir(place(), 0777), 0);
	assert_int_equal(chmod(place(), 0777), 0);
	assert_err(work_tree_take(place(), home, test_run(), &arena, &w, &e), &e, ERR_POLICY,
		   "others may write");
	assert_file(path_join(&arena, home, "src/unit.c"), "one");
}

/* A stopped process that waits for the place: the one who has it is named, and nothing is lost. */
static void the_second_waits(void **state)
{
	(void)state;
	struct err e = {0};
	struct work_tree first, second = WORK_TREE_NONE;
	struct run run = *test_run();
	int fds[2];
	test_dir();
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	run.cancel_fd = fds[0];
	first = take(make_home("one"));
	assert_err(work_tree_take(place(), make_home("two"), &run, &arena, &second, &e), &e,
		   ERR_INTERRUPTED, "");
	assert_file(test_path("place/src/unit.c"), "one");
	assert_ok(work_tree_give_back(&first, &e), &e);
	assert_ok(work_tree_take(place(), test_path("store/build/two"), &run, &arena, &second, &e),
		  &e);
	assert_ok(work_tree_give_back(&second, &e), &e);
	close(fds[0]);
	close(fds[1]);
}

/* A place on another file system than the store: the tree waits beside it. */
static void across_file_systems_it_waits_beside_the_place(void **state)
{
	(void)state;
	struct err e = {0};
	struct stat one, other;
	char *top = arena_strdup(&arena, "/dev/shm/ptbuild-place-XXXXXX");
	test_dir();
	if (!mkdtemp(top) || stat(top, &one) < 0 || stat(test_dir(), &other) < 0 ||
	    one.st_dev == other.st_dev)
		skip();
	const char *home = make_home("one"), *unit = path_join(&arena, top, "src/unit.c");
	struct work_tree w, two;
	assert_ok(work_tree_take(top, home, test_run(), &arena, &w, &e), &e);
	assert_true(w.apart);
	assert_false(fs_exists(TRUSTED, unit)); /* it would have to be copied: it is made anew */
	test_write(unit, "made");
	test_write(path_join(&arena, top, "tree.json"), "{}");
	assert_ok(work_tree_give_back(&w, &e), &e);
	assert_false(fs_exists(TRUSTED, unit));
	assert_file(path_join(&arena, home, "tree.json"), "{}");
	assert_file(path_join(&arena, w.rest, "src/unit.c"), "made");
	/* Killed, and another takes the place. */
	assert_ok(work_tree_take(top, home, test_run(), &arena, &w, &e), &e);
	assert_file(unit, "made");
	work_tree_release(&w);
	assert_ok(work_tree_take(top, make_home("two"), test_run(), &arena, &two, &e), &e);
	assert_file(path_join(&arena, w.rest, "src/unit.c"), "made");
	assert_ok(work_tree_remove(&two, &e), &e);
	/* When the store has let its home go, the tree goes. */
	assert_ok(fs_remove(TRUSTED, home, &e), &e);
	assert_ok(work_tree_take(top, make_home("two"), test_run(), &arena, &two, &e), &e);
	assert_false(fs_exists(TRUSTED, w.rest));
	assert_ok(work_tree_remove(&two, &e), &e);
	assert_ok(fs_remove(TRUSTED, top, &e), &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_tree_lies_in_the_place_and_goes_home, cleanup),
		cmocka_unit_test_teardown(a_tree_that_is_done_leaves_nothing, cleanup),
		cmocka_unit_test_teardown(without_a_place_it_stays_where_it_is, cleanup),
		cmocka_unit_test_teardown(a_killed_build_is_gone_on_with, cleanup),
		cmocka_unit_test_teardown(a_killed_build_makes_room_for_another, cleanup),
		cmocka_unit_test_teardown(a_tree_whose_home_is_gone_goes, cleanup),
		cmocka_unit_test_teardown(settling_takes_a_killed_build_home, cleanup),
		cmocka_unit_test_teardown(what_others_keep_there_stays, cleanup),
		cmocka_unit_test_teardown(links_and_places_of_others_are_refused, cleanup),
		cmocka_unit_test_teardown(the_second_waits, cleanup),
		cmocka_unit_test_teardown(across_file_systems_it_waits_beside_the_place, cleanup),
	};

	return cmocka_run_group_tests_name("work_tree", tests, NULL, NULL);
}
