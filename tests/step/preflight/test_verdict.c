/* What is said of all that failed. */
#include "preflight_fixture.h"

static void test_missing_files_in_one_command(void **state)
{
	(void)state;
	struct err e = {0};
	assert_int_equal(remove(path_join(&t.a, t.root.dir, "usr/bin/flatc")), 0);
	assert_err(check(&e), &e, ERR_SYSTEM, "v cannot be built here: flatc: not in the root");
	assert_int_equal(
		remove(path_join(&t.a, t.root.dir, "usr/include/x86_64-linux-gnu/sleef.h")), 0);
	t.needs[9] = need("", "no-such-program-at-all", "", "no-such-package");
	t.needs[9].host = true;
	t.tables.needs_count = 10;
	assert_err(check(&e), &e, ERR_SYSTEM, "for 3 reasons");
	assert_contains(e.hint, "sudo apt-get install no-such-package\n");
	assert_contains(e.hint, "sudo chroot /");
	assert_contains(e.hint, "apt-get install -y flatbuffers-compiler libsleef-dev'");
	t.root.id = "fedora 43";
	assert_err(check(&e), &e, ERR_SYSTEM, "for 3 reasons");
	assert_contains(e.hint,
			"install what Debian calls flatbuffers-compiler libsleef-dev in the root");
	assert_contains(e.hint, "sudo apt-get install no-such-package\n");
	/* This machine by what it has, whatever the root is. */
	const char *path = arena_strdup(&t.a, getenv("PATH"));
	t.root.id = "debian 13";
	setenv("PATH", path_join(&t.a, t.root.dir, "usr/bin"), 1);
	assert_err(check(&e), &e, ERR_SYSTEM, " reasons");
	assert_not_contains(e.hint, "sudo apt-get");
	assert_contains(e.hint, "install what Debian calls no-such-package ");
	assert_contains(e.hint, " on this machine\nsudo chroot /");
	setenv("PATH", path, 1);
}

/* What an error has no room for is not cut without a word, and all packages are named. */
static void test_more_than_an_error_has_room_for(void **state)
{
	enum { MANY = 100 };
	static struct need_row rows[MANY];
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		const char *name = arena_printf(&t.a, "there-is-no-program-%zu", i);
		rows[i] =
			need("", name, "", i < 28 ? arena_printf(&t.a, "package-%zu-end", i) : "");
	}

	t.tables = (struct tables){.needs = rows, .needs_count = 28};
	assert_err(check(&e), &e, ERR_SYSTEM, "for 28 reasons");
	assert_contains(e.hint, "package-27-end'");
	t.tables.needs_count = MANY;
	assert_err(check(&e), &e, ERR_SYSTEM, "for 100 reasons");
	assert_contains(e.msg, " more: 'ptbuild doctor' with the same options lists all");
	assert_contains(e.hint, "package-27-end'");
	t.root.id = "fedora 43";
	t.tables.needs_count = 28;
	assert_err(check(&e), &e, ERR_SYSTEM, "for 28 reasons");
	assert_contains(e.hint, "package-27-end in the root");
}

/* The tables know no digest: the same code as of 'fetch'. */
static void test_no_proven_digest(void **state)
{
	struct source_row source = {.name = "x.tar.gz", .sha256 = "", .unproven = "nobody looked"};
	struct err e = {0};

	(void)state;
	t.package.sources = &source;
	t.package.sources_count = 1;
	t.d.count = 0;
	assert_ok(preflight_check(&t.d, "sources", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_CONFIG,
		   "'x.tar.gz' of release 2.6.0 has no proven digest");
	preflight_fail(&t.d, ERR_SYSTEM, "y", "", "missing");
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_CONFIG, "for 2 reasons");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_missing_files_in_one_command),
		TEST(test_more_than_an_error_has_room_for),
		TEST(test_no_proven_digest),
	};

	return cmocka_run_group_tests_name("step/preflight/verdict", tests, NULL, NULL);
}
