#include "store_fixture.h"

#include "cache/store.h"

static struct gc_result gc(struct fixture *f, struct gc_options o)
{
	struct gc_result r;
	assert_ok(store_gc(f->store, &o, test_run(), &f->arena, &r, &f->err), &f->err);
	return r;
}

static void three_objects(struct fixture *f)
{
	time_t now = time(NULL);
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = '\0';
	set_used(publish(f, STORE_WHEEL, KEY_A, "a", text), now - 3000);
	set_used(publish(f, STORE_WHEEL, KEY_B, "b", text), now - 1000);
	set_used(publish(f, STORE_WHEEL, KEY_C, "c", text), now - 2000);
}

static void gc_by_age_removes_the_unused(void **state)
{
	struct fixture *f = *state;

	three_objects(f);
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = 1500, .max_bytes = -1});
	assert_int_equal(r.count, 2);
	assert_int_equal(r.kept, 1);
	assert_string_equal(r.removed[0].key, KEY_A);
	assert_string_equal(r.removed[1].key, KEY_C);
	assert_string_equal(only_object(f).key, KEY_B);
}

static void gc_by_size_removes_the_oldest_first(void **state)
{
	struct fixture *f = *state;

	three_objects(f);
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = -1, .max_bytes = 3000});
	assert_int_equal(r.count, 1);
	assert_string_equal(r.removed[0].key, KEY_A);
	assert_true(r.removed_bytes >= 1000);
	assert_true(r.kept_bytes <= 3000);
}

static void gc_without_rules_removes_nothing(void **state)
{
	struct fixture *f = *state;

	three_objects(f);
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = -1, .max_bytes = -1});
	assert_int_equal(r.count, 0);
	assert_int_equal(r.kept, 3);
}

static void gc_dry_run_only_tells(void **state)
{
	struct fixture *f = *state;

	three_objects(f);
	struct gc_result r =
		gc(f, (struct gc_options){.keep_seconds = 0, .max_bytes = -1, .dry_run = true});
	assert_int_equal(r.count, 3);
	struct store_object *objects;
	size_t count;
	assert_ok(store_list(f->store, &f->arena, &objects, &count, &f->err), &f->err);
	assert_int_equal(count, 3);
}

static void gc_leaves_a_locked_object(void **state)
{
	struct fixture *f = *state;
	struct lock lock = LOCK_NONE;

	three_objects(f);
	assert_ok(store_lock(f->store, STORE_WHEEL, KEY_A, test_run(), &lock, &f->err), &f->err);
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = 0, .max_bytes = -1});
	lock_release(&lock);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.busy, 1);
	assert_string_equal(only_object(f).key, KEY_A);
}

static void gc_grace_protects_what_was_just_used(void **state)
{
	struct fixture *f = *state;

	three_objects(f);
	struct gc_result r = gc(
		f, (struct gc_options){.keep_seconds = 0, .max_bytes = 0, .grace_seconds = 2500});
	assert_int_equal(r.count, 1);
	assert_string_equal(r.removed[0].key, KEY_A);
	assert_int_equal(r.young, 2);
}

static void gc_takes_build_trees_and_quarantine(void **state)
{
	struct fixture *f = *state;
	const char *dir;
	struct lock lock = LOCK_NONE;

	assert_ok(store_build_dir(f->store, KEY_A, &f->arena, &dir, &f->err), &f->err);
	assert_ok(store_build_dir(f->store, KEY_B, &f->arena, &dir, &f->err), &f->err);
	publish(f, STORE_WHEEL, KEY_C, "c", "x");
	struct store_object o = only_object(f);
	assert_ok(store_quarantine(f->store, &o, &f->err), &f->err);
	assert_ok(store_lock(f->store, STORE_BUILD, KEY_B, test_run(), &lock, &f->err), &f->err);
	struct gc_result r = gc(
		f,
		(struct gc_options){.keep_seconds = 0, .max_bytes = -1, .now = time(NULL) + 1000});
	lock_release(&lock);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.busy, 1);
	assert_int_equal(names_in(f, "quarantine"), 0);
	struct store_object *builds;
	size_t count;
	assert_ok(store_list_builds(f->store, &f->arena, &builds, &count, &f->err), &f->err);
	assert_int_equal(count, 1);
	assert_string_equal(builds[0].key, KEY_B);
}

static void gc_takes_broken_downloads_that_nobody_resumes(void **state)
{
	struct fixture *f = *state;
	struct lock lock = LOCK_NONE;

	test_write(in_store(f, "partial/" KEY_A), "half of an archive");
	test_write(in_store(f, "partial/" KEY_B), "half of another");
	assert_ok(store_lock(f->store, STORE_SOURCE, KEY_A, test_run(), &lock, &f->err), &f->err);
	struct gc_result r = gc(
		f,
		(struct gc_options){.keep_seconds = 0, .max_bytes = -1, .now = time(NULL) + 1000});
	lock_release(&lock);
	assert_int_equal(r.count, 1);
	assert_string_equal(r.removed[0].kind, "partial");
	assert_string_equal(r.removed[0].key, KEY_B);
	assert_true(fs_exists(TRUSTED, in_store(f, "partial/" KEY_A)));
}

static void put(struct fixture *f, const char *rel, time_t when)
{
	const char *path = in_store(f, rel);
	char text[1001];

	memset(text, 'x', 1000);
	text[1000] = '\0';
	test_write(path, text);
	const struct timespec t[2] = {{.tv_sec = when}, {.tv_sec = when}};
	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void gc_takes_files_of_the_compiler_cache_by_their_use(void **state)
{
	struct fixture *f = *state;
	time_t now = time(NULL);

	put(f, "ccache/a/b/resultR", now - 5000);
	put(f, "ccache/0/f/manifestM", now - 100);
	put(f, "ccache/0/stats", now - 5000);
	put(f, "ccache/ccache.conf", now - 5000);
	struct gc_result r =
		gc(f, (struct gc_options){.keep_seconds = 1500, .max_bytes = -1, .dry_run = true});
	assert_int_equal(r.count, 1);
	assert_true(fs_exists(TRUSTED, in_store(f, "ccache/a/b/resultR")));
	r = gc(f, (struct gc_options){.keep_seconds = 1500, .max_bytes = -1});
	assert_int_equal(r.count, 1);
	assert_string_equal(r.removed[0].kind, GC_CCACHE);
	assert_string_equal(r.removed[0].key, "1 file");
	assert_int_equal(r.removed_bytes, 1000);
	assert_false(fs_exists(TRUSTED, in_store(f, "ccache/a/b/resultR")));
	assert_true(fs_exists(TRUSTED, in_store(f, "ccache/0/f/manifestM")));
	assert_true(fs_exists(TRUSTED, in_store(f, "ccache/0/stats")));
	assert_true(fs_exists(TRUSTED, in_store(f, "ccache/ccache.conf")));
}

static void gc_by_size_counts_everything(void **state)
{
	struct fixture *f = *state;
	time_t now = time(NULL);

	put(f, "compiled/default/pytorch/ab/oldest", now - 9000);
	put(f, "partial/" KEY_A, now - 8000);
	put(f, "ccache/a/b/newerR", now - 7000);
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = -1, .max_bytes = 1500});
	assert_int_equal(r.removed_bytes, 2000);
	assert_int_equal(r.kept_bytes, 1000);
	assert_true(fs_exists(TRUSTED, in_store(f, "ccache/a/b/newerR")));
}

/* As a build brings the compiler cache down to its size: nothing else is looked at. */
static void gc_of_the_compiler_cache_alone(void **state)
{
	struct fixture *f = *state;
	const struct gc_options cache = {.kind = GC_CCACHE, .keep_seconds = -1, .max_bytes = 100};

	three_objects(f);
	for (int i = 0; i < 10; i++)
		test_write(
			in_store(f, arena_printf(&f->arena,
						 i % 2 ? "compiled/one/%d/x" : "ccache/%d/xR", i)),
			"0123456789");
	for (int i = 0; i < 10; i++) {
		const char *path =
			in_store(f, arena_printf(&f->arena,
						 i % 2 ? "compiled/one/%d/x" : "ccache/%d/xR", i));
		const struct timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	}

	struct gc_result r = gc(f, cache);
	assert_int_equal(r.count, 0);
	assert_int_equal(r.kept_bytes, 100);
	r = gc(f, (struct gc_options){.kind = GC_CCACHE, .keep_seconds = -1, .max_bytes = 45});
	assert_int_equal(r.removed_bytes, 60);
	for (int i = 0; i < 10; i++)
		assert_int_equal(
			fs_exists(TRUSTED, in_store(f, arena_printf(&f->arena,
								    i % 2 ? "compiled/one/%d/x"
									  : "ccache/%d/xR",
								    i))),
			i > 5);
	r = gc(f, (struct gc_options){.keep_seconds = -1, .max_bytes = -1});
	assert_int_equal(r.kept, 7);
}

static void gc_leaves_stores_below(void **state)
{
	struct fixture *f = *state;
	struct store *lower;
	const char *dir = arena_strdup(&f->arena, test_path("lower")), *path;

	assert_ok(store_open(dir, test_run(), &lower, &f->err), &f->err);
	const char *stage = stage_with(f, lower, "w", "x");
	assert_ok(store_publish(lower, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err),
		  &f->err);
	store_close(lower);
	assert_ok(store_add_fallback(f->store, dir, &f->err), &f->err);
	struct gc_result r = gc(
		f,
		(struct gc_options){.keep_seconds = 0, .max_bytes = 0, .now = time(NULL) + 100000});
	assert_int_equal(r.count, 0);
	assert_true(fs_exists(TRUSTED, path));
}

static void gc_forgets_old_stamps(void **state)
{
	struct fixture *f = *state;

	put(f, "stamps/wheel-" KEY_A, time(NULL) - 100 * 86400);
	put(f, "stamps/wheel-" KEY_B, time(NULL) - 10 * 86400);
	gc(f, (struct gc_options){.keep_seconds = -1, .max_bytes = -1});
	assert_false(fs_exists(TRUSTED, in_store(f, "stamps/wheel-" KEY_A)));
	assert_true(fs_exists(TRUSTED, in_store(f, "stamps/wheel-" KEY_B)));
}

static void usage_by_kind(void **state)
{
	struct fixture *f = *state;
	struct store_usage *rows;
	size_t count;
	const char *dir;
	time_t now = time(NULL);

	three_objects(f);
	put(f, "ccache/a/b/oneR", now - 50);
	put(f, "ccache/a/b/twoM", now - 70);
	/* one more name of the same bytes */
	assert_int_equal(link(in_store(f, "ccache/a/b/oneR"), in_store(f, "ccache/a/b/sameR")), 0);
	put(f, "partial/" KEY_A, now);
	put(f, "apt/trixie_main/lists", now);
	assert_ok(store_build_dir(f->store, KEY_A, &f->arena, &dir, &f->err), &f->err);
	assert_ok(store_usage(f->store, test_run(), &f->arena, &rows, &count, &f->err), &f->err);
	static const struct {
		const char *kind;
		size_t count;
	} want[] = {{"wheel", 3}, {"build", 1}, {"partial", 1}, {"apt", 1}, {"ccache", 3}};
	assert_int_equal(count, ARRAY_LEN(want));
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(rows[i].kind, want[i].kind);
		assert_int_equal(rows[i].count, want[i].count);
	}

	assert_true(rows[0].bytes > 3000);
	assert_int_equal(rows[0].oldest, now - 3000);
	assert_int_equal(rows[4].bytes, 2000);
	assert_int_equal(rows[4].oldest, now - 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(gc_by_age_removes_the_unused),
		T(gc_by_size_removes_the_oldest_first),
		T(gc_without_rules_removes_nothing),
		T(gc_dry_run_only_tells),
		T(gc_leaves_a_locked_object),
		T(gc_grace_protects_what_was_just_used),
		T(gc_takes_build_trees_and_quarantine),
		T(gc_takes_broken_downloads_that_nobody_resumes),
		T(gc_takes_files_of_the_compiler_cache_by_their_use),
		T(gc_by_size_counts_everything),
		T(gc_of_the_compiler_cache_alone),
		T(gc_leaves_stores_below),
		T(gc_forgets_old_stamps),
		T(usage_by_kind),
	};

	return cmocka_run_group_tests_name("gc", tests, NULL, NULL);
}
