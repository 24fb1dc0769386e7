#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/proc.h"

static const char *reason(struct arena *a, const char *output)
{
	AUTO_BUF struct buf b = {0};
	buf_addstr(&b, output);
	return pip_reason(a, &b);
}

static void its_errors_are_the_reason(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(reason(&a, "Looking\nERROR: one\r\nnoise\nERROR: two\nlast\n"),
			    "one; two");
	assert_string_equal(reason(&a, "first\nTraceback: last\n"), "Traceback: last");
	assert_string_equal(reason(&a, ""), "it gave no reason");
	/* A page that cannot be read is one without versions. */
	assert_string_equal(reason(&a, "WARNING: one\nWARNING: Retrying\nERROR: no x (from "
				       "versions: none)\nERROR: y\n"),
			    "no x (from versions: none); y; Retrying");
	assert_string_equal(
		reason(&a, "ERROR: no x (from versions: none)\n"),
		"no x (from versions: none); the index has no page of it, or it could not be read");
	assert_string_equal(reason(&a, "WARNING: old\nERROR: no x (from versions: 1, 2)\n"),
			    "no x (from versions: 1, 2)");
	char *line = arena_alloc(&a, 5001);
	memset(line, 'x', 5000);
	assert_int_equal(strlen(reason(&a, line)), 1000);
}

static void test_reason_of_failed_connection_has_no_python_object(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static const char *const says[][2] = {
		{"'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at "
		 "0x7f0b>: Failed to "
		 "establish a new connection: [Errno -3] Temporary failure in name resolution')': "
		 "/simple/x/",
		 "Failed to establish a new connection: [Errno -3] Temporary failure in name "
		 "resolution"},
		{"'NewConnectionError(\"HTTPSConnection(host='a.test', port=443): Failed to "
		 "establish a new "
		 "connection: [Errno 111] Connection refused\")': /simple/x/",
		 "Failed to establish a new connection: [Errno 111] Connection refused"},
		{"'ReadTimeoutError(\"HTTPSConnectionPool(host='a.test', port=443): Read timed "
		 "out. (read "
		 "timeout=15)\")': /x/",
		 "Read timed out. (read timeout=15)"},
		{"'ProtocolError('Connection aborted.', RemoteDisconnected('closed'))': /simple/x/",
		 "Connection aborted."},
		{"'x", ""},
		{"(", "("},
		{"", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(says); i++) {
		const char *line = arena_printf(
			&a,
			"WARNING: Retrying (Retry(total=0)) after connection broken by "
			"%s\nERROR: (from versions: none)",
			says[i][0]);
		const char *told = reason(&a, line);
		assert_not_contains(told, "object at");
		assert_not_contains(told, "Retry(");
		assert_contains(told, says[i][1]);
	}

	assert_string_equal(reason(&a, "WARNING: x after connection broken by 'E('[Errno -3] "
				       "Temporary failure in name resolution')': /x/\nERROR: no x "
				       "(from versions: none)\n"),
			    "name resolution failed, so there is no network or name server; pip: "
			    "no x (from versions: none); the connection failed: [Errno -3] "
			    "Temporary failure in name resolution");
	assert_string_equal(reason(&a, "ERROR: one <a.B object at 0x12>: two <c object at 0x3> "
				       "three <d object at 0x"),
			    "one two three ");
}

static void it_is_found_by_each_of_its_names(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static const char *const names[] = {"python3", "pip", "pip3"}; /* later ones come first */
	const char *dir = test_dir(), *old = arena_strdup(&a, getenv("PATH"));
	struct strlist argv = {0};
	struct err e = {0};
	setenv("PATH", dir, 1);
	assert_int_equal(pip_find(&a, &argv, "a way out", &e), -1);
	assert_int_equal(e.kind, ERR_NETWORK);
	assert_string_equal(e.hint, "a way out");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *path = path_join(&a, dir, names[i]);
		argv.count = 0;
		test_write(path, "#!/bin/sh\n");
		chmod(path, 0755);
		assert_ok(pip_find(&a, &argv, "", &e), &e);
		assert_string_equal(argv.items[0], path);
		assert_int_equal(argv.count, i == 0 ? 4 : 1);
		if (i == 0)
			assert_string_equal(argv.items[1], "-I");
	}

	setenv("PATH", old, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_errors_are_the_reason),
		cmocka_unit_test(test_reason_of_failed_connection_has_no_python_object),
		cmocka_unit_test_teardown(it_is_found_by_each_of_its_names, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
