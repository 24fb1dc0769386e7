/* A package's own tests against an installed package, in the sandbox. */
#pragma once
#include "base/show.h"
#include "core/root/sandbox.h"

struct test_request {
	const struct test_package *tests;
	const char *level;
	unsigned shard, shards;        /* this one (from 1) of so many; shards 0: all */
	const struct sandbox *sandbox; /* that the package is installed in */
	const char *python;            /* of the environment, as a path inside */
	const char *src;               /* the unpacked source, host path */
	const char *runner_dir;        /* <profiles>/tests */
	/* of this package and level, exists: what has a result in it is not run again */
	const char *results_dir;
	unsigned jobs; /* processes at once; 0: by processors and memory */
	/* what programs take in percent of native ones: limits of time grow with it; 0: native */
	unsigned slower;
};

/* tests_check_needs: whether the environment has the modules that the tests need; ERR_SYSTEM names
 * those that are missing, the hint the packages. */
int tests_check_needs(const struct test_request *q, const struct run *run, struct arena *a,
		      struct err *e) MUST_CHECK;
/* tests_run: runs the tests that have no result yet. *ret is an object {file: {test: {outcome,
 * seconds, detail, tries}}}; the caller owns the reference. A test that fails is no error.
 * ERR_SYSTEM or ERR_INTERRUPTED if the run ended early; the same call again continues it. */
int tests_run(const struct test_request *q, const struct run *run, json_t **ret,
	      struct err *e) MUST_CHECK;

/* test_judge: returns {"summary", "files"} of results, which it then owns; a new reference. Each
 * gets a verdict: passed, skipped, expected (to fail), flaky (passed in another run), or,
 * unexpected: failed, crashed, timeout, "passed, expected to fail". test_show prints it: the flaky
 * and unexpected tests, each with the end of its message, then the summary. */
json_t *test_judge(const struct test_package *p, json_t *files);
extern const struct show test_show[];
/* test_junit: prints the document of test_judge as JUnit's XML. */
void test_junit(const char *name, json_t *doc, struct buf *out);
/* test_differences: the tests whose outcome differs, as file::Class.test to [here, there]; "none"
 * for one that the other does not have. New reference. */
json_t *test_differences(const json_t *here, const json_t *there);

/* One part of a file, as its journal has it. */
struct test_journal {
	json_t *tests;    /* name to {outcome, seconds, detail, tries}; new reference */
	const char *open; /* in the arena: the test that began and did not end; NULL */
	double open_at;   /* seconds since the epoch */
	size_t lines;
	bool done; /* nothing is left to run */
};

/* test_journal_parse: the lines that the runner wrote; half a line at the end is left out.
 * ERR_INTEGRITY names `name` and the line for whatever else is not as it must be. */
int test_journal_parse(const struct file_bytes *in, struct arena *a, struct test_journal *ret,
		       struct err *e) MUST_CHECK;

/* Which of a package's own tests are run at which level, and which of them are known to fail:
 * profiles/tests/<release>.yaml. */
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
	const char *test;    /* fnmatch pattern of file::Class.test */
	const char **wheels; /* patterns of its file name; none = all */
	unsigned wheels_count;
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
/* test_table_load: the rows of a release's package; of those expected to fail the ones of this
 * wheel's file name, "root" for what the root has. ERR_CONFIG with file and line, ERR_POLICY if
 * the release has no table or the package no rows in it. */
int test_table_load(const char *profiles_dir, const char *release, const char *package,
		    const char *wheel, struct arena *a, const struct test_package **ret,
		    struct err *e) MUST_CHECK;
/* test_table_world: the world of a release's table; "" for none, and without a table. */
int test_table_world(const char *profiles_dir, const char *release, struct arena *a,
		     const char **ret, struct err *e) MUST_CHECK;
/* test_row_in: whether the row belongs to the level. "full" has all rows, whole. */
bool test_row_in(const struct test_row *r, const char *level);
/* test_expected: the row that expects this test ("file::Class.test") to fail; NULL. */
const struct test_expected_row *test_expected(const struct test_package *p, const char *test);
