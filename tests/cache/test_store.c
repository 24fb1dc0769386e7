#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/fs.h"
#include "cache/gc.h"
#include "cache/store.h"

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

struct fixture {
	struct arena arena;
	struct store *store;
	struct err err;
	char dir[512];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	if (!f)
		return -1;
	test_dir();
	snprintf(f->dir, sizeof(f->dir), "%s", test_path("store"));
	*state = f;
	return store_open(f->dir, test_run(), &f->store, &f->err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	store_close(f->store);
	arena_release(&f->arena);
	free(f);
	return test_teardown(state);
}

static const char *in_store(struct fixture *f, const char *rel)
{
	return arena_printf(&f->arena, "%s/%s", f->dir, rel);
}

static const char *stage_with(struct fixture *f, struct store *s, const char *name, const char *text)
{
	const char *stage;
	assert_ok(store_stage(s, &f->arena, &stage, &f->err), &f->err);
	test_write(arena_printf(&f->arena, "%s/%s", stage, name), text);
	return stage;
}

static const char *publish(struct fixture *f, const char *kind, const char *key, const char *name, const char *text)
{
	const char *stage = stage_with(f, f->store, name, text), *path;
	assert_ok(store_publish(f->store, kind, key, stage, &f->arena, &path, &f->err), &f->err);
	return path;
}

static struct store_object only_object(struct fixture *f)
{
	struct store_object *objects;
	size_t count;
	assert_ok(store_list(f->store, &f->arena, &objects, &count, &f->err), &f->err);
	assert_int_equal(count, 1);
	return objects[0];
}

static size_t names_in(struct fixture *f, const char *rel)
{
	struct strlist names = {0};
	assert_ok(fs_list(in_store(f, rel), &f->arena, &names, &f->err), &f->err);
	return names.count;
}

static void set_used(const char *object, time_t when)
{
	char manifest[1024];
	snprintf(manifest, sizeof(manifest), "%s/.manifest.json", object);
	struct timespec t[2] = {{.tv_sec = when}, {.tv_sec = when}};
	assert_int_equal(utimensat(AT_FDCWD, manifest, t, 0), 0);
}

static void open_makes_the_layout(void **state)
{
	struct fixture *f = *state;
	static const char *const parts[] = {"objects", "tmp", "locks", "build", "quarantine"};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		assert_true(fs_is_dir(in_store(f, parts[i])));
	char *format = test_read(in_store(f, "format"));
	assert_string_equal(format, "ptbuild store 1\n");
	free(format);
	assert_string_equal(store_dir(f->store), f->dir);
}

static void open_twice_is_fine(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	store_close(other);
}

static void open_makes_parents(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	assert_ok(store_open(test_path("a/b/c"), test_run(), &other, &f->err), &f->err);
	store_close(other);
	assert_true(fs_is_dir(test_path("a/b/c/objects")));
}

static void open_refuses_an_unknown_format(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;
	test_write(in_store(f, "format"), "ptbuild store 2\n");
	assert_err(store_open(f->dir, test_run(), &other, &f->err), &f->err, ERR_CONFIG, "has format 2, this program knows 1");
	assert_contains(f->err.hint, "--cache");
	assert_null(other);
}

static void open_refuses_a_garbled_format(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;
	static const char *const bad[] = {
		"", "ptbuild store \n", "ptbuild store 1", "ptbuild store 1x\n", "something\n", "ptbuild store 1\nmore"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_write(in_store(f, "format"), bad[i]);
		assert_err(store_open(f->dir, test_run(), &other, &f->err), &f->err, ERR_CONFIG, "format line");
	}
	assert_null(other);
}

static void open_refuses_a_strangers_directory(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;
	test_write(test_path("home/letter.txt"), "dear");
	assert_err(store_open(test_path("home"), test_run(), &other, &f->err), &f->err, ERR_CONFIG, "letter.txt");
	assert_false(fs_exists(test_path("home/objects")));
	assert_false(fs_exists(test_path("home/format")));
}

static void open_refuses_a_file(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;
	test_write(test_path("file"), "x");
	assert_err(store_open(test_path("file"), test_run(), &other, &f->err), &f->err, ERR_SYSTEM, "file");
	assert_null(other);
}

/* Root may write everywhere, so the child becomes somebody else first. */
static int in_child_as_nobody(int (*fn)(struct fixture *), struct fixture *f)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
			_exit(99);
		_exit(fn(f));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int open_must_fail(struct fixture *f)
{
	struct store *other = NULL;
	struct err e = {0};
	if (store_open(f->dir, test_run(), &other, &e) == 0)
		return 1;
	if (e.kind != ERR_SYSTEM)
		return 2;
	if (!test_has(e.msg, "Permission denied") || !test_has(e.msg, f->dir))
		return 3;
	return test_has(e.hint, "--cache") ? 0 : 4;
}

static void open_of_a_read_only_store_is_a_clear_error(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(chmod(test_path("."), 0755), 0);
	assert_int_equal(chmod(in_store(f, "tmp"), 0555), 0);
	assert_int_equal(chmod(f->dir, 0555), 0);
	assert_int_equal(in_child_as_nobody(open_must_fail, f), 0);
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(chmod(in_store(f, "tmp"), 0755), 0);
}

static void open_of_a_new_store_where_nothing_may_be_written(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(mkdir(test_path("closed"), 0755), 0);
	assert_int_equal(chmod(test_path("."), 0755), 0);
	assert_int_equal(chmod(test_path("closed"), 0555), 0);
	snprintf(f->dir, sizeof(f->dir), "%s", test_path("closed/store"));
	assert_int_equal(in_child_as_nobody(open_must_fail, f), 0);
	assert_int_equal(chmod(test_path("closed"), 0755), 0);
}

static void find_of_nothing_is_null(void **state)
{
	struct fixture *f = *state;
	const char *path = "unset";
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &path, &f->err), &f->err);
	assert_null(path);
}

static void publish_then_find(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "torch.whl", "bytes"), *found;
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_string_equal(found, path);
	char *text = test_read(arena_printf(&f->arena, "%s/torch.whl", found));
	assert_string_equal(text, "bytes");
	free(text);
}

static void publish_keeps_subdirectories(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "log/build/one.txt", "deep");
	assert_true(fs_exists(arena_printf(&f->arena, "%s/log/build/one.txt", path)));
	struct store_object o = only_object(f);
	assert_ok(store_verify(f->store, &o, test_run(), &f->err), &f->err);
}

static void publish_writes_the_manifest(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "a.txt", "hello");
	char *m = test_read(arena_printf(&f->arena, "%s/.manifest.json", path));
	assert_contains(m, "\"path\": \"a.txt\"");
	assert_contains(m, "\"size\": 5");
	assert_contains(m, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
	assert_contains(m, "\"kind\": \"wheel\"");
	assert_contains(m, KEY_A);
	free(m);
}

static void publish_leaves_no_stage(void **state)
{
	struct fixture *f = *state;
	publish(f, STORE_WHEEL, KEY_A, "a", "1");
	assert_int_equal(names_in(f, "tmp"), 0);
}

static void publish_of_a_kind_does_not_answer_for_another(void **state)
{
	struct fixture *f = *state;
	const char *found;
	publish(f, STORE_WHEEL, KEY_A, "a", "1");
	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
}

static void second_publisher_gets_the_first_object(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	const char *one = stage_with(f, f->store, "a", "first"), *two = stage_with(f, other, "a", "second"), *p1, *p2;
	assert_ok(store_publish(f->store, STORE_WHEEL, KEY_A, one, &f->arena, &p1, &f->err), &f->err);
	assert_ok(store_publish(other, STORE_WHEEL, KEY_A, two, &f->arena, &p2, &f->err), &f->err);
	store_close(other);
	assert_string_equal(p1, p2);
	char *text = test_read(arena_printf(&f->arena, "%s/a", p2));
	assert_string_equal(text, "first");
	free(text);
	assert_int_equal(names_in(f, "tmp"), 0);
}

static void two_processes_publish_the_same_key(void **state)
{
	struct fixture *f = *state;
	pid_t pids[8];
	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			struct store *s;
			struct arena a = {0};
			struct err e = {0};
			const char *stage, *path;
			if (store_open(f->dir, test_run(), &s, &e) < 0 || store_stage(s, &a, &stage, &e) < 0)
				_exit(1);
			test_write(arena_printf(&a, "%s/x", stage), "same");
			_exit(store_publish(s, STORE_WHEEL, KEY_A, stage, &a, &path, &e) < 0 ? 2 : 0);
		}
	}
	for (int i = 0; i < 8; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	struct store_object o = only_object(f);
	assert_ok(store_verify(f->store, &o, test_run(), &f->err), &f->err);
	assert_int_equal(names_in(f, "quarantine"), 0);
}

static void source_key_is_the_digest(void **state)
{
	struct fixture *f = *state;
	char key[DIGEST_HEX_LEN + 1];
	digest_data("archive", 7, key);
	publish(f, STORE_SOURCE, key, "a.tar.gz", "archive");
	struct store_object o = only_object(f);
	assert_string_equal(o.key, key);
	assert_ok(store_verify(f->store, &o, test_run(), &f->err), &f->err);
}

static void source_with_another_digest_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, "a.tar.gz", "archive"), *path = NULL;
	assert_err(store_publish(f->store, STORE_SOURCE, KEY_A, stage, &f->arena, &path, &f->err), &f->err, ERR_INTEGRITY, KEY_A);
	assert_contains(f->err.msg, "a.tar.gz");
	assert_null(path);
	assert_ok(store_find(f->store, STORE_SOURCE, KEY_A, &f->arena, &path, &f->err), &f->err);
	assert_null(path);
}

static void source_of_two_files_is_refused(void **state)
{
	struct fixture *f = *state;
	char key[DIGEST_HEX_LEN + 1];
	digest_data("archive", 7, key);
	const char *stage = stage_with(f, f->store, "a", "archive"), *path;
	test_write(arena_printf(&f->arena, "%s/b", stage), "archive");
	assert_err(store_publish(f->store, STORE_SOURCE, key, stage, &f->arena, &path, &f->err), &f->err, ERR_INTEGRITY, "one file, not 2");
}

static void empty_stage_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *stage, *path;
	assert_ok(store_stage(f->store, &f->arena, &stage, &f->err), &f->err);
	assert_err(store_publish(f->store, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err), &f->err, ERR_CONFIG,
		   "nothing to publish");
}

static void stage_with_a_link_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, "a", "1"), *path;
	const char *link = arena_printf(&f->arena, "%s/passwd", stage);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_err(store_publish(f->store, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err), &f->err, ERR_CONFIG, "no regular file");
}

static void stage_with_a_manifest_of_its_own_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, ".manifest.json", "{}"), *path;
	assert_err(store_publish(f->store, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err), &f->err, ERR_CONFIG, "keeps for itself");
}

static void failed_publish_may_be_tried_again(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, "a", "1"), *path;
	const char *fifo = arena_printf(&f->arena, "%s/fifo", stage);
	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_err(store_publish(f->store, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err), &f->err, ERR_CONFIG, "fifo");
	assert_int_equal(unlink(fifo), 0);
	assert_ok(store_publish(f->store, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err), &f->err);
}

static void bad_keys_and_kinds_are_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const keys[] = {"",
					   "abc",
					   "../../../../etc/passwd",
					   KEY_A "a",
					   "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
					   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	static const char *const kinds[] = {"", "..", "Wheel", "wheel/x", "a b", "abcdefghijklmnopqrstuvwxyzabcdefg"};
	const char *path, *stage = stage_with(f, f->store, "a", "1");
	struct lock lock = LOCK_NONE;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		assert_err(store_find(f->store, STORE_WHEEL, keys[i], &f->arena, &path, &f->err), &f->err, ERR_CONFIG, "no key");
		assert_err(store_publish(f->store, STORE_WHEEL, keys[i], stage, &f->arena, &path, &f->err), &f->err, ERR_CONFIG, "no key");
		assert_err(store_lock(f->store, STORE_WHEEL, keys[i], test_run(), &lock, &f->err), &f->err, ERR_CONFIG, "no key");
		assert_err(store_build_dir(f->store, keys[i], &f->arena, &path, &f->err), &f->err, ERR_CONFIG, "no key");
		struct store_object o = {.kind = STORE_WHEEL, .key = keys[i], .path = f->dir};
		assert_err(store_remove(f->store, &o, &f->err), &f->err, ERR_CONFIG, "no key");
		assert_err(store_quarantine(f->store, &o, &f->err), &f->err, ERR_CONFIG, "no key");
		assert_err(store_verify(f->store, &o, test_run(), &f->err), &f->err, ERR_CONFIG, "no key");
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		assert_err(store_find(f->store, kinds[i], KEY_A, &f->arena, &path, &f->err), &f->err, ERR_CONFIG, "no kind");
	assert_true(fs_is_dir(f->dir));
}

static void stages_are_different_directories(void **state)
{
	struct fixture *f = *state;
	const char *one, *two;
	assert_ok(store_stage(f->store, &f->arena, &one, &f->err), &f->err);
	assert_ok(store_stage(f->store, &f->arena, &two, &f->err), &f->err);
	assert_string_not_equal(one, two);
	assert_true(fs_is_dir(one));
	assert_true(fs_is_dir(two));
}

static void dropped_stage_is_gone(void **state)
{
	struct fixture *f = *state;
	store_drop_stage(f->store, stage_with(f, f->store, "deep/file", "x"));
	assert_int_equal(names_in(f, "tmp"), 0);
}

static void close_removes_its_stages(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	for (int i = 0; i < 20; i++)
		stage_with(f, other, "a", "x");
	assert_int_equal(names_in(f, "tmp"), 40);
	store_close(other);
	assert_int_equal(names_in(f, "tmp"), 0);
}

static void stage_of_a_living_owner_stays(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, "a", "mine"), *path;
	struct store *other;
	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	store_close(other);
	assert_true(fs_exists(arena_printf(&f->arena, "%s/a", stage)));
	assert_ok(store_publish(f->store, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err), &f->err);
}

static void stage_of_a_living_process_stays_until_it_dies(void **state)
{
	struct fixture *f = *state;
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct store *s;
		struct arena a = {0};
		struct err e = {0};
		const char *stage;
		char ok = store_open(f->dir, test_run(), &s, &e) == 0 && store_stage(s, &a, &stage, &e) == 0 ? 'y' : 'n';
		if (write(ready[1], &ok, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	char ok = 0;
	struct store *other;
	assert_int_equal(read(ready[0], &ok, 1), 1);
	assert_int_equal(ok, 'y');
	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	store_close(other);
	assert_int_equal(names_in(f, "tmp"), 2);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	store_close(other);
	assert_int_equal(names_in(f, "tmp"), 0);
	close(ready[0]);
	close(ready[1]);
}

static void leftovers_without_a_lock_go(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	test_write(in_store(f, "tmp/1234567812345678/half.bin"), "half");
	test_write(in_store(f, "tmp/stray"), "stray");
	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	store_close(other);
	assert_int_equal(names_in(f, "tmp"), 0);
}

/* Says so on `ready` once the first object is there. */
static void publish_for_ever(const char *dir, int ready)
{
	struct store *s;
	struct arena a = {0};
	struct err e = {0};
	if (store_open(dir, test_run(), &s, &e) < 0)
		_exit(1);
	for (unsigned n = 0;; n++) {
		const char *stage, *path;
		char text[64], key[DIGEST_HEX_LEN + 1];
		int len = snprintf(text, sizeof(text), "%d %u", (int)getpid(), n);
		digest_data(text, (size_t)len, key);
		if (store_stage(s, &a, &stage, &e) < 0)
			_exit(2);
		for (int i = 0; i < 4; i++)
			test_write(arena_printf(&a, "%s/d%d/file%d", stage, i % 2, i), text);
		if (store_publish(s, STORE_WHEEL, key, stage, &a, &path, &e) < 0)
			_exit(3);
		if (n == 0 && write(ready, "x", 1) != 1)
			_exit(5);
		struct store_object o = {.kind = STORE_WHEEL, .key = key, .path = path};
		if (n % 3 == 2 && store_remove(s, &o, &e) < 0)
			_exit(4);
	}
}

static void kill_at_any_moment_leaves_whole_objects(void **state)
{
	struct fixture *f = *state;
	size_t seen = 0;
	srand(20261120);
	for (int round = 0; round < 50; round++) {
		int ready[2];
		char byte;
		assert_int_equal(pipe(ready), 0);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			publish_for_ever(f->dir, ready[1]);
		if (round % 2) /* on a busy machine the child may not have come far by itself */
			assert_int_equal(read(ready[0], &byte, 1), 1);
		usleep((useconds_t)(1000 + rand() % 40000));
		assert_int_equal(kill(pid, SIGKILL), 0);
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		close(ready[0]);
		close(ready[1]);
		struct store *s;
		struct store_object *objects;
		size_t count;
		assert_ok(store_open(f->dir, test_run(), &s, &f->err), &f->err);
		assert_ok(store_list(s, &f->arena, &objects, &count, &f->err), &f->err);
		for (size_t i = 0; i < count; i++)
			assert_ok(store_verify(s, &objects[i], test_run(), &f->err), &f->err);
		for (size_t i = 0; i < count; i++)
			assert_ok(store_remove(s, &objects[i], &f->err), &f->err);
		store_close(s);
		assert_int_equal(names_in(f, "tmp"), 0);
		seen += count;
	}
	assert_true(seen >= 25);
}

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
	const char *path = publish(f, STORE_WHEEL, KEY_A, "w.whl", "good bytes");
	test_write(arena_printf(&f->arena, "%s/w.whl", path), "good bytez");
	struct store_object o = only_object(f);
	assert_err(store_verify(f->store, &o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "w.whl");
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
	const char *path = publish(f, STORE_WHEEL, KEY_A, "w.whl", "x");
	assert_int_equal(unlink(arena_printf(&f->arena, "%s/w.whl", path)), 0);
	struct store_object o = only_object(f);
	assert_err(store_verify(f->store, &o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "missing");
}

static void verify_finds_an_extra_file(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "w.whl", "x");
	test_write(arena_printf(&f->arena, "%s/dir/intruder", path), "x");
	struct store_object o = only_object(f);
	assert_err(store_verify(f->store, &o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "dir/intruder");
}

static void verify_finds_a_file_that_became_a_link(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "w.whl", "x"), *file = arena_printf(&f->arena, "%s/w.whl", path);
	test_write(test_path("outside"), "x");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(symlink(test_path("outside"), file), 0);
	struct store_object o = only_object(f);
	assert_err(store_verify(f->store, &o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "no regular file");
}

static void verify_finds_a_broken_manifest(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "w.whl", "x");
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		"[]",
		"{\"format\": 1, \"kind\": \"wheel\", \"key\": \"" KEY_B "\", \"files\": [{}]}",
		"{\"format\": 2, \"kind\": \"wheel\", \"key\": \"" KEY_A "\", \"files\": [{}]}",
		"{\"format\": 1, \"kind\": \"wheel\", \"key\": \"" KEY_A "\", \"files\": []}",
		"{\"format\": 1, \"kind\": \"wheel\", \"key\": \"" KEY_A "\", \"files\": [{}]}",
		"{\"format\": 1, \"kind\": \"wheel\", \"key\": \"" KEY_A
		"\", \"files\": [{\"path\": \"../x\", \"size\": 1, \"sha256\": \"" KEY_A "\"}]}",
		"{\"format\": 1, \"kind\": \"wheel\", \"key\": \"" KEY_A
		"\", \"files\": [{\"path\": \"w.whl\", \"size\": 1, \"sha256\": \"12\"}]}",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_write(arena_printf(&f->arena, "%s/.manifest.json", path), bad[i]);
		struct store_object o = only_object(f);
		assert_err(store_verify(f->store, &o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "manifest");
	}
}

static void verify_needs_the_manifest(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "w.whl", "x"), *found;
	assert_int_equal(unlink(arena_printf(&f->arena, "%s/.manifest.json", path)), 0);
	struct store_object o = only_object(f);
	assert_err(store_verify(f->store, &o, test_run(), &f->err), &f->err, ERR_INTEGRITY, "missing");
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
}

static void half_an_object_gives_way_to_a_publisher(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "w.whl", "x"), *found;
	assert_int_equal(unlink(arena_printf(&f->arena, "%s/.manifest.json", path)), 0);
	publish(f, STORE_WHEEL, KEY_A, "w.whl", "anew");
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &found, &f->err), &f->err);
	char *text = test_read(arena_printf(&f->arena, "%s/w.whl", found));
	assert_string_equal(text, "anew");
	free(text);
	assert_int_equal(names_in(f, "quarantine"), 1);
}

static void verify_can_be_interrupted(void **state)
{
	struct fixture *f = *state;
	int fds[2];
	publish(f, STORE_WHEEL, KEY_A, "w.whl", "x");
	struct store_object o = only_object(f);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	struct run run = *test_run();
	run.cancel_fd = fds[0];
	assert_err(store_verify(f->store, &o, &run, &f->err), &f->err, ERR_INTERRUPTED, "interrupted");
	close(fds[0]);
	close(fds[1]);
}

static void quarantine_moves_the_object_away(void **state)
{
	struct fixture *f = *state;
	const char *found;
	publish(f, STORE_WHEEL, KEY_A, "w.whl", "x");
	struct store_object o = only_object(f);
	assert_ok(store_quarantine(f->store, &o, &f->err), &f->err);
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
	assert_int_equal(names_in(f, "quarantine"), 1);
	publish(f, STORE_WHEEL, KEY_A, "w.whl", "x");
	assert_ok(store_quarantine(f->store, &o, &f->err), &f->err);
	assert_int_equal(names_in(f, "quarantine"), 2);
}

static void quarantine_of_nothing_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct store_object o = {.kind = STORE_WHEEL, .key = KEY_A};
	assert_err(store_quarantine(f->store, &o, &f->err), &f->err, ERR_SYSTEM, KEY_A);
	assert_int_equal(names_in(f, "quarantine"), 0);
}

static void remove_deletes_the_object(void **state)
{
	struct fixture *f = *state;
	const char *found;
	publish(f, STORE_WHEEL, KEY_A, "w.whl", "x");
	struct store_object o = only_object(f);
	assert_ok(store_remove(f->store, &o, &f->err), &f->err);
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
	assert_int_equal(names_in(f, "tmp"), 0);
	assert_err(store_remove(f->store, &o, &f->err), &f->err, ERR_SYSTEM, "cannot remove");
}

static void find_marks_the_use(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_WHEEL, KEY_A, "w.whl", "x"), *found;
	set_used(path, 1000000);
	assert_int_equal(only_object(f).used, 1000000);
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_true(only_object(f).used >= time(NULL) - 60);
}

static void lock_keeps_others_out(void **state)
{
	struct fixture *f = *state;
	struct lock lock = LOCK_NONE, second = LOCK_NONE;
	bool got = true;
	assert_ok(store_lock(f->store, STORE_WHEEL, KEY_A, test_run(), &lock, &f->err), &f->err);
	const char *path = in_store(f, "locks/wheel-" KEY_A);
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
	assert_true(fs_exists(arena_printf(&f->arena, "%s/obj.o", two)));
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
	int rc = store_publish(f->store, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(rc, -1);
	assert_int_equal(f->err.kind, ERR_SYSTEM);
	assert_contains(f->err.msg, "manifest");
	assert_null(path);
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
	assert_ok(store_publish(f->store, STORE_WHEEL, KEY_A, stage, &f->arena, &path, &f->err), &f->err);
}

static void open_can_be_interrupted(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;
	int fds[2];
	test_write(in_store(f, "tmp/left/over"), "x");
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	struct run run = *test_run();
	run.cancel_fd = fds[0];
	assert_err(store_open(f->dir, &run, &other, &f->err), &f->err, ERR_INTERRUPTED, "interrupted");
	assert_null(other);
	close(fds[0]);
	close(fds[1]);
}

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
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = 0, .max_bytes = -1, .dry_run = true});
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
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = 0, .max_bytes = 0, .grace_seconds = 2500});
	assert_int_equal(r.count, 1);
	assert_string_equal(r.removed[0].key, KEY_A);
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
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = 0, .max_bytes = -1, .now = time(NULL) + 1000});
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
	struct gc_result r = gc(f, (struct gc_options){.keep_seconds = 0, .max_bytes = -1, .now = time(NULL) + 1000});
	lock_release(&lock);
	assert_int_equal(r.count, 1);
	assert_string_equal(r.removed[0].kind, "partial");
	assert_string_equal(r.removed[0].key, KEY_B);
	assert_true(fs_exists(in_store(f, "partial/" KEY_A)));
}

struct publisher {
	struct fixture *f;
	int number;
	int failed;
};

static void *publish_many(void *user)
{
	struct publisher *p = user;
	struct arena a = {0};
	struct err e = {0};
	for (int i = 0; i < 20; i++) {
		const char *stage, *path;
		char text[32], key[DIGEST_HEX_LEN + 1];
		int n = snprintf(text, sizeof(text), "%d %d", p->number, i);
		digest_data(text, (size_t)n, key);
		if (store_stage(p->f->store, &a, &stage, &e) < 0) {
			p->failed++;
			continue;
		}
		if (fs_write_atomic(arena_printf(&a, "%s/file", stage), text, (size_t)n, 0644, &e) < 0 ||
		    store_publish(p->f->store, STORE_WHEEL, key, stage, &a, &path, &e) < 0)
			p->failed++;
	}
	arena_release(&a);
	return NULL;
}

static void threads_share_a_handle(void **state)
{
	struct fixture *f = *state;
	struct publisher p[4];
	pthread_t ids[4];
	struct store_object *objects;
	size_t count;
	for (int i = 0; i < 4; i++) {
		p[i] = (struct publisher){f, i, 0};
		assert_int_equal(pthread_create(&ids[i], NULL, publish_many, &p[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(ids[i], NULL), 0);
		assert_int_equal(p[i].failed, 0);
	}
	assert_ok(store_list(f->store, &f->arena, &objects, &count, &f->err), &f->err);
	assert_int_equal(count, 80);
	assert_int_equal(names_in(f, "tmp"), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(open_makes_the_layout),
		T(open_twice_is_fine),
		T(open_makes_parents),
		T(open_refuses_an_unknown_format),
		T(open_refuses_a_garbled_format),
		T(open_refuses_a_strangers_directory),
		T(open_refuses_a_file),
		T(open_of_a_read_only_store_is_a_clear_error),
		T(open_of_a_new_store_where_nothing_may_be_written),
		T(find_of_nothing_is_null),
		T(publish_then_find),
		T(publish_keeps_subdirectories),
		T(publish_writes_the_manifest),
		T(publish_leaves_no_stage),
		T(publish_of_a_kind_does_not_answer_for_another),
		T(second_publisher_gets_the_first_object),
		T(two_processes_publish_the_same_key),
		T(source_key_is_the_digest),
		T(source_with_another_digest_is_refused),
		T(source_of_two_files_is_refused),
		T(empty_stage_is_refused),
		T(stage_with_a_link_is_refused),
		T(stage_with_a_manifest_of_its_own_is_refused),
		T(failed_publish_may_be_tried_again),
		T(bad_keys_and_kinds_are_refused),
		T(stages_are_different_directories),
		T(dropped_stage_is_gone),
		T(close_removes_its_stages),
		T(stage_of_a_living_owner_stays),
		T(stage_of_a_living_process_stays_until_it_dies),
		T(leftovers_without_a_lock_go),
		T(kill_at_any_moment_leaves_whole_objects),
		T(list_is_sorted_and_complete),
		T(list_of_an_empty_store),
		T(verify_finds_a_flipped_byte),
		T(verify_finds_a_missing_file),
		T(verify_finds_an_extra_file),
		T(verify_finds_a_file_that_became_a_link),
		T(verify_finds_a_broken_manifest),
		T(verify_needs_the_manifest),
		T(half_an_object_gives_way_to_a_publisher),
		T(verify_can_be_interrupted),
		T(quarantine_moves_the_object_away),
		T(quarantine_of_nothing_is_an_error),
		T(remove_deletes_the_object),
		T(find_marks_the_use),
		T(lock_keeps_others_out),
		T(build_dir_is_made_and_kept),
		T(full_disk_publishes_nothing),
		T(open_can_be_interrupted),
		T(gc_by_age_removes_the_unused),
		T(gc_by_size_removes_the_oldest_first),
		T(gc_without_rules_removes_nothing),
		T(gc_dry_run_only_tells),
		T(gc_leaves_a_locked_object),
		T(gc_grace_protects_what_was_just_used),
		T(gc_takes_build_trees_and_quarantine),
		T(gc_takes_broken_downloads_that_nobody_resumes),
		T(threads_share_a_handle),
	};
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
