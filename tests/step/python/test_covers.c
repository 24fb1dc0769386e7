/* What a locked list has for a Python that is not there yet. */
#include "support.h"

#include <string.h>

#include "core/tables/tables.h"
#include "step/python/pyenv.h"

static struct arena arena;
static const struct tables *tables;

static void test_markers(void **state)
{
	static const struct {
		const char *marker, *python;
		bool holds;
	} cases[] = {
		{"", "3.12", true},
		{"python_version < \"3.10\"", "3.9", true},
		{"python_version < \"3.10\"", "3.10", false},
		{"python_version<'3.10'", "3.12", false},
		{"python_full_version >= '3.10' and python_full_version < '3.14'", "3.14", false},
		{"python_full_version >= '3.10' and python_full_version < '3.14'", "3.13", true},
		{"python_version == '3.9' or python_version == '3.12'", "3.12", true},
		{"python_version == '3.9' or python_version == '3.12'", "3.10", false},
		{"(python_version < '3.9' or python_version > '3.12') and python_version != '3.13'",
		 "3.13", false},
		{"(python_version < '3.9' or python_version > '3.12') and python_version != '3.13'",
		 "3.14", true},
		{"python_version ~= '3.10'", "3.9", false},
		{"python_version == '3.1.*'", "3.12", false},
		/* what only a Python can tell */
		{"sys_platform == 'win32'", "3.12", true},
		{"sys_platform == 'win32' and python_version < '3.12'", "3.12", false},
		{"'linux' in sys_platform", "3.12", true},
		{"'3.9' not in python_version", "3.9", false},
		{"'3.9' == python_version", "3.12", false},
		{"'3.9' == python_version", "3.9", true},
		/* what is not a marker */
		{"python_version < '3.10", "3.12", true},
		{"python_version", "3.12", true},
		{"python_version < '3.10' nor", "3.12", true},
		{"(python_version < '3.10'", "3.12", true},
		{"andy", "3.12", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (marker_holds(cases[i].marker, cases[i].python) != cases[i].holds)
			fail_msg("%s: %s", cases[i].marker, cases[i].python);
}

static void test_nested_markers_end(void **state)
{
	char deep[4096];

	(void)state;
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_true(marker_holds(deep, "3.12"));
}

static int check(const struct release_row *r, const char *package, const char *python,
		 struct err *e)
{
	const struct covers_request q = {.tables = tables,
					 .release = r,
					 .package = package,
					 .part = "python3_12",
					 .python = python,
					 .own = "3.11"};

	err_clear(e);
	return covers_check(&q, &arena, e);
}

/* The shipped lists: all packages for all Pythons of each of upstream's releases. */
static void test_the_releases(void **state)
{
	unsigned checked = 0;

	(void)state;
	for (unsigned i = 0; i < tables->releases_count; i++) {
		const struct release_row *r = &tables->releases[i];
		struct err e = {0};
		if (!*r->pytorch->requirements)
			continue;
		for (unsigned k = 0; k < r->pythons_count; k++) {
			assert_ok(check(r, "pytorch", r->pythons[k], &e), &e);
			assert_ok(check(r, "torchaudio", r->pythons[k], &e), &e);
			assert_ok(check(r, "torchvision", r->pythons[k], &e), &e);
			checked++;
		}
	}

	assert_true(checked > 20);
}

static void test_what_is_missing_is_named(void **state)
{
	const struct release_row *r = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(tables_need_release(tables, "2.8.0", &r, &e), &e);
	struct release_row other = *r;
	struct package_row row = *r->torchvision;
	other.torchvision = &row;
	row.tried_with = "";
	assert_err(check(&other, "torchvision", "3.12", &e), &e, ERR_POLICY,
		   "release 2.8.0 cannot be built for Python 3.12: 'python3_12' brings no "
		   "packages, and the locked "
		   "list 'shared.txt' of torchvision has no pillow for it");
	assert_contains(e.hint, "it has what is needed for Python 3.11;");
	row = *r->pytorch;
	row.requirements = "";
	other.pytorch = &row;
	assert_err(check(&other, "pytorch", "3.12", &e), &e, ERR_POLICY,
		   "pytorch has no locked list of what it needs (setuptools>=62.3.0,<80.0, ");
	row.requirements = "nothing.txt";
	assert_err(check(&other, "pytorch", "3.12", &e), &e, ERR_SYSTEM, "nothing.txt");
	const char *newer[] = {"numpy>=2.3"};
	row = *r->pytorch;
	row.python_requires = newer;
	row.python_requires_count = 1;
	assert_err(check(&other, "pytorch", "3.13", &e), &e, ERR_POLICY,
		   "has no numpy>=2.3 for it");
	assert_ok(check(&other, "pytorch", "3.14", &e), &e);
}

int main(void)
{
	struct err e = {0};

	if (tables_load(PROFILES_DIR, &arena, &tables, &e) < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_markers),
		cmocka_unit_test(test_nested_markers_end),
		cmocka_unit_test(test_the_releases),
		cmocka_unit_test(test_what_is_missing_is_named),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_release(&arena);
	return failed;
}
