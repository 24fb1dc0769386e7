#include "store_fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include "cache/store.h"

static void list_is_sorted_and_complete(void **state)
{
	struct fixture *f = *state;
	struct store_object *objects;
	size_t count;

	publish(f, STORE_WHEEL, KEY_B, "b", "22");
	publish(f, STORE_WHEEL, KEY_A, "a", "1");
	publish(f, STORE_PYENV, KEY_C, "c", "333");
	test_write(in_store(f, "objects/wheel/not-a-key/x"), "x");
	assert_ok(store_list(f->store, &f->arena, &objects, &count, &f->err), &f->err);
	assert_int_equal(count, 3);
	assert_string_equal(objects[0].kind, STORE_PYENV);
	assert_string_equal(objects[1].key, KEY_A);
	assert_string_equal(objects[2].key, KEY_B);
	assert_true(objects[0].bytes > 3);
	assert_true(objects[0].used >= time(NULL) - 60);
}

static void list_of_an_empty_store(void **state)
{
	struct fixture *f = *state;
	struct store_object *objects;
	size_t count = 7;

	assert_ok(store_list(f->store, &f->arena, &objects, &count, &f->err), &f->err);
	assert_int_equal(count, 0);
}

static void verify_finds_a_flipped_byte(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "good bytes");

	test_write(arena_printf(&f->arena, "%s/w.whl", path), "good bytez");
	struct store_object o = only_object(f);
	assert_err(store_verify(&o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "w.whl");
	char good[DIGEST_HEX_LEN + 1], bad[DIGEST_HEX_LEN + 1];
	digest_data("good bytes", 10, good);
	digest_data("good bytez", 10, bad);
	assert_contains(f->err.msg, good);
	assert_contains(f->err.msg, bad);
	assert_contains(f->err.hint, "cache verify");
}

static void verify_finds_a_missing_file(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "x");

	assert_int_equal(unlink(arena_printf(&f->arena, "%s/w.whl", path)), 0);
	struct store_object o = only_object(f);
	assert_err(store_verify(&o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "missing");
}

static void verify_finds_an_extra_file(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "x");

	test_write(arena_printf(&f->arena, "%s/dir/intruder", path), "x");
	struct store_object o = only_object(f);
	assert_err(store_verify(&o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "dir/intruder");
}

static void verify_finds_a_file_that_became_a_link(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "x"),
		   *file = arena_printf(&f->arena, "%s/w.whl", path);

	test_write(test_path("outside"), "x");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(symlink(test_path("outside"), file), 0);
	struct store_object o = only_object(f);
	assert_err(store_verify(&o, test_run(), &f->err), &f->err, ERR_INTEGRITY,
		   "not a regular file");
}

static void verify_finds_a_broken_manifest(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "x");
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		"[]",
		"{\"format\": 1, \"kind\": \"pyenv\", \"key\": \"" KEY_B "\", \"files\": [{}]}",
		"{\"format\": 2, \"kind\": \"pyenv\", \"key\": \"" KEY_A "\", \"files\": [{}]}",
		"{\"format\": 1, \"kind\": \"pyenv\", \"key\": \"" KEY_A "\", \"files\": []}",
		"{\"format\": 1, \"kind\": \"pyenv\", \"key\": \"" KEY_A "\", \"files\": [{}]}",
		"{\"format\": 1, \"kind\": \"pyenv\", \"key\": \"" KEY_A
		"\", \"files\": [{\"path\": \"../x\", \"size\": 1, \"sha256\": \"" KEY_A "\"}]}",
		"{\"format\": 1, \"kind\": \"pyenv\", \"key\": \"" KEY_A
		"\", \"files\": [{\"path\": \"w.whl\", \"size\": 1, \"sha256\": \"12\"}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_write(arena_printf(&f->arena, "%s/.manifest.json", path), bad[i]);
		struct store_object o = only_object(f);
		assert_err(store_verify(&o, test_run(), &f->err), &f->err, ERR_INTEGRITY,
			   "manifest");
	}
}

static void verify_needs_the_manifest(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "x"), *found;

	assert_int_equal(unlink(arena_printf(&f->arena, "%s/.manifest.json", path)), 0);
	struct store_object o = only_object(f);
	assert_err(store_verify(&o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "missing");
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
}

static void half_an_object_gives_way_to_a_publisher(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "x"), *found;

	assert_int_equal(unlink(arena_printf(&f->arena, "%s/.manifest.json", path)), 0);
	publish(f, STORE_PYENV, KEY_A, "w.whl", "anew");
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	char *text = test_read(arena_printf(&f->arena, "%s/w.whl", found));
	assert_string_equal(text, "anew");
	free(text);
	assert_int_equal(names_in(f, "quarantine"), 1);
}

static void what_is_no_directory_is_moved_away(void **state)
{
	struct fixture *f = *state;
	struct store_checks checks;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "x"), *found;

	assert_ok(fs_remove(TRUSTED, path, &f->err), &f->err);
	test_write(path, "not an object");
	assert_ok(store_verify_all(f->store, true, 1, test_run(), &f->arena, &checks, &f->err),
		  &f->err);
	assert_int_equal(checks.wrong, 1);
	assert_false(fs_exists(TRUSTED, path));
	assert_int_equal(names_in(f, "quarantine"), 1);
	test_write(path, "not an object");
	publish(f, STORE_PYENV, KEY_A, "w.whl", "anew");
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_non_null(found);
	assert_int_equal(names_in(f, "quarantine"), 2);
}

static void verify_can_be_interrupted(void **state)
{
	struct fixture *f = *state;
	int fds[2];

	publish(f, STORE_PYENV, KEY_A, "w.whl", "x");
	struct store_object o = only_object(f);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	struct run run = *test_run();
	run.cancel_fd = fds[0];
	assert_err(store_verify(&o, &run, &f->err), &f->err, ERR_INTERRUPTED, "interrupted");
	close(fds[0]);
	close(fds[1]);
}

static void quarantine_moves_the_object_away(void **state)
{
	struct fixture *f = *state;
	const char *found;

	publish(f, STORE_PYENV, KEY_A, "w.whl", "x");
	struct store_object o = only_object(f);
	assert_ok(store_quarantine(f->store, &o, &f->err), &f->err);
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
	assert_int_equal(names_in(f, "quarantine"), 1);
	publish(f, STORE_PYENV, KEY_A, "w.whl", "x");
	assert_ok(store_quarantine(f->store, &o, &f->err), &f->err);
	assert_int_equal(names_in(f, "quarantine"), 2);
}

static void quarantine_of_nothing_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct store_object o = {.kind = STORE_PYENV, .key = KEY_A};

	assert_err(store_quarantine(f->store, &o, &f->err), &f->err, ERR_SYSTEM, KEY_A);
	assert_int_equal(names_in(f, "quarantine"), 0);
}

static void remove_deletes_the_object(void **state)
{
	struct fixture *f = *state;
	const char *found;

	publish(f, STORE_PYENV, KEY_A, "w.whl", "x");
	struct store_object o = only_object(f);
	assert_ok(store_remove(f->store, &o, &f->err), &f->err);
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
	assert_int_equal(names_in(f, "tmp"), 0);
	assert_err(store_remove(f->store, &o, &f->err), &f->err, ERR_SYSTEM, "cannot remove");
}

static void find_marks_the_use(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "w.whl", "x"), *found;

	set_used(path, 1000000);
	assert_int_equal(only_object(f).used, 1000000);
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_true(only_object(f).used >= time(NULL) - 60);
}

static void lock_keeps_others_out(void **state)
{
	struct fixture *f = *state;
	struct lock lock = LOCK_NONE, second = LOCK_NONE;
	bool got = true;

	assert_ok(store_lock(f->store, STORE_PYENV, KEY_A, test_run(), &lock, &f->err), &f->err);
	const char *path = in_store(f, "locks/pyenv-" KEY_A);
	assert_ok(lock_try(&second, path, false, &got, &f->err), &f->err);
	assert_false(got);
	lock_release(&lock);
	assert_ok(lock_try(&second, path, false, &got, &f->err), &f->err);
	assert_true(got);
	lock_release(&second);
}

static void build_dir_is_made_and_kept(void **state)
{
	struct fixture *f = *state;
	const char *one, *two;

	assert_ok(store_build_dir(f->store, KEY_A, &f->arena, &one, &f->err), &f->err);
	test_write(arena_printf(&f->arena, "%s/obj.o", one), "o");
	assert_ok(store_build_dir(f->store, KEY_A, &f->arena, &two, &f->err), &f->err);
	assert_string_equal(one, two);
	assert_true(fs_exists(TRUSTED, arena_printf(&f->arena, "%s/obj.o", two)));
}

/* RLIMIT_FSIZE stands for the full disk: a write past it fails the same way. */
static void full_disk_publishes_nothing(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, "w.whl", "x"), *path = NULL, *found;
	struct rlimit old, tiny;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tiny = old;
	tiny.rlim_cur = 16;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
	int rc = store_publish(f->store, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(rc, -1);
	assert_int_equal(f->err.kind, ERR_SYSTEM);
	assert_contains(f->err.msg, "manifest");
	assert_null(path);
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
	assert_ok(store_publish(f->store, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err),
		  &f->err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(list_is_sorted_and_complete),
		T(list_of_an_empty_store),
		T(verify_finds_a_flipped_byte),
		T(verify_finds_a_missing_file),
		T(verify_finds_an_extra_file),
		T(verify_finds_a_file_that_became_a_link),
		T(verify_finds_a_broken_manifest),
		T(verify_needs_the_manifest),
		T(half_an_object_gives_way_to_a_publisher),
		T(what_is_no_directory_is_moved_away),
		T(verify_can_be_interrupted),
		T(quarantine_moves_the_object_away),
		T(quarantine_of_nothing_is_an_error),
		T(remove_deletes_the_object),
		T(find_marks_the_use),
		T(lock_keeps_others_out),
		T(build_dir_is_made_and_kept),
		T(full_disk_publishes_nothing),
	};

	return cmocka_run_group_tests_name("store_check", tests, NULL, NULL);
}
