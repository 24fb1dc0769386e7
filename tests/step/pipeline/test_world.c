/* A world in the store: made once by whoever asks, whole or
 * not at all whatever is killed, the same for every user. */
#include "../world/deb_make.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store.h"
#include "core/world/world.h"
#include "step/pipeline/make_world.h"

enum { PACKAGES = 24, FILES = 12, KILLS = 20 };

static struct arena arena;
static struct err err;
static const char *profiles, *mirror;

static const char *here(const char *name)
{
	return arena_strdup(&arena, test_path("%s", name));
}

/* A package of some files, in the mirror; its line of the lock. */
static void add_package(struct buf *lock, unsigned i)
{
	AUTO_BUF struct buf ar = {0};
	struct deb_entry e[FILES];
	const char *name = arena_printf(&arena, "p%03u", i), *control;
	char sha[65];

	for (unsigned k = 0; k < FILES; k++)
		e[k] = (struct deb_entry){.name = arena_printf(&arena, "./lib/%s/%u", name, k),
					  .size = k == 0 ? 1 << 18 : 0,
					  .data = name};
	control = arena_printf(&arena, "Package: %s\nVersion: 1\nArchitecture: all\n", name);
	deb_bytes(&ar, control, e, FILES, i % 2 ? XZ : ZST);
	digest_data(ar.data, ar.len, sha);
	test_write_bytes(arena_printf(&arena, "%s/%s/%s_1_all.deb", mirror, sha, name), ar.data,
			 ar.len);
	buf_printf(lock, "deb %s 1 all %zu %s pool/%s_1_all.deb\n", name, ar.len, sha, name);
}

static void write_lock(const char *entries, const char *tree)
{
	const struct world_part *p;
	char asked[65], other[65];

	assert_ok(world_part_load(profiles, "toy", &arena, &p, &err), &err);
	world_part_asked(p, asked);
	digest_data("release", 7, other);
	test_write(
		arena_printf(&arena, "%s/worlds/toy.x86_64-linux.lock", profiles),
		arena_printf(
			&arena,
			"ptbuild lock 1\npart toy x86_64-linux\nasked %s\narchive debian trixie %s "
			"2026-01-01T00:00:00Z\n%s%s%s%s",
			asked, other, entries, tree ? "tree " : "", tree ? tree : "",
			tree ? "\n" : ""));
}

static struct buf lock_lines;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	assert_int_equal(chmod(test_path("."), 0755), 0);
	profiles = here("profiles");
	mirror = here("mirror");
	test_write(arena_printf(&arena, "%s/worlds/toy.yaml", profiles),
		   "sources: a test\npart: toy\nkind: base\nsuite: trixie\ncomponents: "
		   "[main]\npython: \"3.13\"\n"
		   "glibc: \"2.41\"\npackages: [p000]\nlinks:\n  - {path: usr/bin/x, to: y, why: a "
		   "test}\n");
	buf_reset(&lock_lines);
	for (unsigned i = 0; i < PACKAGES; i++)
		add_package(&lock_lines, i);
	write_lock(buf_cstr(&lock_lines), NULL);
	return 0;
}

static int teardown(void **state)
{
	buf_release(&lock_lines);
	arena_release(&arena);
	return test_teardown(state);
}

static int ensure(const char *dir, struct world_result *ret, struct err *e)
{
	struct world_request q = {
		.run = test_run(), .profiles = profiles, .jobs = 2, .fetch = {.offline = true}};
	struct store *s = NULL;

	strlist_ref(&q.fetch.mirrors, &arena, mirror);
	int rc = store_open(dir, test_run(), &s, e);
	q.store = s;
	if (rc == 0)
		rc = world_load(profiles, "toy", "x86_64-linux", &arena, &q.world, e);
	if (rc == 0)
		rc = world_ensure(&q, &arena, ret, e);
	store_close(s);
	return rc;
}

/* The same in another process. */
static pid_t start(const char *dir, uid_t user, mode_t mask)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	struct world_result r;
	struct err e = {0};
	umask(mask);
	if (user && (setgroups(0, NULL) < 0 || setgid(user) < 0 || setuid(user) < 0))
		_exit(99);
	_exit(ensure(dir, &r, &e) < 0 ? 1 : r.hit ? 10 : 11);
}

static int status_of(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* All worlds of the store are whole; how many. */
static size_t check_store(const char *dir)
{
	struct store *s;
	struct store_checks r;
	struct store_object *o;
	size_t count, worlds = 0;

	assert_ok(store_open(dir, test_run(), &s, &err), &err);
	assert_ok(store_verify_all(s, false, 2, test_run(), &arena, &r, &err), &err);
	assert_int_equal(r.wrong, 0);
	assert_ok(store_list(s, &arena, &o, &count, &err), &err);
	for (size_t i = 0; i < count; i++)
		worlds += strcmp(o[i].kind, STORE_WORLD) == 0;
	assert_int_equal(test_count_entries(arena_printf(&arena, "%s/tmp", dir)), 0);
	store_close(s);
	return worlds;
}

static char *manifest_of(const char *dir, const char *key)
{
	return test_read(arena_printf(&arena, "%s/worlds/%s/manifest", dir, key));
}

static void made_then_found(void **state)
{
	struct world_result r, again;
	const char *dir = here("store"), *found;
	const struct world *w;
	struct store *s;

	(void)state;
	assert_ok(ensure(dir, &r, &err), &err);
	assert_false(r.hit);
	assert_int_equal(r.fetched.downloaded, PACKAGES);
	assert_true(fs_exists(TRUSTED, arena_printf(&arena, "%s/usr/lib/p000/0", r.dir)));
	assert_ok(ensure(dir, &again, &err), &err);
	assert_true(again.hit);
	assert_string_equal(again.dir, r.dir);
	assert_int_equal(check_store(dir), 1);
	assert_ok(store_open(dir, test_run(), &s, &err), &err);
	assert_ok(world_load(profiles, "toy", "x86_64-linux", &arena, &w, &err), &err);
	assert_ok(store_world_find(s, w->key, STORE_LOOK_FACTS, &arena, &found, &err), &err);
	assert_string_equal(found, r.dir);
	unsigned unknown;
	struct strlist archives = {0};
	/* its packages are there */
	assert_int_equal(world_missing(s, w, &arena, &archives, &unknown), 0);
	assert_int_equal(archives.count, 0);
	assert_int_equal(world_missing(NULL, w, &arena, &archives, &unknown), w->download);
	assert_string_equal(strlist_join(&archives, &arena, " "), "debian");
	assert_int_equal(unknown, 0);
	w->pieces[0].lock.entries[0].size = 0;
	assert_true(world_missing(NULL, w, &arena, &archives, &unknown) < w->download);
	assert_int_equal(unknown, 1);
	/* both results still hold it */
	const struct gc_options q = {.keep_seconds = 0, .max_bytes = 0, .now = time(NULL) + 100};
	struct gc_result g;
	assert_ok(store_gc(s, &q, test_run(), &arena, &g, &err), &err);
	assert_int_equal(g.busy, 1);
	lock_release(&r.use);
	lock_release(&again.use);
	assert_ok(store_gc(s, &q, test_run(), &arena, &g, &err), &err);
	assert_ok(store_world_find(s, w->key, STORE_LOOK_FACTS, &arena, &found, &err), &err);
	assert_null(found);
	store_close(s);
}

static void a_damaged_one_is_made_anew(void **state)
{
	struct world_result r, again;
	const char *dir = here("store");

	(void)state;
	assert_ok(ensure(dir, &r, &err), &err);
	lock_release(&r.use);
	const char *file = arena_printf(&arena, "%s/usr/lib/p001/1", r.dir);
	test_write(file, "changed");
	assert_ok(ensure(dir, &again, &err), &err);
	assert_false(again.hit);
	assert_int_equal(again.fetched.downloaded, 0);
	lock_release(&again.use);
	AUTO_FREE char *text = test_read(file);
	assert_string_not_equal(text, "changed");
	assert_int_equal(test_count_entries(arena_printf(&arena, "%s/quarantine", dir)), 1);
	assert_int_equal(check_store(dir), 1);
}

/* Whether a kill left a stage with the beginning of a root. */
static bool left_a_root(const char *dir)
{
	struct strlist names = {0};
	const char *tmp = arena_printf(&arena, "%s/tmp", dir);

	if (!fs_is_dir(TRUSTED, tmp))
		return false;
	assert_ok(fs_list(TRUSTED, tmp, &arena, &names, &err), &err);
	for (size_t i = 0; i < names.count; i++)
		if (fs_is_dir(TRUSTED, arena_printf(&arena, "%s/%s/root", tmp, names.items[i])))
			return true;
	return false;
}

static void killed_at_any_moment(void **state)
{
	struct timespec from, to;
	const char *dir = here("store");
	unsigned killed = 0, halves = 0;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_int_equal(status_of(start(here("first"), 0, 022)), 11);
	clock_gettime(CLOCK_MONOTONIC, &to);
	double whole =
		(double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	srand(7);
	for (unsigned i = 0; i < KILLS; i++) {
		/* sources stay in the store, so that most kills
		 * come while it unpacks, syncs and renames */
		double wait =
			whole * ((double)i + (double)rand() / RAND_MAX) / KILLS * (i < 6 ? 1 : 0.7);
		pid_t pid = start(dir, 0, 022);
		const struct timespec t = {.tv_sec = (time_t)wait,
					   .tv_nsec = (long)((wait - (double)(time_t)wait) * 1e9)};
		nanosleep(&t, NULL);
		kill(pid, SIGKILL);
		int status = status_of(pid);
		assert_true(status == -SIGKILL || status == 11);
		killed += status == -SIGKILL;
		halves += left_a_root(dir);
		if (check_store(dir) == 1) /* it was published: away with it, for the next kill */
			assert_ok(fs_remove(TRUSTED, arena_printf(&arena, "%s/worlds", dir), &err),
				  &err);
	}

	assert_true(killed > 0 && halves > 0);
	assert_int_equal(status_of(start(dir, 0, 022)), 11);
	assert_int_equal(check_store(dir), 1);
}

static void two_processes_make_it_once(void **state)
{
	const char *dir = here("store");
	pid_t pids[4];
	unsigned made = 0, found = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pids); i++)
		pids[i] = start(dir, 0, 022);
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		int status = status_of(pids[i]);
		made += status == 11;
		found += status == 10;
	}

	assert_int_equal(made, 1);
	assert_int_equal(found, 3);
	assert_int_equal(check_store(dir), 1);
}

static void the_same_for_every_user_and_umask(void **state)
{
	static const mode_t masks[] = {022, 077, 0, 027};
	const struct world *w;
	AUTO_FREE char *first = NULL;

	(void)state;
	assert_ok(world_load(profiles, "toy", "x86_64-linux", &arena, &w, &err), &err);
	for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
		/* a plain user where there is one to become */
		uid_t user = geteuid() == 0 && i % 2 ? 65534 : 0;
		const char *dir = here(arena_printf(&arena, "store%zu", i));
		assert_ok(fs_mkdirs(TRUSTED, dir, &err), &err);
		assert_int_equal(chown(dir, user ? user : geteuid(), (gid_t)-1), 0);
		assert_int_equal(status_of(start(dir, user, masks[i])), 11);
		AUTO_FREE char *text = manifest_of(dir, w->key);
		assert_non_null(text);
		if (!first)
			first = strdup(text);
		assert_string_equal(text, first);
	}
}

static void the_tree_is_what_the_lock_says(void **state)
{
	struct world_result r;
	char other[65];
	const char *dir = here("store");

	(void)state;
	digest_data("another tree", 12, other);
	write_lock(buf_cstr(&lock_lines), other);
	assert_err(ensure(dir, &r, &err), &err, ERR_INTEGRITY, "part 'toy' unpacked to the tree ");
	assert_int_equal(check_store(dir), 0);
	char tree[65];
	memcpy(tree, strstr(err.msg, "the tree ") + 9, 64);
	tree[64] = '\0';
	write_lock(buf_cstr(&lock_lines), tree);
	err_clear(&err);
	assert_ok(ensure(dir, &r, &err), &err);
	lock_release(&r.use);
}

static void a_size_that_is_not_the_files(void **state)
{
	struct world_result r;
	const char *dir = here("store");

	(void)state;
	/* in the store first, then not: it is refused either way */
	assert_ok(ensure(dir, &r, &err), &err);
	lock_release(&r.use);
	assert_ok(fs_remove(TRUSTED, arena_printf(&arena, "%s/worlds", dir), &err), &err);
	char *line = strstr(lock_lines.data, "deb p003 1 all "),
	     *size = line + strlen("deb p003 1 all ");
	*size = *size == '9' ? '8' : (char)(*size + 1);
	write_lock(buf_cstr(&lock_lines), NULL);
	for (int i = 0; i < 2; i++) {
		assert_err(ensure(i ? here("other") : dir, &r, &err), &err, ERR_INTEGRITY,
			   "/p003_1_all.deb' has ");
		assert_contains(err.msg, arena_printf(&arena, "the lock of 'toy' says %.*s",
						      (int)strcspn(size, " "), size));
		err_clear(&err);
	}

	assert_int_equal(check_store(dir), 0);
}

static void offline_without_the_files(void **state)
{
	struct world_result r;

	(void)state;
	mirror = here("empty");
	assert_ok(fs_mkdirs(TRUSTED, mirror, &err), &err);
	assert_int_equal(ensure(here("store"), &r, &err), -1);
	assert_int_equal(err.kind, ERR_NETWORK);
	assert_contains(err.hint, "the same once without --offline");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(made_then_found),
		T(a_damaged_one_is_made_anew),
		T(killed_at_any_moment),
		T(two_processes_make_it_once),
		T(the_same_for_every_user_and_umask),
		T(the_tree_is_what_the_lock_says),
		T(a_size_that_is_not_the_files),
		T(offline_without_the_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
