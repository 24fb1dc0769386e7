/* A package's own tests against an installed package, in the sandbox. */
#pragma once
#include <jansson.h>

#include "base/show.h"
#include "core/root/sandbox.h"
#include "step/test/test_table.h"

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
};

/* tests_check_needs: whether the environment has the modules that the tests need; ERR_SYSTEM names
 * those that are missing, the hint the packages. */
int tests_check_needs(const struct test_request *q, const struct run *run, struct arena *a, struct err *e) MUST_CHECK;
/* tests_run: runs what has no result yet. *ret: an object of file to test to result (outcome,
 * seconds, detail, tries; new reference), whatever the outcomes are. ERR_SYSTEM and
 * ERR_INTERRUPTED if it could not be run to its end; the same call again then goes on. */
int tests_run(const struct test_request *q, const struct run *run, json_t **ret, struct err *e) MUST_CHECK;

struct test_summary {
	size_t run, passed, skipped, expected, flaky, unexpected;
};

/* test_judge: adds a verdict to each result: passed, skipped, expected (to fail), flaky (passed in
 * another run), or, unexpected: failed, crashed, timeout, "passed, expected to fail". */
void test_judge(const struct test_package *p, json_t *files, struct test_summary *ret);
/* test_json: {"summary", "files"}, a new reference. test_show shows it: the flaky and unexpected
 * tests, each with the end of its words, then the summary. */
json_t *test_json(json_t *files, const struct test_summary *s);
extern const struct show test_show[];
/* test_junit: the same as JUnit's XML. */
void test_junit(const char *name, const json_t *files, const struct test_summary *s, struct buf *out);
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
int test_journal_parse(const char *text, size_t len, const char *name, struct arena *a, struct test_journal *ret,
		       struct err *e) MUST_CHECK;
