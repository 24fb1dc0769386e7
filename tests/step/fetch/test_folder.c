#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/digest.h"
#include "cache/store.h"
#include "step/fetch/fetch.h"

static void pack(const char *dir, char hex[65])
{
	struct err e = {0};
	assert_ok(folder_pack(dir, "tiny", -1, hex, &e), &e);
}

static void the_same_files_make_the_same_archive(void **state)
{
	(void)state;
	char one[65], other[65];
	test_dir();
	test_write(test_path("a/setup.py"), "setup()\n");
	test_write(test_path("a/csrc/x.cpp"), "int x;\n");
	test_write(test_path("b/csrc/x.cpp"), "int x;\n");
	test_write(test_path("b/setup.py"), "setup()\n");
	/* What an earlier build and git have left there says nothing. */
	test_write(test_path("b/build/temp/x.o"), "old");
	test_write(test_path("b/dist/x.whl"), "old");
	test_write(test_path("b/.git/HEAD"), "ref");
	test_write(test_path("b/tiny/__pycache__/x.pyc"), "old");
	test_write(test_path("b/env/pyvenv.cfg"), "home");
	test_write(test_path("b/env/lib/x.py"), "other");
	assert_int_equal(chmod(test_path("b/setup.py"), 0600), 0);
	pack(test_path("a"), one);
	pack(test_path("b"), other);
	assert_string_equal(one, other);
	test_write(test_path("b/builder.py"), "x\n");
	pack(test_path("b"), other);
	assert_string_not_equal(one, other);
	assert_int_equal(unlink(test_path("b/builder.py")), 0);
	assert_int_equal(chmod(test_path("b/setup.py"), 0700), 0);
	pack(test_path("b"), other);
	assert_string_not_equal(one, other);
}

static void a_fetch_has_it_as_an_archive_in_the_store(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct store *store;
	char hex[65], got[65];
	test_dir();
	test_write(test_path("src/setup.py"), "setup()\n");
	assert_int_equal(symlink("setup.py", test_path("src/link.py")), 0);
	pack(test_path("src"), hex);
	assert_ok(store_open(test_path("store"), test_run(), &store, &e), &e);
	const struct fetch_options o = {.offline = true};
	struct fetch_source s = {.name = "tiny-1.tar", .sha256 = hex};
	strlist_addf(&s.urls, &a, "folder:%s", test_path("src"));
	assert_ok(fetch_all(&(struct fetcher){store, &o, test_run(), &a}, &s, 1, NULL, &e), &e);
	assert_ok(digest_file(s.path, got, &e), &e);
	assert_string_equal(got, hex);
	const char *list = arena_printf(&a, "tar -tf %s > %s", s.path, test_path("list"));
	assert_int_equal(system(list), 0);
	assert_file(test_path("list"), "tiny/link.py\ntiny/setup.py\n");
	/* One that changed meanwhile is another source. */
	test_write(test_path("src/setup.py"), "setup(1)\n");
	store_close(store);
	assert_ok(store_open(test_path("other"), test_run(), &store, &e), &e);
	assert_err(fetch_all(&(struct fetcher){store, &o, test_run(), &a}, &s, 1, NULL, &e), &e,
		   ERR_INTEGRITY, "has changed since the plan was made");
	store_close(store);
}

static void what_is_no_source_is_refused(void **state)
{
	(void)state;
	struct err e = {0};
	char hex[65];
	test_dir();
	assert_err(folder_pack(test_path("none"), "x", -1, hex, &e), &e, ERR_USAGE, "no folder");
	assert_err(folder_pack(test_path("."), "x", -1, hex, &e), &e, ERR_USAGE, "has no files");
	assert_int_equal(mkfifo(test_path("pipe"), 0600), 0);
	assert_err(folder_pack(test_path("."), "x", -1, hex, &e), &e, ERR_USAGE,
		   "is neither a file nor a link");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_same_files_make_the_same_archive, test_teardown),
		cmocka_unit_test_teardown(a_fetch_has_it_as_an_archive_in_the_store, test_teardown),
		cmocka_unit_test_teardown(what_is_no_source_is_refused, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
