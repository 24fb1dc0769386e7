#include "support.h"

#include <string.h>
#include <sys/stat.h>

#include "base/sys/proc.h"
#include "core/archive/inrelease.h"

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TEXT                                                                                                           \
	"Origin: Debian\nSuite: stable\nCodename: trixie\nDate: Sat, 21 Nov 2026 09:15:44 UTC\n"                       \
	"MD5Sum:\n 00 1 a\nSHA256:\n " SHA "     1234 main/binary-amd64/Packages\n " SHA                               \
	" 99 main/binary-amd64/Packages.xz\n"

static int parse(const char *text, struct arena *a, struct inrelease *ret, struct err *e)
{
	return inrelease_parse(text, strlen(text), "InRelease", a, ret, e);
}

static void reads_the_list(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct inrelease r;
	struct err e = {0};
	assert_ok(parse(TEXT "Valid-Until: Sat, 5 Dec 2026 00:00:00 UTC\n", &a, &r, &e), &e);
	assert_string_equal(r.suite, "stable");
	assert_string_equal(r.codename, "trixie");
	assert_string_equal(r.date, "2026-11-21T09:15:44Z");
	assert_string_equal(r.valid_until, "2026-12-05T00:00:00Z");
	assert_int_equal(r.count, 2);
	assert_int_equal(inrelease_find(&r, "main/binary-amd64/Packages")->size, 1234);
	assert_null(inrelease_find(&r, "main/binary-amd64"));
}

static void hostile_lists(void **state)
{
	(void)state;
	static const struct {
		const char *line, *instead, *error;
	} cases[] = {
		{" 99 main/binary-amd64/Packages.xz", " 99 ../../x", "InRelease:9: not 'SHA256 SIZE PATH'"},
		{" 99 main/binary-amd64/Packages.xz", " 99 /x", "InRelease:9: not 'SHA256 SIZE PATH'"},
		{" 99 main/binary-amd64/Packages.xz", " -9 x", "InRelease:9: not the size of an index: '-9'"},
		{" 99 main/binary-amd64/Packages.xz", " 999999999999 x", "InRelease:9: not the size of an index"},
		{" 99 main/binary-amd64/Packages.xz", " 9999999999999999999999999 x", "InRelease:9: not the size"},
		{" 99 main/binary-amd64/Packages.xz", " 99", "InRelease:9: not 'SHA256 SIZE PATH'"},
		{"Date: Sat, 21 Nov 2026 09:15:44 UTC", "Date: yesterday",
		 "InRelease:4: not a date in UTC: 'yesterday'"},
		{"Date: Sat, 21 Nov 2026 09:15:44 UTC", "Date: Sat, 21 Nov 2026 09:15:44 +0100",
		 "InRelease:4: not a date"},
		{"Date: Sat, 21 Nov 2026 09:15:44 UTC", "X: y", "has no field Date"},
		{"SHA256:", "SHA512:", "lists no file"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_ARENA struct arena a = {0};
		AUTO_BUF struct buf text = {0};
		struct inrelease r;
		struct err e = {0};
		const char *at = strstr(TEXT, cases[i].line);
		assert_non_null(at);
		buf_add(&text, TEXT, (size_t)(at - TEXT));
		buf_addstr(&text, cases[i].instead);
		buf_addstr(&text, at + strlen(cases[i].line));
		assert_err(parse(buf_cstr(&text), &a, &r, &e), &e, ERR_INTEGRITY, cases[i].error);
	}
}

static void run(const char *first, ...)
{
	const char *argv[24] = {first};
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	va_list ap;
	va_start(ap, first);
	for (size_t n = 1; n < ARRAY_LEN(argv) - 1 && (argv[n] = va_arg(ap, const char *)); n++)
		;
	va_end(ap);
	assert_ok(proc_capture(argv, test_run(), &out, &e), &e);
}

/* A key in a home of its own, exported as `name`.gpg; signs `from` to `to`. */
static const char *make_key(const char *name)
{
	const char *home = test_path("%s.home", name), *ring = test_path("%s.gpg", name);
	assert_int_equal(mkdir(home, 0700), 0);
	run("gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", name, "ed25519",
	    "sign", "never", NULL);
	run("gpg", "--homedir", home, "--batch", "--quiet", "--export", "--output", ring, NULL);
	return ring;
}

static void sign(const char *name, const char *from, const char *to)
{
	run("gpg", "--homedir", test_path("%s.home", name), "--batch", "--quiet", "--yes", "--clearsign", "--output",
	    to, from, NULL);
	run("gpgconf", "--homedir", test_path("%s.home", name), "--kill", "all", NULL);
}

static void only_what_is_signed(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0}, AUTO_BUF changed = {0};
	struct err e = {0};
	test_dir();
	char *ring = arena_strdup(&a, make_key("mine")), *other = arena_strdup(&a, make_key("other"));
	char *plain = arena_strdup(&a, test_path("Release")), *path = arena_strdup(&a, test_path("InRelease"));
	test_write(plain, TEXT);
	sign("mine", plain, path);
	assert_ok(inrelease_verify(path, ring, test_run(), &out, &e), &e);
	assert_string_equal(buf_cstr(&out), TEXT);
	assert_err(inrelease_verify(path, other, test_run(), &out, &e), &e, ERR_INTEGRITY, "is not good by");
	assert_contains(e.hint, "--keyring");
	assert_err(inrelease_verify(path, "/nowhere/ring.gpg", test_run(), &out, &e), &e, ERR_SYSTEM,
		   "no keyring '/nowhere");
	assert_err(inrelease_verify(plain, ring, test_run(), &out, &e), &e, ERR_INTEGRITY, "not one signed message");

	AUTO_FREE char *whole = test_read(path);
	char *at = strstr(whole, "1234");
	assert_non_null(at);
	*at = '2';
	test_write(path, whole);
	assert_err(inrelease_verify(path, ring, test_run(), &out, &e), &e, ERR_INTEGRITY, "is not good by");
	*at = '1';
	buf_printf(&changed, "Date: before it\n%s", whole);
	test_write(path, buf_cstr(&changed));
	assert_err(inrelease_verify(path, ring, test_run(), &out, &e), &e, ERR_INTEGRITY, "not one signed message");
	buf_reset(&changed);
	buf_printf(&changed, "%s%s", whole, whole);
	test_write(path, buf_cstr(&changed));
	assert_err(inrelease_verify(path, ring, test_run(), &out, &e), &e, ERR_INTEGRITY, "not one signed message");
	/* what stands behind the signature is not read */
	buf_reset(&changed);
	buf_printf(&changed, "%s\nSuite: evil\n", whole);
	test_write(path, buf_cstr(&changed));
	buf_reset(&out);
	if (inrelease_verify(path, ring, test_run(), &out, &e) == 0)
		assert_string_equal(buf_cstr(&out), TEXT);
	else
		assert_int_equal(e.kind, ERR_INTEGRITY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_list),
		cmocka_unit_test(hostile_lists),
		cmocka_unit_test_teardown(only_what_is_signed, test_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
