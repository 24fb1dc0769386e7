#include "support.h"

#include <string.h>

#include "core/archive/resolve.h"

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* package: "NAME VERSION", then fields. */
static void add(struct buf *out, const char *name, const char *version, const char *fields)
{
	buf_printf(out,
		   "Package: %s\nVersion: %s\nArchitecture: amd64\nFilename: pool/%s_%s.deb\nSize: 1\nSHA256: " SHA
		   "\n%s\n",
		   name, version, name, version, fields);
}

/* Resolves the blank-separated names; "NAME=VERSION ..." of the result. */
static int solve(const struct buf *text, const char *names, bool essential, struct arena *a, const char **ret,
		 struct err *e)
{
	struct archive_packages packages = {0};
	struct strlist asked = {0}, shown = {0};
	const struct archive_package **got;
	size_t count;
	assert_ok(packages_parse(buf_cstr(text), text->len, "Packages", "amd64", a, &packages, e), e);
	assert_ok(packages_sort(&packages, e), e);
	strlist_split(&asked, a, names, " ");
	const struct resolve_request q = {
		.packages = &packages, .arch = "amd64", .asked = &asked, .essential = essential};
	if (resolve(&q, a, &got, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		strlist_addf(&shown, a, "%s=%s", got[i]->name, got[i]->version);
	*ret = strlist_join(&shown, a, " ");
	return 0;
}

#define assert_solved(text, names, want)                                                                               \
	do {                                                                                                           \
		const char *solved;                                                                                    \
		assert_ok(solve(text, names, false, &a, &solved, &e), &e);                                             \
		assert_string_equal(solved, want);                                                                     \
	} while (0)

static void closure_of_dependencies(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf t = {0};
	struct err e = {0};
	const char *got;
	add(&t, "gcc", "4:14.2", "Depends: gcc-14 (>= 14.2~), cpp:any\nRecommends: libc-dev\nSuggests: manpages\n");
	add(&t, "gcc-14", "14.2.0-1", "Pre-Depends: libc6 (>= 2.38)\n");
	add(&t, "cpp", "4:14", "Multi-Arch: allowed\n");
	add(&t, "libc6", "2.41-1", "Depends: libgcc-s1\n");
	add(&t, "libgcc-s1", "14", "Depends: libc6\n"); /* a ring */
	add(&t, "libc-dev", "1", "");
	add(&t, "base-files", "13", "Essential: yes\n");
	assert_solved(&t, "gcc", "cpp=4:14 gcc=4:14.2 gcc-14=14.2.0-1 libc6=2.41-1 libgcc-s1=14");
	assert_ok(solve(&t, "cpp", true, &a, &got, &e), &e);
	assert_string_equal(got, "base-files=13 cpp=4:14");
}

/* Debian's order of versions, not that of bytes or numbers. */
static void the_newest_version(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf t = {0};
	struct err e = {0};
	static const char *const versions[] = {"1.9-1", "1.10-1~deb12u1", "1.10-1", "1.10~rc1-1"};
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		add(&t, "xx", versions[i], "");
	add(&t, "yy", "9", "");
	add(&t, "yy", "1:0", "");
	assert_solved(&t, "xx yy", "xx=1.10-1 yy=1:0");
	struct archive_packages packages = {0};
	assert_ok(packages_parse(buf_cstr(&t), t.len, "Packages", "amd64", &a, &packages, &e), &e);
	assert_ok(packages_sort(&packages, &e), &e);
	assert_string_equal(resolve_newest(&packages, "yy")->version, "1:0");
	assert_null(resolve_newest(&packages, "zz"));
}

static void alternatives_in_their_order(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf t = {0};
	struct err e = {0};
	add(&t, "app", "1", "Depends: zz | aa\n");
	add(&t, "other", "1", "Depends: gone (>= 2) | nowhere | aa\n");
	add(&t, "both", "1", "Depends: app, other\n");
	add(&t, "aa", "1", "");
	add(&t, "zz", "1", "");
	add(&t, "gone", "1", "");
	assert_solved(&t, "app", "app=1 zz=1");
	assert_solved(&t, "other", "aa=1 other=1");
	/* what is there anyway is enough */
	assert_solved(&t, "both", "aa=1 app=1 both=1 other=1");
	assert_solved(&t, "app aa", "aa=1 app=1");
}

static void provided_names(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf t = {0};
	struct err e = {0};
	const char *got;
	add(&t, "base", "1", "Depends: awk\n");
	add(&t, "gawk", "1", "Provides: awk\nPriority: optional\n");
	add(&t, "mawk", "1", "Provides: awk\nPriority: required\n");
	add(&t, "api", "1", "Depends: abi (>= 2)\n");
	add(&t, "early", "5", "Provides: abi (= 2~rc1), awk\n");
	add(&t, "late", "1", "Provides: abi (= 2)\n");
	add(&t, "unsaid", "9", "Provides: abi\n");
	assert_solved(&t, "base", "base=1 mawk=1");
	assert_solved(&t, "base gawk", "base=1 gawk=1");
	assert_solved(&t, "api", "api=1 late=1");
	assert_err(solve(&t, "awk", false, &a, &got, &e), &e, ERR_CONFIG, "the archive has no package 'awk'");
	assert_contains(e.hint, "early, gawk, mawk");
	assert_err(solve(&t, "nothing", false, &a, &got, &e), &e, ERR_CONFIG, "the archive has no package 'nothing'");
}

static void what_cannot_be_together(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf t = {0};
	struct err e = {0};
	const char *got;
	add(&t, "one", "1", "Conflicts: two\n");
	add(&t, "two", "1", "");
	add(&t, "needs", "1", "Depends: missing (>= 3)\n");
	add(&t, "missing", "2", "");
	add(&t, "either", "1", "Depends: two | three\n");
	add(&t, "three", "1", "");
	assert_err(solve(&t, "one two", false, &a, &got, &e), &e, ERR_CONFIG, "cannot be together");
	assert_contains(e.msg, "one");
	assert_err(solve(&t, "needs", false, &a, &got, &e), &e, ERR_CONFIG, "missing");
	/* around a conflict the second alternative */
	assert_solved(&t, "one either", "either=1 one=1 three=1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closure_of_dependencies),     cmocka_unit_test(the_newest_version),
		cmocka_unit_test(alternatives_in_their_order), cmocka_unit_test(provided_names),
		cmocka_unit_test(what_cannot_be_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
