/* Worlds in the store: published whole, found, verified, locked against garbage collection. */
#include "store_fixture.h"

#include "base/buf.h"
#include "cache/store.h"

/* A tree of two files, a link that leads nowhere and an empty directory; its manifest. */
static const char *world_stage(struct fixture *f, struct buf *manifest)
{
	char hex[65];
	const char *stage = stage_with(f, f->store, "root/usr/bin/tool", "tool");

	test_write(arena_printf(&f->arena, "%s/root/etc/a b", stage), "text");
	assert_int_equal(chmod(arena_printf(&f->arena, "%s/root/etc/a b", stage), 0644), 0);
	assert_int_equal(chmod(arena_printf(&f->arena, "%s/root/usr/bin/tool", stage), 0755), 0);
	assert_int_equal(
		symlink("/nowhere/at all", arena_printf(&f->arena, "%s/root/usr/lib", stage)), 0);
	assert_int_equal(mkdir(arena_printf(&f->arena, "%s/root/tmp", stage), 0755), 0);
	digest_data("text", 4, hex);
	buf_printf(manifest,
		   "dir\tetc\nfile\t644\t4\t%s\tetc/a b\ndir\ttmp\ndir\tusr\ndir\tusr/bin\n", hex);
	digest_data("tool", 4, hex);
	buf_printf(manifest, "file\t755\t4\t%s\tusr/bin/tool\nlink\t/nowhere/at all\tusr/lib\n",
		   hex);
	return stage;
}

static const char *publish_world(struct fixture *f, const char *key)
{
	AUTO_BUF struct buf manifest = {0};
	char tree[65];
	const char *root, *stage = world_stage(f, &manifest);

	digest_data(manifest.data, manifest.len, tree);
	const struct store_world w = {key, "debian13", "x86_64-linux", tree, 8};
	assert_ok(store_world_publish(f->store, &w, &manifest, stage, &f->arena, &root, &f->err),
		  &f->err);
	return root;
}

static const char *find(struct fixture *f, const char *key)
{
	const char *root = NULL;

	assert_ok(store_world_find(f->store, key, STORE_LOOK_FACTS, &f->arena, &root, &f->err),
		  &f->err);
	return root;
}

static void published_and_found(void **state)
{
	struct fixture *f = *state;

	assert_null(find(f, KEY_A));
	const char *root = publish_world(f, KEY_A);
	assert_string_equal(root, in_store(f, "worlds/" KEY_A "/root"));
	assert_string_equal(find(f, KEY_A), root);
	assert_null(find(f, KEY_B));
	assert_file(arena_printf(&f->arena, "%s/etc/a b", root), "text");
	assert_int_equal(names_in(f, "tmp"), 0);
	struct store_object o = only_object(f);
	assert_string_equal(o.kind, STORE_WORLD);
	assert_string_equal(o.key, KEY_A);
	assert_int_equal(o.bytes, 8);
	assert_ok(store_verify(&o, test_run(), &f->err), &f->err);
	/* the second of two that made it uses the first one's */
	assert_string_equal(publish_world(f, KEY_A), root);
	assert_int_equal(names_in(f, "tmp"), 0);
}

static void a_wrong_manifest_is_not_published(void **state)
{
	struct fixture *f = *state;
	AUTO_BUF struct buf manifest = {0};
	const char *root, *stage = world_stage(f, &manifest);
	const struct store_world w = {KEY_A, "debian13", "x86_64-linux", KEY_B, 8};

	assert_err(store_world_publish(f->store, &w, &manifest, stage, &f->arena, &root, &f->err),
		   &f->err, ERR_CONFIG, "the manifest has sha256");
	assert_null(find(f, KEY_A));
}

static void every_change_is_found(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *command, *message;
	} cases[] = {
		{"printf tOol >usr/bin/tool", "usr/bin/tool' has sha256"},
		{"chmod 4755 usr/bin/tool", "usr/bin/tool' has the mode 4755"},
		{"rm 'etc/a b'", "etc/a b' is missing"},
		{"rmdir tmp", "tmp' is missing"},
		{"rmdir tmp; ln -s etc tmp", "tmp' is not a directory"},
		{"ln -sfn /bin/sh usr/lib", "usr/lib' is not a link to '/nowhere/at all'"},
		{"rm 'etc/a b'; ln -s /etc/hostname 'etc/a b'", "etc/a b' is not a regular file"},
		{"touch etc/new", "etc/new' is not in the manifest"},
		{"sed -i 's/755/644/' ../manifest", "manifest' has sha256"},
		{"rm ../manifest", "manifest' is missing"},
		{"sed -i 's/" KEY_A "/" KEY_B "/' ../world.json", "is not of the world"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *root = publish_world(f, KEY_A);
		assert_int_equal(
			system(arena_printf(&f->arena, "cd %s && %s", root, cases[i].command)), 0);
		struct store_object o = only_object(f);
		assert_err(store_verify(&o, test_run(), &f->err), &f->err, ERR_INTEGRITY,
			   cases[i].message);
		struct store_checks r;
		err_clear(&f->err);
		assert_ok(store_verify_all(f->store, true, 2, test_run(), &f->arena, &r, &f->err),
			  &f->err);
		assert_int_equal(r.wrong, 1);
		assert_int_equal(r.items[0].fate, STORE_WRONG_MOVED);
		assert_null(find(f, KEY_A));
	}
}

static void one_without_facts_is_not_used(void **state)
{
	struct fixture *f = *state;
	const char *root = publish_world(f, KEY_A);

	assert_int_equal(unlink(in_store(f, "worlds/" KEY_A "/world.json")), 0);
	assert_null(find(f, KEY_A));
	assert_string_equal(publish_world(f, KEY_A), root);
	assert_string_equal(find(f, KEY_A), root);
	assert_int_equal(names_in(f, "quarantine"), 1);
}

static const char *use(struct fixture *f, struct store *s, const char *key)
{
	const char *root = NULL;
	assert_ok(store_world_find(s, key, STORE_LOOK_WHOLE, &f->arena, &root, &f->err), &f->err);
	return root;
}

/* By the directories alone all is seen but what is written into a file in place. */
static void a_look_at_directories(void **state)
{
	struct fixture *f = *state;
	const char *root = publish_world(f, KEY_A), *found = NULL;

	assert_ok(store_world_find(f->store, KEY_A, STORE_LOOK_DIRS, &f->arena, &found, &f->err),
		  &f->err);
	assert_string_equal(found, root);
	test_write(arena_printf(&f->arena, "%s/usr/bin/tool", root), "t00l");
	assert_ok(store_world_find(f->store, KEY_A, STORE_LOOK_DIRS, &f->arena, &found, &f->err),
		  &f->err);
	assert_string_equal(found, root);
	assert_null(use(f, f->store, KEY_A));
	/* Once it is known to be damaged, it is not used by a look either. */
	assert_ok(store_world_find(f->store, KEY_A, STORE_LOOK_DIRS, &f->arena, &found, &f->err),
		  &f->err);
	assert_null(found);
	assert_string_equal(publish_world(f, KEY_A), root);
	test_write(arena_printf(&f->arena, "%s/usr/bin/more", root), "x");
	assert_ok(store_world_find(f->store, KEY_A, STORE_LOOK_DIRS, &f->arena, &found, &f->err),
		  &f->err);
	assert_null(found);
}

static void a_changed_one_is_not_used(void **state)
{
	struct fixture *f = *state;
	static const char *const commands[] = {
		"printf tOol >usr/bin/tool",
		"printf tOol >usr/bin/tool; touch -d @1000 usr/bin/tool",
		"chmod 644 usr/bin/tool",
		"rm 'etc/a b'",
		"ln -sfn /bin/sh usr/lib",
		"touch etc/new",
		"touch new",
		"mv ../root ../r; mkdir ../root",
		"mv ../root ../r; ln -s r ../root",
		"sed -i 's/755/644/' ../manifest",
		"sed -i 's/debian13/debian12/; s/" KEY_A "/" KEY_B "/' ../world.json",
		"echo '{' >../world.json",
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const char *root = publish_world(f, KEY_A);
		assert_string_equal(use(f, f->store, KEY_A), root);
		assert_int_equal(system(arena_printf(&f->arena, "cd %s && %s", root, commands[i])),
				 0);
		assert_null(use(f, f->store, KEY_A));
		assert_int_equal(names_in(f, "quarantine"), i);
		assert_string_equal(publish_world(f, KEY_A), root);
		assert_int_equal(names_in(f, "quarantine"), i + 1);
		struct store_object o = only_object(f);
		assert_ok(store_verify(&o, test_run(), &f->err), &f->err);
	}
}

static void one_that_only_looks_changed_is_used(void **state)
{
	struct fixture *f = *state;
	const char *root = publish_world(f, KEY_A), *stamp = in_store(f, "stamps/world-" KEY_A);
	AUTO_FREE char *before = test_read(stamp);

	assert_non_null(before);
	/* being used is no change */
	assert_string_equal(use(f, f->store, KEY_A), root);
	AUTO_FREE char *used = test_read(stamp);
	assert_string_equal(used, before);
	assert_int_equal(system(arena_printf(&f->arena, "touch %s/usr/bin/tool", root)), 0);
	assert_string_equal(use(f, f->store, KEY_A), root);
	AUTO_FREE char *after = test_read(stamp);
	assert_string_not_equal(after, before);
	assert_int_equal(unlink(stamp), 0);
	assert_string_equal(use(f, f->store, KEY_A), root);
	AUTO_FREE char *again = test_read(stamp);
	assert_string_equal(again, after);
}

static void one_that_another_process_made_anew_is_used(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	const char *root = publish_world(f, KEY_A);

	assert_int_equal(system(arena_printf(&f->arena, "printf tOol >%s/usr/bin/tool", root)), 0);
	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	assert_null(use(f, other, KEY_A));
	publish_world(f, KEY_A);
	assert_string_equal(use(f, other, KEY_A), root);
	store_close(other);
}

static void a_changed_one_of_a_fallback_store(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	const char *root = publish_world(f, KEY_A);

	assert_ok(store_open(test_path("other"), test_run(), &other, &f->err), &f->err);
	assert_ok(store_add_fallback(other, f->dir, &f->err), &f->err);
	assert_string_equal(use(f, other, KEY_A), root);
	assert_int_equal(system(arena_printf(&f->arena, "printf tOol >%s/usr/bin/tool", root)), 0);
	assert_null(use(f, other, KEY_A));
	assert_int_equal(names_in(f, "quarantine"), 0);
	assert_int_equal(names_in(f, "worlds"), 1);
	store_close(other);
}

static void collected_unless_held(void **state)
{
	struct fixture *f = *state;
	const struct gc_options q = {.keep_seconds = 60, .max_bytes = -1};
	const struct timespec old[2] = {{.tv_sec = time(NULL) - 3600},
					{.tv_sec = time(NULL) - 3600}};
	struct lock hold = LOCK_NONE;
	struct gc_result r;

	publish_world(f, KEY_A);
	/* its last use is that of the facts */
	assert_ok(store_gc(f->store, &q, test_run(), &f->arena, &r, &f->err), &f->err);
	assert_int_equal(r.count, 0);
	assert_int_equal(utimensat(AT_FDCWD, in_store(f, "worlds/" KEY_A "/world.json"), old, 0),
			 0);
	assert_ok(store_world_hold(f->store, KEY_A, test_run(), &hold, &f->err), &f->err);
	assert_ok(store_gc(f->store, &q, test_run(), &f->arena, &r, &f->err), &f->err);
	assert_int_equal(r.count, 0);
	assert_int_equal(r.busy, 1);
	lock_release(&hold);
	assert_ok(store_gc(f->store, &q, test_run(), &f->arena, &r, &f->err), &f->err);
	assert_int_equal(r.count, 1);
	assert_string_equal(r.removed[0].kind, STORE_WORLD);
	assert_null(find(f, KEY_A));
	assert_int_equal(names_in(f, "worlds"), 0);
	assert_int_equal(names_in(f, "tmp"), 0);
}

static void finding_is_using(void **state)
{
	struct fixture *f = *state;
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	publish_world(f, KEY_A);
	assert_int_equal(utimensat(AT_FDCWD, in_store(f, "worlds/" KEY_A "/world.json"), old, 0),
			 0);
	assert_int_equal(only_object(f).used, 1000);
	assert_non_null(find(f, KEY_A));
	assert_true(only_object(f).used > 1000);
}

static void one_of_a_fallback_store(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	const char *root;

	publish_world(f, KEY_A);
	assert_ok(store_open(test_path("other"), test_run(), &other, &f->err), &f->err);
	assert_ok(store_add_fallback(other, f->dir, &f->err), &f->err);
	assert_ok(store_world_find(other, KEY_A, STORE_LOOK_FACTS, &f->arena, &root, &f->err),
		  &f->err);
	assert_string_equal(root, in_store(f, "worlds/" KEY_A "/root"));
	store_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(published_and_found),
		T(a_wrong_manifest_is_not_published),
		T(every_change_is_found),
		T(one_without_facts_is_not_used),
		T(collected_unless_held),
		T(finding_is_using),
		T(one_of_a_fallback_store),
		T(a_look_at_directories),
		T(a_changed_one_is_not_used),
		T(one_that_only_looks_changed_is_used),
		T(one_that_another_process_made_anew_is_used),
		T(a_changed_one_of_a_fallback_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
