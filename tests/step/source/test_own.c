#include "support.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/sys/fs.h"
#include "step/source/source.h"

static int read_own(const char *path, const char *version, struct arena *a, struct own_source *ret,
		    struct err *e)
{
	return own_read(path, version, test_run(), a, ret, e);
}

static void test_version_and_package_are_read(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct own_source s;

	(void)state;
	test_dir();
	test_write(test_path("t-1/src/torchaudio/__init__.py"), "");
	test_write(test_path("t-1/version.txt"), " 2.11.0a0+git12\nmore\n");
	const char *dir = arena_strdup(&a, test_path("t-1")),
		   *archive = arena_strdup(&a, test_path("t.tar.gz"));
	assert_ok(read_own(dir, NULL, &a, &s, &e), &e);
	assert_string_equal(s.version, "2.11.0a0");
	assert_string_equal(s.package, "torchaudio");
	assert_contains(s.state, "the folder '");
	assert_ok(read_own(dir, "3.0", &a, &s, &e), &e);
	assert_string_equal(s.version, "3.0");
	/* What an sdist says goes before what the project keeps for itself. */
	test_write(test_path("t-1/PKG-INFO"),
		   "Metadata-Version: 2.1\nName: torchaudio\nVersion: 2.11.0\n");
	assert_int_equal(system(arena_printf(&a, "tar -C %s -czf %s t-1", test_path("."), archive)),
			 0);
	assert_ok(read_own(archive, NULL, &a, &s, &e), &e);
	assert_string_equal(s.version, "2.11.0");
	assert_string_equal(s.package, "torchaudio");
	assert_contains(s.state, "the file '");
}

static void test_source_without_version_is_refused(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct own_source s;

	(void)state;
	test_dir();
	test_write(test_path("t/setup.py"), "");
	const char *dir = arena_strdup(&a, test_path("t"));
	assert_err(read_own(dir, NULL, &a, &s, &e), &e, ERR_USAGE, "does not say its version");
	assert_err(read_own(dir, "one", &a, &s, &e), &e, ERR_USAGE, "not a version");
	assert_err(read_own(dir, "1.0+cpu", &a, &s, &e), &e, ERR_USAGE, "not a version");
	assert_err(read_own(test_path("t/setup.py"), NULL, &a, &s, &e), &e, ERR_USAGE,
		   "is a file of a source");
	assert_err(read_own(test_path("no"), NULL, &a, &s, &e), &e, ERR_USAGE,
		   "no folder or archive");
	test_write(test_path("t/version.txt"), "");
	assert_err(read_own(dir, NULL, &a, &s, &e), &e, ERR_USAGE, "does not say its version");
	test_write(test_path("broken.tar.gz"), "no archive");
	assert_err(read_own(test_path("broken.tar.gz"), NULL, &a, &s, &e), &e, ERR_INTEGRITY,
		   "broken.tar.gz");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_version_and_package_are_read, test_teardown),
		cmocka_unit_test_teardown(test_source_without_version_is_refused, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
