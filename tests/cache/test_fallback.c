#include "store_fixture.h"

#include <dirent.h>

/* A store below the fixture's, with one object; closed again. */
static const char *lower_with(struct fixture *f, const char *name, const char *text)
{
	struct store *lower;
	const char *dir = arena_strdup(&f->arena, test_path("%s", name)), *path;

	assert_ok(store_open(dir, test_run(), &lower, &f->err), &f->err);
	const char *stage = stage_with(f, lower, "w.whl", text);
	assert_ok(store_publish(lower, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err),
		  &f->err);
	store_close(lower);
	return dir;
}

static const char *find(struct fixture *f)
{
	const char *path = "x";
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &path, &f->err), &f->err);
	return path;
}

static void add(struct fixture *f, const char *dir)
{
	assert_ok(store_add_fallback(f->store, dir, &f->err), &f->err);
}

/* Everything of a tree that a write would change. */
static char *picture(struct fixture *f, const char *dir)
{
	assert_int_equal(
		system(arena_printf(
			&f->arena, "cd '%s' && find . -printf '%%p %%s %%T@ %%C@\\n' | sort > '%s'",
			dir, test_path("picture"))),
		0);
	return test_read(test_path("picture"));
}

static void an_object_below_is_used_in_place(void **state)
{
	struct fixture *f = *state;
	const char *dir = lower_with(f, "lower", "x");
	char *before = picture(f, dir);

	add(f, dir);
	assert_string_equal(find(f), arena_printf(&f->arena, "%s/objects/pyenv/" KEY_A, dir));
	assert_int_equal(names_in(f, "objects"), 0);
	assert_true(fs_exists(TRUSTED, in_store(f, "stamps/pyenv-" KEY_A)));
	char *after = picture(f, dir);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void the_store_itself_comes_first(void **state)
{
	struct fixture *f = *state;
	const char *own = publish(f, STORE_PYENV, KEY_A, "w.whl", "own");

	add(f, lower_with(f, "lower", "x"));
	assert_string_equal(find(f), own);
}

static void several_in_their_order(void **state)
{
	struct fixture *f = *state;
	const char *one = lower_with(f, "one", "x"),
		   *two = lower_with(f, "two", "x"), *const * dirs;

	add(f, two);
	add(f, one);
	add(f, two);
	assert_int_equal(store_fallbacks(f->store, &dirs), 2);
	assert_string_equal(find(f), arena_printf(&f->arena, "%s/objects/pyenv/" KEY_A, two));
}

static void a_damaged_one_is_passed_over(void **state)
{
	struct fixture *f = *state;
	const char *one = lower_with(f, "one", "good"), *two = lower_with(f, "two", "good");

	test_write(arena_printf(&f->arena, "%s/objects/pyenv/" KEY_A "/w.whl", one), "gOod");
	char *before = picture(f, one);
	add(f, one);
	add(f, two);
	for (int i = 0; i < 2; i++)
		assert_string_equal(find(f),
				    arena_printf(&f->arena, "%s/objects/pyenv/" KEY_A, two));
	char *after = picture(f, one);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void damage_after_the_first_use_is_seen(void **state)
{
	struct fixture *f = *state;
	const char *dir = lower_with(f, "lower", "good");

	add(f, dir);
	assert_non_null(find(f));
	test_write(arena_printf(&f->arena, "%s/objects/pyenv/" KEY_A "/w.whl", dir), "gOod");
	assert_null(find(f));
}

/* By the stamp: a file that only looks the same to stat is taken for the same. */
static void an_object_is_hashed_once(void **state)
{
	struct fixture *f = *state;
	const char *dir = lower_with(f, "lower", "x"), *stamp = in_store(f, "stamps/pyenv-" KEY_A);
	struct stat a, b;

	add(f, dir);
	assert_non_null(find(f));
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	assert_int_equal(utimensat(AT_FDCWD, stamp, old, 0), 0);
	assert_int_equal(stat(stamp, &a), 0);
	assert_non_null(find(f));
	assert_int_equal(stat(stamp, &b), 0);
	assert_true(b.st_mtim.tv_sec > 1000); /* the time of its use */
	test_write(stamp, "no digest");
	assert_non_null(find(f));
	char *text = test_read(stamp);
	assert_int_equal(strlen(text), DIGEST_HEX_LEN);
	free(text);
}

static void a_store_made_anew_is_hashed_again(void **state)
{
	struct fixture *f = *state;
	const char *own = publish(f, STORE_PYENV, KEY_A, "w.whl", "good");
	const char *file = arena_printf(&f->arena, "%s/w.whl", own);
	struct stat st;

	assert_int_equal(stat(file, &st), 0);
	test_write(file, "gOod");
	const struct timespec same[2] = {st.st_atim, st.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, file, same, 0), 0);
	assert_null(find(f));
	/* Whoever makes it puts it in the place of the damaged one. */
	publish(f, STORE_PYENV, KEY_A, "w.whl", "good");
	assert_string_equal(find(f), own);
	assert_int_equal(names_in(f, "quarantine"), 1);
}

static void what_is_no_store_is_refused(void **state)
{
	struct fixture *f = *state;

	test_write(test_path("other/file"), "x");
	assert_err(store_add_fallback(f->store, test_path("other"), &f->err), &f->err, ERR_CONFIG,
		   "not a store");
	test_write(test_path("newer/format"), "ptbuild store 2\n");
	assert_err(store_add_fallback(f->store, test_path("newer"), &f->err), &f->err, ERR_CONFIG,
		   "format 2");
	assert_err(store_add_fallback(f->store, f->dir, &f->err), &f->err, ERR_USAGE,
		   "its own lower store");
}

static void a_mount_that_is_empty_or_missing_is_left_out(void **state)
{
	struct fixture *f = *state;
	const char *const *dirs;

	add(f, test_path("missing"));
	assert_int_equal(mkdir(test_path("empty"), 0755), 0);
	add(f, test_path("empty"));
	assert_int_equal(store_fallbacks(f->store, &dirs), 0);
	assert_null(find(f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_object_below_is_used_in_place),
		T(the_store_itself_comes_first),
		T(several_in_their_order),
		T(a_damaged_one_is_passed_over),
		T(damage_after_the_first_use_is_seen),
		T(an_object_is_hashed_once),
		T(a_store_made_anew_is_hashed_again),
		T(what_is_no_store_is_refused),
		T(a_mount_that_is_empty_or_missing_is_left_out),
	};

	return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}
