#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "step/ccache/ccache_relay.h"

#define REST "23456789abcdefghijklmnopqrstuv0"
#define KEY "01" REST
#define SCOPE "00112233445566778899aabbccddeeff"
#define GROUP "0a0b0c0d0e0f0a0b0c0d0e0f0a0b0c0d"
#define OTHER "ffeeddccbbaa99887766554433221100"

static void put(const char *path, char type, const char *text)
{
	char data[64] = {'\xcc', '\xac', 1, type, 1, 1, 1};
	snprintf(data + 16, sizeof(data) - 16, "%s", text);
	test_write_bytes(path, data, 16 + strlen(text));
}

static struct ccache_promoted promote(const char *scope, const char *group, uint64_t max,
				      struct arena *a)
{
	struct ccache_promoted made;
	struct err e = {0};

	assert_ok(fs_mkdirs(TRUSTED, test_path("stage"), &e), &e);
	assert_ok(fs_mkdirs(TRUSTED, test_path("top/front"), &e), &e);
	struct ccache_promote_request q = {.run = test_run(),
					   .front = "front",
					   .scope = scope,
					   .group = group,
					   .max_bytes = max};
	q.top = arena_strdup(a, test_path("top"));
	q.place = arena_strdup(a, test_path("place"));
	q.stage = arena_strdup(a, test_path("stage"));
	assert_ok(ccache_promote(&q, a, &made, &e), &e);
	assert_ok(fs_remove(TRUSTED, q.stage, &e), &e);
	return made;
}

/* The text behind the head of what a build of that scope gets. */
static const char *get(const char *key, const char *scope, const char *group, struct arena *a,
		       bool *own)
{
	AUTO_BUF struct buf out = {0};
	struct ccache_place places[] = {{arena_strdup(a, test_path("place")), true, false},
					{arena_strdup(a, test_path("old")), true, true}};
	struct ccache_shared s = {places, 2, scope, group};

	return ccache_shared_get(&s, key, &out, own) ? arena_strndup(a, out.data + 16, out.len - 16)
						     : NULL;
}

static void results_are_never_replaced(void **state)
{
	AUTO_ARENA struct arena a = {0};
	bool own;

	(void)state;
	test_dir();
	put(test_path("top/front/0/1/" REST "R"), 0, "first");
	assert_int_equal(promote(SCOPE, GROUP, 1000, &a).names.count, 1);
	put(test_path("top/front/0/1/" REST "R"), 0, "second");
	assert_int_equal(promote(OTHER, GROUP, 1000, &a).names.count, 0);
	assert_string_equal(get(KEY, OTHER, GROUP, &a, &own), "first");
	assert_true(own);
}

static void each_scope_keeps_its_manifest(void **state)
{
	AUTO_ARENA struct arena a = {0};
	bool own;

	(void)state;
	test_dir();
	put(test_path("top/front/0/1/" REST "M"), 1, "first");
	assert_int_equal(promote(SCOPE, GROUP, 1000, &a).names.count, 1);
	put(test_path("top/front/0/1/" REST "M"), 1, "second");
	assert_int_equal(promote(SCOPE, GROUP, 1000, &a).names.count, 0);
	assert_int_equal(promote(OTHER, GROUP, 1000, &a).names.count, 1);
	assert_string_equal(get(KEY, SCOPE, GROUP, &a, &own), "first");
	assert_true(own);
	assert_string_equal(get(KEY, OTHER, GROUP, &a, &own), "second");
	assert_string_equal(get(KEY, "a-third-scope-of-32-digits-000000", GROUP, &a, &own),
			    "second");
	assert_false(own);
	/* Of other sources: nothing that came later. */
	put(test_path("top/front/0/1/" REST "M"), 1, "hostile");
	assert_int_equal(promote("ee", "other-group-of-32-digits-00000000", 1000, &a).names.count,
			 1);
	assert_string_equal(get(KEY, "a-third-scope-of-32-digits-000000", GROUP, &a, &own),
			    "second");
	assert_string_equal(get(KEY, "fourth", "a-third-group-of-32-digits-0000", &a, &own),
			    "first");
	assert_string_equal(get(KEY, "fourth", "other-group-of-32-digits-00000000", &a, &own),
			    "hostile");
}

/* What a hostile build could leave there. */
static void only_what_ccache_makes(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};

	(void)state;
	test_dir();
	put(test_path("secret"), 0, "of the host");
	put(test_path("top/front/0/1/" REST "R"), 0, "good");
	/* a directory */
	assert_ok(fs_mkdirs(TRUSTED, test_path("top/front/1/1/" REST "R"), &e), &e);
	assert_ok(fs_mkdirs(TRUSTED, test_path("top/front/2/1"), &e), &e);
	assert_int_equal(symlink(test_path("secret"), test_path("top/front/2/1/" REST "R")), 0);
	assert_int_equal(mkfifo(test_path("top/front/2/1/" REST "M"), 0600), 0);
	assert_int_equal(symlink(test_path("top/front/0"), test_path("top/front/3")), 0);
	test_write(test_path("top/front/4/1/" REST "R"), "no head of ccache's, but long enough");
	put(test_path("top/front/5/1/" REST "R"), 1, "a manifest for a result");
	put(test_path("top/front/6/1/" REST "M"), 0, "a result for a manifest");
	test_write(test_path("top/front/7/1/" REST "R"), "");
	assert_int_equal(truncate(test_path("top/front/7/1/" REST "R"), 300 << 20), 0);
	/* No names of entries at all. */
	put(test_path("top/front/8/1/" REST "W"), 0, "raw");
	put(test_path("top/front/8/1/23R"), 0, "short");
	put(test_path("top/front/8/1/" REST REST REST "R"), 0, "long");
	put(test_path("top/front/8/1/..%%2f..%%2f3456789abcdefghijklmnopqrR"), 0, "letters");
	put(test_path("top/front/8/1/2-456789abcdefghijklmnopqrstuv0R"), 0, "scope");
	put(test_path("top/front/" KEY "R"), 0, "no level");
	put(test_path("top/front/ccache.conf"), 0, "prefix_command = evil");
	struct ccache_promoted made = promote(SCOPE, GROUP, 10000, &a);
	assert_int_equal(made.names.count, 1);
	assert_string_equal(made.names.items[0], "01/" REST);
	assert_int_equal(made.refused, 6);
	uint64_t size;
	assert_ok(fs_tree_size(test_path("place"), &size, &e), &e);
	assert_int_equal(size, 16 + strlen("good"));
}

static void no_more_than_the_limit(void **state)
{
	AUTO_ARENA struct arena a = {0};

	(void)state;
	test_dir();
	for (int i = 0; i < 8; i++)
		put(test_path("top/front/0/%d/" REST "R", i), 0, "0123456789abcdef");
	struct ccache_promoted made = promote(SCOPE, GROUP, 100, &a);
	assert_int_equal(made.names.count, 3);
	assert_int_equal(made.bytes, 96);
}

static void an_old_cache_is_read(void **state)
{
	AUTO_ARENA struct arena a = {0};
	bool own;

	(void)state;
	test_dir();
	put(test_path("old/0/1/2/"
		      "3456789abcdefghijklmnopqrstuv0M"),
	    1, "old");
	put(test_path("secret"), 0, "of the host");
	assert_string_equal(get(KEY, SCOPE, GROUP, &a, &own), "old");
	assert_false(own);
	assert_int_equal(symlink(test_path("secret"), test_path("old/f")), 0);
	/* not followed */
	assert_int_equal(symlink(test_path("secret"), test_path("old/0/1/" REST "R")), 0);
	assert_string_equal(get(KEY, SCOPE, GROUP, &a, &own), "old");
	assert_null(get("f" KEY, SCOPE, GROUP, &a, &own));
}

static void domains(void **state)
{
	AUTO_ARENA struct arena a = {0};
	static const struct {
		const char *text, *keep, *read;
	} good[] = {{"default", "default", "default"},
		    {"pr-17:default", "pr-17", "pr-17 default"},
		    {":default", NULL, "default"},
		    {"default:shard.1:shard.2", "default", "default shard.1 shard.2"}};
	static const char *const bad[] = {"", ":", "..", "a/b", "A", "default:..", ".x", "a b"};
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		const char *keep;
		struct strlist read;
		assert_ok(ccache_domain_parse(good[i].text, &a, &keep, &read, &e), &e);
		assert_string_equal(keep ? keep : "-", good[i].keep ? good[i].keep : "-");
		assert_string_equal(strlist_join(&read, &a, " "), good[i].read);
	}

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *keep;
		struct strlist read;
		assert_err(ccache_domain_parse(bad[i], &a, &keep, &read, &e), &e, ERR_USAGE,
			   "--ccache-domain");
	}
}

#define T(name) cmocka_unit_test_teardown(name, test_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(results_are_never_replaced), T(each_scope_keeps_its_manifest),
		T(only_what_ccache_makes),     T(no_more_than_the_limit),
		T(an_old_cache_is_read),       T(domains),
	};

	return cmocka_run_group_tests_name("ccache_shared", tests, NULL, NULL);
}
