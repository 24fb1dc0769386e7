#include "store_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/path.h"

static void open_makes_the_layout(void **state)
{
	struct fixture *f = *state;
	static const char *const parts[] = {"objects", "tmp", "locks", "build", "quarantine"};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		assert_true(fs_is_dir(TRUSTED, in_store(f, parts[i])));
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
	assert_true(fs_is_dir(TRUSTED, test_path("a/b/c/objects")));
}

static void open_refuses_an_unknown_format(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;

	test_write(in_store(f, "format"), "ptbuild store 2\n");
	assert_err(store_open(f->dir, test_run(), &other, &f->err), &f->err, ERR_CONFIG,
		   "has format 2, this program knows 1");
	assert_contains(f->err.hint, "--cache");
	assert_null(other);
}

static void open_refuses_a_garbled_format(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;
	static const char *const bad[] = {"",
					  "ptbuild store \n",
					  "ptbuild store 1",
					  "ptbuild store 1x\n",
					  "something\n",
					  "ptbuild store 1\nmore"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_write(in_store(f, "format"), bad[i]);
		assert_err(store_open(f->dir, test_run(), &other, &f->err), &f->err, ERR_CONFIG,
			   "format line");
	}

	assert_null(other);
}

static void open_refuses_a_strangers_directory(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;

	test_write(test_path("home/letter.txt"), "dear");
	assert_err(store_open(test_path("home"), test_run(), &other, &f->err), &f->err, ERR_CONFIG,
		   "letter.txt");
	assert_false(fs_exists(TRUSTED, test_path("home/objects")));
	assert_false(fs_exists(TRUSTED, test_path("home/format")));
}

static void open_refuses_a_file(void **state)
{
	struct fixture *f = *state;
	struct store *other = NULL;

	test_write(test_path("file"), "x");
	assert_err(store_open(test_path("file"), test_run(), &other, &f->err), &f->err, ERR_SYSTEM,
		   "file");
	assert_null(other);
}

static void assert_refused(struct fixture *f, const char *words)
{
	struct store *other = NULL;
	assert_err(store_open(f->dir, test_run(), &other, &f->err), &f->err, ERR_POLICY, words);
	assert_null(other);
}

/* What a link of that name points to would be filled, and emptied of stages that nobody holds. */
static void open_refuses_links_in_place_of_its_directories(void **state)
{
	static const char *const parts[] = {"objects", "tmp",        "locks",
					    "build",   "quarantine", "stamps"};
	struct fixture *f = *state;

	test_write(test_path("victim/letter"), "dear");
	const char *victim = arena_strdup(&f->arena, test_path("victim"));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const char *part = path_join(&f->arena, f->dir, parts[i]),
			   *away = path_join(&f->arena, f->dir, "away");
		assert_int_equal(rename(part, away), 0);
		assert_int_equal(symlink(victim, part), 0);
		assert_refused(f, "is a symbolic link");
		assert_int_equal(access(test_path("victim/letter"), F_OK), 0);
		assert_int_equal(unlink(part), 0);
		assert_int_equal(rename(away, part), 0);
	}
}

static void open_refuses_a_store_that_everybody_may_write(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(chmod(f->dir, 0777), 0);
	assert_refused(f, "world-writable");
	assert_int_equal(chmod(f->dir, 0755), 0);
}

static int open_must_fail(struct fixture *f)
{
	struct store *other = NULL;
	struct err e = {0};

	if (store_open(f->dir, test_run(), &other, &e) == 0)
		return 1;
	struct stat st;
	bool foreign = stat(f->dir, &st) == 0 && st.st_uid != geteuid();
	if (e.kind != (foreign ? ERR_POLICY : ERR_SYSTEM))
		return 2;
	if (!test_has(e.msg, foreign ? "owned by user 0, but ptbuild runs as user 65534"
				     : "Permission denied") ||
	    !test_has(e.msg, f->dir))
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

	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &path, &f->err), &f->err);
	assert_null(path);
}

static void publish_then_find(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "torch.whl", "bytes"), *found;

	assert_ok(store_find(f->store, STORE_PYENV, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_string_equal(found, path);
	char *text = test_read(arena_printf(&f->arena, "%s/torch.whl", found));
	assert_string_equal(text, "bytes");
	free(text);
}

static void publish_keeps_subdirectories(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "log/build/one.txt", "deep");

	assert_true(fs_exists(TRUSTED, arena_printf(&f->arena, "%s/log/build/one.txt", path)));
	struct store_object o = only_object(f);
	assert_ok(store_verify(&o, test_run(), &f->err), &f->err);
}

static void publish_writes_the_manifest(void **state)
{
	struct fixture *f = *state;
	const char *path = publish(f, STORE_PYENV, KEY_A, "a.txt", "hello");
	char *m = test_read(arena_printf(&f->arena, "%s/.manifest.json", path));

	assert_contains(m, "\"path\": \"a.txt\"");
	assert_contains(m, "\"size\": 5");
	assert_contains(m, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
	assert_contains(m, "\"kind\": \"pyenv\"");
	assert_contains(m, KEY_A);
	free(m);
}

static void publish_leaves_no_stage(void **state)
{
	struct fixture *f = *state;
	publish(f, STORE_PYENV, KEY_A, "a", "1");
	assert_int_equal(names_in(f, "tmp"), 0);
}

static void publish_of_a_kind_does_not_answer_for_another(void **state)
{
	struct fixture *f = *state;
	const char *found;

	publish(f, STORE_PYENV, KEY_A, "a", "1");
	assert_ok(store_find(f->store, STORE_WHEEL, KEY_A, &f->arena, &found, &f->err), &f->err);
	assert_null(found);
}

static void second_publisher_gets_the_first_object(void **state)
{
	struct fixture *f = *state;
	struct store *other;

	assert_ok(store_open(f->dir, test_run(), &other, &f->err), &f->err);
	const char *one = stage_with(f, f->store, "a", "first"),
		   *two = stage_with(f, other, "a", "second"), *p1, *p2;
	assert_ok(store_publish(f->store, STORE_PYENV, KEY_A, one, &f->arena, &p1, &f->err),
		  &f->err);
	assert_ok(store_publish(other, STORE_PYENV, KEY_A, two, &f->arena, &p2, &f->err), &f->err);
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
			if (store_open(f->dir, test_run(), &s, &e) < 0 ||
			    store_stage(s, &a, &stage, &e) < 0)
				_exit(1);
			test_write(arena_printf(&a, "%s/x", stage), "same");
			_exit(store_publish(s, STORE_PYENV, KEY_A, stage, &a, &path, &e) < 0 ? 2
											     : 0);
		}
	}

	for (int i = 0; i < 8; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}

	struct store_object o = only_object(f);
	assert_ok(store_verify(&o, test_run(), &f->err), &f->err);
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
	assert_ok(store_verify(&o, test_run(), &f->err), &f->err);
}

static void source_with_another_digest_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, "a.tar.gz", "archive"), *path = NULL;

	assert_err(store_publish(f->store, STORE_SOURCE, KEY_A, stage, &f->arena, &path, &f->err),
		   &f->err, ERR_INTEGRITY, KEY_A);
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
	assert_err(store_publish(f->store, STORE_SOURCE, key, stage, &f->arena, &path, &f->err),
		   &f->err, ERR_INTEGRITY, "one file, not 2");
}

static void empty_stage_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *stage, *path;

	assert_ok(store_stage(f->store, &f->arena, &stage, &f->err), &f->err);
	assert_err(store_publish(f->store, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err),
		   &f->err, ERR_CONFIG, "nothing to publish");
}

static void stage_with_a_link_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, "a", "1"), *path;
	const char *link = arena_printf(&f->arena, "%s/passwd", stage);

	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_err(store_publish(f->store, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err),
		   &f->err, ERR_CONFIG, "not a regular file");
}

static void stage_with_a_manifest_of_its_own_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, ".manifest.json", "{}"), *path;

	assert_err(store_publish(f->store, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err),
		   &f->err, ERR_CONFIG, "reserves");
}

static void failed_publish_may_be_tried_again(void **state)
{
	struct fixture *f = *state;
	const char *stage = stage_with(f, f->store, "a", "1"), *path;
	const char *fifo = arena_printf(&f->arena, "%s/fifo", stage);

	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_err(store_publish(f->store, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err),
		   &f->err, ERR_CONFIG, "fifo");
	assert_int_equal(unlink(fifo), 0);
	assert_ok(store_publish(f->store, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err),
		  &f->err);
}

static void bad_keys_and_kinds_are_refused(void **state)
{
	struct fixture *f = *state;
	static const char *const keys[] = {
		"",
		"abc",
		"../../../../etc/passwd",
		KEY_A "a",
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	static const char *const kinds[] = {"",        "..",  "Wheel",
					    "wheel/x", "a b", "abcdefghijklmnopqrstuvwxyzabcdefg"};
	const char *path, *stage = stage_with(f, f->store, "a", "1");
	struct lock lock = LOCK_NONE;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		assert_err(store_find(f->store, STORE_PYENV, keys[i], &f->arena, &path, &f->err),
			   &f->err, ERR_CONFIG, "not a key");
		assert_err(store_publish(f->store, STORE_PYENV, keys[i], stage, &f->arena, &path,
					 &f->err),
			   &f->err, ERR_CONFIG, "not a key");
		assert_err(store_lock(f->store, STORE_PYENV, keys[i], test_run(), &lock, &f->err),
			   &f->err, ERR_CONFIG, "not a key");
		assert_err(store_build_dir(f->store, keys[i], &f->arena, &path, &f->err), &f->err,
			   ERR_CONFIG, "not a key");
		struct store_object o = {.kind = STORE_PYENV, .key = keys[i], .path = f->dir};
		assert_err(store_quarantine(f->store, &o, &f->err), &f->err, ERR_CONFIG,
			   "not a key");
		assert_err(store_verify(&o, test_run(), &f->err), &f->err, ERR_CONFIG, "not a key");
	}

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		assert_err(store_find(f->store, kinds[i], KEY_A, &f->arena, &path, &f->err),
			   &f->err, ERR_CONFIG, "not a kind");
	assert_true(fs_is_dir(TRUSTED, f->dir));
}

static void stages_are_different_directories(void **state)
{
	struct fixture *f = *state;
	const char *one, *two;

	assert_ok(store_stage(f->store, &f->arena, &one, &f->err), &f->err);
	assert_ok(store_stage(f->store, &f->arena, &two, &f->err), &f->err);
	assert_string_not_equal(one, two);
	assert_true(fs_is_dir(TRUSTED, one));
	assert_true(fs_is_dir(TRUSTED, two));
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
	assert_true(fs_exists(TRUSTED, arena_printf(&f->arena, "%s/a", stage)));
	assert_ok(store_publish(f->store, STORE_PYENV, KEY_A, stage, &f->arena, &path, &f->err),
		  &f->err);
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
		char ok = store_open(f->dir, test_run(), &s, &e) == 0 &&
					  store_stage(s, &a, &stage, &e) == 0
				  ? 'y'
				  : 'n';
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
		if (store_publish(s, STORE_PYENV, key, stage, &a, &path, &e) < 0)
			_exit(3);
		if (n == 0 && write(ready, "x", 1) != 1)
			_exit(5);
		struct store_object o = {.kind = STORE_PYENV, .key = key, .path = path};
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
			assert_ok(store_verify(&objects[i], test_run(), &f->err), &f->err);
		for (size_t i = 0; i < count; i++)
			assert_ok(store_remove(s, &objects[i], &f->err), &f->err);
		store_close(s);
		assert_int_equal(names_in(f, "tmp"), 0);
		seen += count;
	}

	assert_true(seen >= 25);
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
	assert_err(store_open(f->dir, &run, &other, &f->err), &f->err, ERR_INTERRUPTED,
		   "interrupted");
	assert_null(other);
	close(fds[0]);
	close(fds[1]);
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

		if (fs_write(TRUSTED, arena_printf(&a, "%s/file", stage), text, (size_t)n, 0644,
			     &e) < 0 ||
		    store_publish(p->f->store, STORE_PYENV, key, stage, &a, &path, &e) < 0)
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

	/* What others put there is none of its objects. */
	test_write(in_store(f, "objects/stray"), "");
	assert_ok(store_list(f->store, &f->arena, &objects, &count, &f->err), &f->err);
	assert_int_equal(count, 80);
	assert_int_equal(names_in(f, "tmp"), 0);
}

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
		T(open_refuses_links_in_place_of_its_directories),
		T(open_refuses_a_store_that_everybody_may_write),
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
		T(open_can_be_interrupted),
		T(threads_share_a_handle),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
