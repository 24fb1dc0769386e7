/* NVIDIA's archives of a toolkit, which no index has: what is asked for is what the lock
 * says, and what comes is held against it. The server is this machine's and serves stand-ins. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "cache/store.h"
#include "httpd.h"
#include "step/lock/lock_make.h"
#include "step/pipeline/make_world.h"

enum { MAX_ARCHIVES = 32 };

struct toolkit { /* one part on one platform */
	struct arena a;
	const struct world *shipped;
	const struct world_part *part;
	const char *platform, *site; /* of the shipped lock: "https://host" */
	/* of the shipped lock the archives alone, and the same
	 * at the loopback server, with the stand-ins' digests */
	struct world_entry archives[MAX_ARCHIVES], served[MAX_ARCHIVES];
	struct httpd_page pages[MAX_ARCHIVES];
	size_t count;
};

static const char *path_of(const struct toolkit *t, size_t i)
{
	assert_true(strncmp(t->archives[i].place, t->site, strlen(t->site)) == 0);
	return t->archives[i].place + strlen(t->site);
}

/* "linux-sbsa": NVIDIA's word for the platform. */
static const char *word_of(const char *platform)
{
	return strcmp(platform, "x86_64-linux") == 0 ? "linux-x86_64" : "linux-sbsa";
}

static void load(struct toolkit *t, const char *part, const char *platform)
{
	struct err e = {0};
	const struct world_lock *lock;

	*t = (struct toolkit){.platform = platform};
	assert_ok(world_load(PROFILES_DIR, arena_printf(&t->a, "debian12+%s", part), platform,
			     &t->a, &t->shipped, &e),
		  &e);
	t->part = t->shipped->pieces[1].part;
	lock = &t->shipped->pieces[1].lock;
	for (size_t i = 0; i < lock->count; i++)
		if (lock->entries[i].kind == WORLD_FILE)
			t->archives[t->count++] = lock->entries[i];
	const char *host = strstr(t->part->manifest, "://") + 3;
	t->site = arena_strndup(&t->a, t->part->manifest,
				(size_t)(host + strcspn(host, "/") - t->part->manifest));
	for (size_t i = 0; i < t->count; i++) {
		char sha[65];
		const char *body = arena_printf(&t->a, "%s for %s", t->archives[i].name, platform);
		t->pages[i] = (struct httpd_page){
			.path = path_of(t, i), .body = body, .len = strlen(body)};
		digest_data(body, strlen(body), sha);
		t->served[i] = t->archives[i];
		t->served[i].sha256 = arena_strdup(&t->a, sha);
		t->served[i].size = strlen(body);
	}
}

static int get(struct toolkit *t, const struct httpd *server, const struct world_entry *entries,
	       struct world_files *ret, struct err *e)
{
	struct world_entry *here = arena_array(&t->a, t->count, sizeof(*here));
	struct world_piece piece = {.part = t->part, .lock = t->shipped->pieces[1].lock};
	struct world w = {
		.name = t->part->part, .platform = t->platform, .pieces = &piece, .count = 1};
	struct world_request q = {.run = test_run(),
				  .world = &w,
				  .profiles = PROFILES_DIR,
				  .fetch = {.retries = 1, .backoff_ms = 1}};

	for (size_t i = 0; i < t->count; i++) {
		here[i] = entries[i];
		here[i].place = arena_strdup(&t->a, httpd_url(server, path_of(t, i)));
	}

	piece.lock.entries = here;
	piece.lock.count = t->count;
	assert_ok(
		store_open(test_path("%s-%s", t->part->part, t->platform), test_run(), &q.store, e),
		e);
	int rc = world_files(&q, &t->a, ret, e);
	store_close(q.store);
	return rc;
}

/* The manifest that the lock was made of, as NVIDIA writes one. */
static void the_lock_is_its_manifests(struct toolkit *t)
{
	AUTO_BUF struct buf text = {0};
	struct err e = {0};
	struct world_entry *again;
	const char *word = word_of(t->platform), *dir = path_dir(&t->a, t->part->manifest);

	assert_int_equal(t->count, t->part->archives_count);
	buf_addc(&text, '{');
	for (size_t i = 0; i < t->count; i++) {
		const struct world_entry *f = &t->archives[i];
		const char *path = arena_printf(&t->a, "%s/%s/%s-%s-%s-archive.tar.xz", f->name,
						word, f->name, word, f->version);
		assert_true(f->size > 1000);
		buf_printf(&text,
			   "%s\"%s\": {\"version\": \"%s\", \"%s\": {\"relative_path\": \"%s\", ",
			   i ? ", " : "", f->name, f->version, word, path);
		buf_printf(&text, "\"sha256\": \"%s\", \"size\": \"%llu\"}}", f->sha256,
			   (unsigned long long)f->size);
	}

	buf_addc(&text, '}');
	assert_non_null(dir);
	assert_ok(lock_redist(text.data, text.len, t->part->manifest, t->part->archives,
			      t->part->archives_count, t->platform, &t->a, &again, &e),
		  &e);
	for (size_t i = 0; i < t->count; i++) {
		assert_string_equal(again[i].name, t->archives[i].name);
		assert_string_equal(again[i].place, t->archives[i].place);
		assert_string_equal(again[i].sha256, t->archives[i].sha256);
		assert_int_equal(again[i].size, t->archives[i].size);
	}
}

/* Stand-ins under their own digests: each path is asked for once, and no other. */
static void all_is_asked_for_once(struct toolkit *t, struct httpd *server)
{
	struct err e = {0};
	struct world_files files = {0};

	assert_ok(get(t, server, t->served, &files, &e), &e);
	assert_int_equal(files.fetched.downloaded, t->count);
	assert_int_equal(files.drift.count, 0);
	for (size_t i = 0; i < t->count; i++) {
		AUTO_FREE char *text = test_read(files.paths[0][i]);
		assert_string_equal(text, t->pages[i].body);
		assert_int_equal(httpd_hits(server, path_of(t, i)), 1);
	}
}

/* With the digests of the shipped lock they are other
 * bytes: refused, both digests named, and nothing is kept. */
static void other_bytes_are_refused(struct toolkit *t, struct httpd *server)
{
	struct err e = {0};
	struct world_files files = {0};

	for (size_t i = 0; i < t->count; i += t->count - 1) { /* the first and the last */
		struct world_entry mixed[MAX_ARCHIVES];
		memcpy(mixed, t->served, sizeof(mixed));
		mixed[i].sha256 = t->archives[i].sha256;
		assert_err(get(t, server, mixed, &files, &e), &e, ERR_INTEGRITY,
			   path_base(t->archives[i].place));
		assert_contains(e.msg, t->archives[i].sha256);
		assert_contains(e.msg, t->served[i].sha256);
		err_clear(&e);
	}
}

static void archives_of_every_toolkit(void **state)
{
	static const char *const platforms[] = {"x86_64-linux", "aarch64-linux"};
	struct strlist parts = {0};
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	size_t seen = 0;

	(void)state;
	test_dir();
	setenv("no_proxy", "*", 1);
	assert_ok(world_part_names(PROFILES_DIR, &a, &parts, &e), &e);
	for (size_t i = 0; i < parts.count * ARRAY_LEN(platforms); i++) {
		const char *part = parts.items[i / ARRAY_LEN(platforms)];
		const struct world_part *p;
		struct toolkit t;
		assert_ok(world_part_load(PROFILES_DIR, part, &a, &p, &e), &e);
		if (!*p->manifest)
			continue;
		load(&t, part, platforms[i % ARRAY_LEN(platforms)]);
		struct httpd *server = httpd_start(t.pages, t.count);
		the_lock_is_its_manifests(&t);
		all_is_asked_for_once(&t, server);
		other_bytes_are_refused(&t, server);
		httpd_stop(server);
		arena_release(&t.a);
		seen++;
	}

	assert_int_equal(seen, 6); /* 12.6, 12.8 and 12.9, twice */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(archives_of_every_toolkit, test_teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
