#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "step/compile/build_parts.h"

static struct arena arena;

static struct build_log read_log(const char *text)
{
	struct build_log l = {0};
	build_log_read(text, strlen(text), &arena, &l);
	return l;
}

static int release(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void the_error_of_the_failed_unit_is_told(void **state)
{
	(void)state;
	struct build_log l = read_log(
		"[1/9] Building CXX object a.o\nnote: some error: that is only spoken of\n[2/9] "
		"Building CXX object d/b.cpp.o\n"
		"FAILED: d/b.cpp.o \n/usr/bin/c++ -Werror=x -c b.cpp\nb.cpp: In function 'f':\n"
		"b.cpp:3:1: error: expected ';'\nb.cpp:9:1: error: later\n[3/9] x\nFAILED: "
		"d/c.cpp.o\nc.cpp:1:1: error: other\n");
	assert_string_equal(l.unit, "d/b.cpp.o");
	assert_string_equal(l.error, "b.cpp:3:1: error: expected ';'");
	assert_null(l.killed);
}

static void newer_ninjas_say_the_exit_code(void **state)
{
	(void)state;
	struct build_log l =
		read_log("  FAILED: [code=1] d/b.o d/b.d\nx: fatal error: y.h: No such file\n");
	assert_string_equal(l.unit, "d/b.o");
	assert_string_equal(l.error, "x: fatal error: y.h: No such file");
	assert_null(l.killed);
	l = read_log("FAILED: [code=137] d/b.o\nccache gcc -c b.c\n");
	assert_string_equal(l.unit, "d/b.o");
	assert_string_equal(l.killed, "FAILED: [code=137] d/b.o");
	l = read_log("FAILED: [code=1");
	assert_non_null(l.error);
}

static void without_a_unit_the_first_error_is_told(void **state)
{
	(void)state;
	struct build_log l = read_log("hello\nx.cpp:3:1: error: one\ny.cpp:9:9: error: two\n");
	assert_null(l.unit);
	assert_string_equal(l.error, "x.cpp:3:1: error: one");
	l = read_log("the text says FAILED: nothing here\nerror: e\n");
	assert_null(l.unit);
	assert_string_equal(l.error, "error: e");
}

static void cmakes_reason_is_on_the_next_line(void **state)
{
	(void)state;
	struct build_log l =
		read_log("-- ok\nCMake Error at CMakeLists.txt:3 (message):\n  no such thing\n\n");
	assert_string_equal(l.error, "CMake Error at CMakeLists.txt:3 (message): no such thing");
}

static void pips_wrapping_is_not_the_reason(void **state)
{
	(void)state;
	struct build_log l =
		read_log("error: subprocess-exited-with-error\n  RuntimeError: the reason\n");
	assert_string_equal(l.error, "  RuntimeError: the reason");
}

static void without_an_error_line_the_last_words_count(void **state)
{
	(void)state;
	assert_string_equal(read_log("one\ntwo\n \n").error, "two");
	assert_string_equal(read_log("").error, "");
	assert_string_equal(read_log("\n\n").error, "");
}

static void long_lines_are_cut(void **state)
{
	(void)state;
	char text[4096];
	memset(text, 'x', sizeof(text));
	memcpy(text, "a: error: ", 10);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(strlen(read_log(text).error), 500);
}

static void killed_compilers_are_known(void **state)
{
	(void)state;
	static const char *const words[] = {
		"c++: fatal error: Killed signal terminated program cc1plus",
		"g++: internal compiler error: Killed (program cc1plus)",
		"virtual memory exhausted: Cannot allocate memory",
		"cc1plus: out of memory allocating 65536 bytes after a total of 1234 bytes",
		"collect2: fatal error: ld terminated with signal 9 [Killed]",
		"nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
		"/usr/bin/ld: final link failed: memory exhausted",
		"mold: fatal: cannot allocate memory",
		"clang: error: unable to execute command: Killed",
		"LLVM ERROR: out of memory",
		"terminate called after throwing an instance of 'std::bad_alloc'",
		"Killed",
		"/bin/sh: line 1: 12345 Killed                  ccache gcc -c x.c",
		"sh: 1: Killed",
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char text[512];
		snprintf(text, sizeof(text),
			 "[1/2] x\nFAILED: d/x.o \nc++ -c x.cpp\n%s\nninja: build stopped\n",
			 words[i]);
		struct build_log l = read_log(text);
		if (!l.killed)
			fail_msg("not known: %s", words[i]);
		assert_string_equal(l.killed, words[i]);
		assert_string_equal(l.unit, "d/x.o");
	}
}

static void words_alike_are_no_kill(void **state)
{
	(void)state;
	static const char *const words[] = {
		"x.cpp:3: error: 'Killed' was not declared in this scope",
		"x.cpp:3: error: expected Killed",
		"-- Looking for Killed - found",
		"KilledByUser",
		"Killed_x.cpp:1:1: error: e",
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (read_log(words[i]).killed)
			fail_msg("taken for a kill: %s", words[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_error_of_the_failed_unit_is_told, release),
		cmocka_unit_test_teardown(newer_ninjas_say_the_exit_code, release),
		cmocka_unit_test_teardown(without_a_unit_the_first_error_is_told, release),
		cmocka_unit_test_teardown(cmakes_reason_is_on_the_next_line, release),
		cmocka_unit_test_teardown(pips_wrapping_is_not_the_reason, release),
		cmocka_unit_test_teardown(without_an_error_line_the_last_words_count, release),
		cmocka_unit_test_teardown(long_lines_are_cut, release),
		cmocka_unit_test_teardown(killed_compilers_are_known, release),
		cmocka_unit_test_teardown(words_alike_are_no_kill, release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
