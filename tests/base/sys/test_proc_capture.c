#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys/proc.h"

#define SH(script) ((const char *const[]){"sh", "-c", (script), NULL})

static void capture_gives_trimmed_output(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	buf_addstr(&out, "v");
	assert_ok(proc_capture(SH("echo; echo ' 12.2.0 '; echo noise >&2; echo"), test_run(), &out,
			       &e),
		  &e);
	assert_string_equal(buf_cstr(&out), "v\n 12.2.0");
	assert_ok(proc_capture(SH("true"), test_run(), &out, &e), &e);
	assert_string_equal(buf_cstr(&out), "v\n 12.2.0");
}

static void capture_shows_nothing_of_the_environment(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	setenv("PTBUILD_STORE_URL", "https://user:secret@127.0.0.1", 1);
	int rc = proc_capture((const char *const[]){"env", NULL}, test_run(), &out, &e);
	unsetenv("PTBUILD_STORE_URL");
	assert_ok(rc, &e);
	assert_contains(buf_cstr(&out), "LC_ALL=C\nPATH=/");
	assert_null(strchr(strstr(buf_cstr(&out), "PATH="), '\n'));
}

static void capture_failure_quotes_the_last_words(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	assert_err(proc_capture(SH("echo out; seq 9 >&2; exit 2"), test_run(), &out, &e), &e,
		   ERR_SYSTEM, "'sh' failed with status 2: 5\n6\n7\n8\n9");
	assert_int_equal(out.len, 0);
	assert_err(proc_capture(SH("exit 1"), test_run(), &out, &e), &e, ERR_SYSTEM,
		   "failed with status 1: no message");
	assert_err(proc_capture(SH("kill -9 $$"), test_run(), &out, &e), &e, ERR_SYSTEM,
		   "killed by signal 9");
	assert_err(proc_capture(SH("head -c 9000 /dev/zero | tr '\\0' y >&2; exit 1"), test_run(),
				&out, &e),
		   &e, ERR_SYSTEM, "yyyy");
	assert_true(strlen(e.msg) < 1100);
}

static void find_looks_through_path(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	test_dir();
	test_write(test_path("a/tool"), "");   /* not executable */
	test_write(test_path("b/tool/x"), ""); /* a directory */
	test_write(test_path("c/tool"), "");
	chmod(test_path("c/tool"), 0755);
	char *old = arena_strdup(&a, getenv("PATH"));
	setenv("PATH",
	       arena_printf(&a, "relative::%s:%s:%s", test_path("a"), test_path("b"),
			    test_path("c")),
	       1);
	char *found = proc_find(&a, "tool");
	char *none = proc_find(&a, "other");
	setenv("PATH", old, 1);
	assert_string_equal(found, test_path("c/tool"));
	assert_null(none);
	assert_null(proc_find(&a, ""));
	assert_null(proc_find(&a, "/bin/sh"));
	assert_non_null(proc_find(&a, "sh"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture_gives_trimmed_output),
		cmocka_unit_test(capture_shows_nothing_of_the_environment),
		cmocka_unit_test(capture_failure_quotes_the_last_words),
		cmocka_unit_test_teardown(find_looks_through_path, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
