/* What every test program shares. Include this first: it brings in cmocka and its headers. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/run.h"

/* Seconds after which something hangs: the only limit that a test
 * holds against a wall clock. What it must not wait for takes longer. */
enum { HANG_S = 120 };

/* test_dir: a fresh empty directory for the running test, whose path is the same for the process;
 * removed by test_teardown, and at the latest when the process ends. */
const char *test_dir(void);
/* test_path: "<the current test directory>/<printf text>", in one of 8 rotating static buffers. */
const char *test_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* test_teardown: a cmocka teardown that removes the test directory. */
int test_teardown(void **state);
/* test_write: writes a file (parents made). test_read: the whole file as a malloc'd string, NULL if
 * absent. */
void test_write(const char *path, const char *text);
void test_write_bytes(const char *path, const void *data, size_t len);
char *test_read(const char *path);
/* test_python: the active virtual environment is one of this version ("3.13"), so that what is
 * planned does not depend on the machine's Python. */
void test_python(const char *version);
/* test_count_entries: how many names a directory has. */
size_t test_count_entries(const char *dir);
/* test_run: a quiet struct run that cannot be cancelled. */
const struct run *test_run(void);

/* assert_file: the file holds this text. */
#define assert_file test_file_holds
void test_file_holds(const char *path, const char *text);

/* assert_ok: the call gave 0; else the test fails with the error's message. */
#define assert_ok(call, e)                                                                         \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			fail_msg("%s: %s (hint: %s)", #call, (e)->msg, (e)->hint);                 \
	} while (0)
/* assert_err: the call gave -1 with this kind, and the message contains the text. */
#define assert_err(call, e, want_kind, text)                                                       \
	do {                                                                                       \
		err_clear(e);                                                                      \
		assert_int_equal((call), -1);                                                      \
		assert_int_equal((e)->kind, (want_kind));                                          \
		assert_contains((e)->msg, (text));                                                 \
	} while (0)
/* assert_contains: the text has this part. */
#define assert_contains(text, part)                                                                \
	do {                                                                                       \
		if (!test_has((text), (part)))                                                     \
			fail_msg("'%s' is not in: %s", (part), (text));                            \
	} while (0)
#define assert_not_contains(text, part)                                                            \
	do {                                                                                       \
		if (test_has((text), (part)))                                                      \
			fail_msg("'%s' is in: %s", (part), (text));                                \
	} while (0)
int test_has(const char *text, const char *part);
/* test_own_mounts: puts the process, which must have no threads yet, into namespaces where it may
 * mount, whoever it is; false if there are none. */
bool test_own_mounts(void);
