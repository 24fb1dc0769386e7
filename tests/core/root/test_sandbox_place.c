#include "support.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "core/root/sandbox.h"

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

static const char *fresh(void)
{
	test_dir();
	assert_int_equal(mkdir(place(), 0755), 0);
	return place();
}

static void assert_fine(const char *top, bool there)
{
	struct sandbox_place p;

	sandbox_place_look(top, &arena, &p);
	assert_string_equal(p.why ? p.why : "", "");
	assert_true(p.fine);
	assert_int_equal(p.there, there);
}

static void assert_refused(const char *top, const char *why, const char *fix)
{
	struct sandbox_place p;

	sandbox_place_look(top, &arena, &p);
	assert_false(p.fine);
	assert_contains(p.why, why);
	assert_contains(p.fix, fix);
}

static void take(void)
{
	test_write(test_path("place/" SANDBOX_PLACE_MARKER), SANDBOX_PLACE_TEXT);
}

static void one_that_can_be_made_or_is_empty_is_fine(void **state)
{
	(void)state;
	test_dir();
	assert_fine(place(), false);
	assert_false(fs_exists(TRUSTED, place()));
	assert_fine(fresh(), true);
	/* the tops of file systems, and cache mounts of buildah */
	assert_int_equal(mkdir(test_path("place/lost+found"), 0700), 0);
	test_write(test_path("place/buildah-cache-lockfile"), "");
	assert_fine(place(), true);
}

static void one_that_cannot_be_made_is_refused(void **state)
{
	(void)state;
	test_dir();
	assert_refused(test_path("no/such/parent/place"),
		       "is not there and cannot be made: No such file or directory",
		       "let root make it: install -d -o ");
}

static void a_link_is_not_followed(void **state)
{
	(void)state;
	test_dir();
	assert_int_equal(mkdir(test_path("elsewhere"), 0755), 0);
	assert_int_equal(symlink(test_path("elsewhere"), place()), 0);
	assert_refused(place(), "is a link", "remove ");
	assert_int_equal(unlink(place()), 0);
	assert_int_equal(symlink("nowhere", place()), 0);
	assert_refused(place(), "is a link", "remove ");
	assert_int_equal(unlink(place()), 0);
	test_write(place(), "");
	assert_refused(place(), "is not a directory", "remove ");
}

static void one_that_others_may_write_is_refused(void **state)
{
	(void)state;
	fresh();
	static const mode_t modes[] = {0777, 0775, 01777, 0757};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		assert_int_equal(chmod(place(), modes[i]), 0);
		assert_refused(place(), "others may write in ", "chmod go-w ");
	}

	assert_int_equal(chmod(place(), 0755), 0);
	assert_fine(place(), true);
}

static void one_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0) { /* who can make nothing that is somebody else's */
		assert_refused("/usr", "owned by user 0, but ptbuild runs as user ", "chown ");
		return;
	}

	fresh();
	assert_int_equal(chown(place(), 12321, 12321), 0);
	assert_refused(place(), "owned by user 12321, but ptbuild runs as user 0", "chown 0 ");
}

static void one_that_cannot_be_written_is_refused(void **state)
{
	(void)state;
	fresh();
	assert_int_equal(chmod(test_path("."), 0755), 0);
	assert_int_equal(chmod(place(), 0555), 0);
	/* Root may write everywhere: another user looks. */
	if (geteuid() == 0)
		assert_int_equal(chown(place(), 65534, 65534), 0);
	pid_t child = fork();
	if (child == 0) {
		struct sandbox_place p;
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(2);
		sandbox_place_look(place(), &arena, &p);
		_exit(!p.fine && test_has(p.why, "cannot write in ") &&
				      test_has(p.fix, "mount another directory at ")
			      ? 0
			      : 1);
	}

	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(place(), 0755), 0);
}

static void what_somebody_keeps_there_is_left_alone(void **state)
{
	(void)state;
	fresh();
	test_write(test_path("place/notes.txt"), "mine");
	assert_refused(place(), "has something in it that ptbuild did not make: 'notes.txt'",
		       "empty ");
	/* Beside ptbuild's own it is in nobody's way. */
	take();
	assert_fine(place(), true);
}

static void a_name_of_a_tree_needs_a_tree(void **state)
{
	(void)state;
	fresh();
	take();
	test_write(test_path("place/src/mine.c"), "");
	assert_refused(place(), "has something in it that ptbuild did not make: 'src'",
		       "move it away: ");
	test_write(test_path("place/" SANDBOX_PLACE_TREE), "/store/build/key");
	assert_fine(place(), true);
}

static void what_is_not_ptbuilds_marker_is_none(void **state)
{
	(void)state;
	fresh();
	test_write(test_path("place/" SANDBOX_PLACE_MARKER), "another text\n");
	assert_refused(place(), "is not ptbuild's", "remove ");
	assert_int_equal(unlink(test_path("place/" SANDBOX_PLACE_MARKER)), 0);
	assert_refused(place(), "is not ptbuild's", "remove ");
	assert_int_equal(rmdir(test_path("place/" SANDBOX_PLACE_OWN)), 0);
	test_write(test_path("other/marker"), SANDBOX_PLACE_TEXT);
	assert_int_equal(symlink(test_path("other"), test_path("place/" SANDBOX_PLACE_OWN)), 0);
	assert_refused(place(), "is not ptbuild's", "remove ");
}

static void in_the_sandbox_nothing_is_elsewhere(void **state)
{
	(void)state;
	assert_false(sandbox_elsewhere(SANDBOX_BWRAP));
	if (geteuid() != 0 && !fs_exists(TRUSTED, SANDBOX_TOP))
		assert_true(sandbox_elsewhere(SANDBOX_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_that_can_be_made_or_is_empty_is_fine, cleanup),
		cmocka_unit_test_teardown(one_that_cannot_be_made_is_refused, cleanup),
		cmocka_unit_test_teardown(a_link_is_not_followed, cleanup),
		cmocka_unit_test_teardown(one_that_others_may_write_is_refused, cleanup),
		cmocka_unit_test_teardown(one_of_another_user_is_refused, cleanup),
		cmocka_unit_test_teardown(one_that_cannot_be_written_is_refused, cleanup),
		cmocka_unit_test_teardown(what_somebody_keeps_there_is_left_alone, cleanup),
		cmocka_unit_test_teardown(a_name_of_a_tree_needs_a_tree, cleanup),
		cmocka_unit_test_teardown(what_is_not_ptbuilds_marker_is_none, cleanup),
		cmocka_unit_test_teardown(in_the_sandbox_nothing_is_elsewhere, cleanup),
	};

	return cmocka_run_group_tests_name("sandbox_place", tests, NULL, NULL);
}
