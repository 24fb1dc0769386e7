/* Which of a package's own tests are run at which level, and which of them are known to fail:
 * profiles/tests/<release>.yaml. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

struct test_row {
	const char *file;    /* below the package's directory of tests */
	const char **levels; /* "smoke", "core" */
	unsigned levels_count;
	const char **select; /* fnmatch patterns of Class.test; none = all */
	unsigned select_count;
	unsigned sample;  /* one test in so many; 0 = 1 */
	unsigned parts;   /* processes that share the file's tests; 0 = 1 */
	unsigned limit;   /* seconds for one test; 0 = TEST_LIMIT_S */
	unsigned minutes; /* for each part; 0 = TEST_MINUTES */
	unsigned line;
};

enum { TEST_LIMIT_S = 120, TEST_MINUTES = 30 };

struct test_expected_row {
	const char *test; /* fnmatch pattern of file::Class.test */
	const char *reason;
	const char *source;
};

struct test_need { /* a Python module without which the tests cannot be run */
	const char *module;
	const char *debian; /* the package of Debian that has it */
};

struct test_package {
	const char *package;
	const char *dir; /* of the tests in the source */
	struct test_need *needs;
	unsigned needs_count;
	struct test_row *files;
	unsigned files_count;
	struct test_expected_row *expected;
	unsigned expected_count;
};

struct test_table {
	const char *sources;
	/* "debian13+tests13": the part with what the tests need, and its base; "" */
	const char *world;
	struct test_package *packages;
	unsigned packages_count;
};

/* test_table_path: where the table of a release is, or would be. */
const char *test_table_path(const char *profiles_dir, const char *release, struct arena *a);
/* test_table_load: the rows of a release's package. ERR_CONFIG with file and line, ERR_POLICY if
 * the release has no table or the package no rows in it. */
int test_table_load(const char *profiles_dir, const char *release, const char *package, struct arena *a,
		    const struct test_package **ret, struct err *e) MUST_CHECK;
/* test_table_world: the world of a release's table; "" for none, and without a table. */
int test_table_world(const char *profiles_dir, const char *release, struct arena *a, const char **ret,
		     struct err *e) MUST_CHECK;
/* test_row_in: whether the row belongs to the level. "full" has all rows, whole. */
bool test_row_in(const struct test_row *r, const char *level);
/* test_expected: the row that expects this test ("file::Class.test") to fail; NULL. */
const struct test_expected_row *test_expected(const struct test_package *p, const char *test);
