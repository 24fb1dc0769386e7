#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/root/toolkit.h"

static struct arena arena;

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void assert_parse(const char *output, const char *version, const char *id)
{
	const char *got_version = NULL, *got_id = NULL;

	toolchain_parse(output, &arena, &got_version, &got_id);
	assert_string_equal(got_version, version);
	assert_string_equal(got_id, id);
}

static void test_parse_gcc(void **state)
{
	(void)state;
	assert_parse("gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software "
		     "Foundation, Inc.\n",
		     "12.2.0", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0");
	assert_parse("x86_64-linux-gnu-gcc-14 (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)\n", "14.2.1",
		     "x86_64-linux-gnu-gcc-14 (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)");
}

static void test_parse_clang(void **state)
{
	(void)state;
	assert_parse("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n", "14.0.6",
		     "Debian clang version 14.0.6");
	assert_parse("Ubuntu clang version 18.1.3 (1ubuntu1)\n", "18.1.3",
		     "Ubuntu clang version 18.1.3 (1ubuntu1)");
}

static void test_parse_linkers(void **state)
{
	(void)state;
	assert_parse("GNU ld (GNU Binutils for Debian) 2.40\n", "2.40",
		     "GNU ld (GNU Binutils for Debian) 2.40");
	assert_parse("GNU ld version 2.30-113.el8\n", "2.30", "GNU ld version 2.30-113.el8");
	assert_parse("mold 2.37.1 (compatible with GNU ld)\n", "2.37.1",
		     "mold 2.37.1 (compatible with GNU ld)");
}

static void test_parse_bare_numbers(void **state)
{
	(void)state;
	assert_parse("1.11.1\n", "1.11.1", "1.11.1");
	assert_parse("1.11.1.git.kitware.jobserver-1\n", "1.11.1",
		     "1.11.1.git.kitware.jobserver-1");
}

static void test_parse_python_and_others(void **state)
{
	(void)state;
	assert_parse("Python 3.13.5\n", "3.13.5", "Python 3.13.5");
	assert_parse("Python 3.15.0a1+", "3.15.0", "Python 3.15.0a1+");
	assert_parse("patchelf 0.14.3\n", "0.14.3", "patchelf 0.14.3");
	assert_parse("git version 2.39.5 (Apple Git-154)\n", "2.39.5",
		     "git version 2.39.5 (Apple Git-154)");
	assert_parse("patchelf 9\n", "9", "patchelf 9");
}

static void test_parse_nvcc(void **state)
{
	(void)state;
	assert_parse("nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA "
		     "Corporation\nBuilt on "
		     "Thu_Mar_28_02:18:24_PDT_2024\n"
		     "Cuda compilation tools, release 12.4, V12.4.131\nBuild "
		     "cuda_12.4.r12.4/compiler.34097967_0\n",
		     "12.4", "Cuda compilation tools, release 12.4, V12.4.131");
}

static void test_parse_nothing(void **state)
{
	(void)state;
	assert_parse("", "", "");
	assert_parse("pyenv: no such command\n", "", "");
	assert_parse("(1.2.3\n", "", "");
}

static void test_host(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r;
	const struct toolchain *t = NULL;
	assert_ok(root_open(NULL, &arena, &r, &e), &e);
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e);
	assert_string_equal(t->fingerprint, r.fingerprint);
	const struct tool *gcc = toolchain_get(t, "gcc");
	assert_string_equal(gcc->path, root_find_program(&r, "gcc", &arena));
	assert_true(strchr(gcc->version, '.') != NULL);
	assert_contains(gcc->id, gcc->version);
	assert_contains(t->text, gcc->id);
	assert_true(toolchain_get(t, "cmake")->version[0] != '\0');
	assert_true(toolchain_get(t, "ninja")->version[0] != '\0');
}

static void test_same_tools_without_a_sandbox(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r;
	const struct toolchain *in = NULL, *out = NULL;
	assert_ok(root_open(NULL, &arena, &r, &e), &e);
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &in, &e), &e);
	assert_ok(toolchain_probe(&r, SANDBOX_NONE, test_run(), &arena, &out, &e), &e);
	assert_string_equal(in->text, out->text);
}

static void test_every_known_tool_is_in_the_list(void **state)
{
	(void)state;
	static const char *const names[] = {"gcc",        "g++",     "clang", "ld",     "cmake",
					    "ninja",      "python3", "nvcc",  "ccache", "patch",
					    "pkg-config", "git",     "mold"};
	struct err e = {0};
	struct root r;
	const struct toolchain *t = NULL;
	assert_ok(root_open(NULL, &arena, &r, &e), &e);
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e);
	assert_int_equal(t->count, ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct tool *tool = toolchain_get(t, names[i]);
		assert_non_null(tool);
		assert_int_equal(tool->path == NULL,
				 root_find_program(&r, names[i], &arena) == NULL);
		if (!tool->path)
			assert_string_equal(tool->version, "");
	}

	assert_null(toolchain_get(t, "no-such-tool"));
}

/* A root with nothing but a shell script interpreter, bound together
 * from the host's: tools are scripts that say what they are told to. */
static void script(const char *name, const char *text)
{
	const char *path = test_path("root/usr/local/bin/%s", name);
	test_write(path, text);
	assert_int_equal(chmod(path, 0755), 0);
}

static struct root toy_root(void)
{
	struct err e = {0};
	struct root r;
	AUTO_BUF struct buf out = {0};

	test_dir();
	assert_int_equal(mkdir(test_path("root"), 0755), 0);
	const char *copy = arena_printf(&arena,
					"mkdir -p '%1$s/usr/bin' '%1$s/usr/local/bin' '%1$s/etc' "
					"&& cp /bin/sh '%1$s/usr/bin/sh' && ln -s "
					"usr/bin '%1$s/bin' && "
					"for f in $(ldd /bin/sh | grep -o '/[^ ]*'); do mkdir -p "
					"\"%1$s${f%%/*}\" && cp -L $f \"%1$s$f\"; done",
					test_path("root"));
	assert_ok(proc_capture((const char *const[]){"sh", "-c", copy, NULL}, test_run(), &out, &e),
		  &e);
	script("gcc", "#!/bin/sh\necho 'gcc (Toy) 99.1.0'\n");
	script("cmake", "#!/bin/sh\necho 'cmake version 77.2'; echo 'this is not it: 1.1.1'\n");
	script("ld", "#!/bin/sh\necho nonsense 1.0; exit 1\n");
	script("git", "#!/bin/sh\necho 'git version 5.5'\n");
	script("ninja", "#!/bin/sh\necho 'a line on the wrong stream 6.6' >&2; echo 1.13.0\n");
	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	return r;
}

static void test_tools_of_an_unpacked_root(void **state)
{
	(void)state;
	struct err e = {0};
	const struct toolchain *t = NULL;
	struct root r = toy_root();
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e);
	assert_string_equal(toolchain_get(t, "gcc")->version, "99.1.0");
	assert_string_equal(toolchain_get(t, "gcc")->path, "/usr/local/bin/gcc");
	assert_string_equal(toolchain_get(t, "cmake")->version, "77.2");
	assert_string_equal(toolchain_get(t, "ninja")->version, "1.13.0");
	assert_string_equal(toolchain_get(t, "git")->version, "5.5");
	assert_null(toolchain_get(t, "g++")->path);
	assert_string_equal(toolchain_get(t, "g++")->version, "");
}

static void test_text_holds_what_changes_bytes(void **state)
{
	(void)state;
	struct err e = {0};
	const struct toolchain *t = NULL;
	struct root r = toy_root();
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e);
	assert_string_equal(
		t->text, "cmake: cmake version 77.2\ngcc: gcc (Toy) 99.1.0\nld: \nninja: 1.13.0\n");
}

static void test_a_broken_tool_has_no_version(void **state)
{
	(void)state;
	struct err e = {0};
	const struct toolchain *t = NULL;
	struct root r = toy_root();
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e);
	assert_string_equal(toolchain_get(t, "ld")->path, "/usr/local/bin/ld");
	assert_string_equal(toolchain_get(t, "ld")->version, "");
}

/* Killed as for memory: what it would have said is no part of the key for anybody. */
static void test_a_killed_tool_is_no_answer(void **state)
{
	(void)state;
	struct err e = {0};
	const struct toolchain *t = NULL;
	struct root r = toy_root();
	script("git", "#!/bin/sh\n[ -e /tmp/asked ] && echo 'git version 5.5' && exit\n: "
		      ">/tmp/asked\nkill -9 $$\n");
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e);
	assert_string_equal(toolchain_get(t, "git")->version, "5.5");
	script("cmake", "#!/bin/sh\nkill -9 $$\n");
	t = NULL;
	assert_err(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e, ERR_SYSTEM,
		   "'/usr/local/bin/cmake --version' was killed by signal 9");
	assert_null(t);
}

static void test_root_without_a_shell(void **state)
{
	(void)state;
	struct err e = {0};
	struct root r;
	const struct toolchain *t = NULL;
	test_dir();
	test_write(test_path("root/usr/bin/x"), "");
	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	assert_err(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e, ERR_SYSTEM,
		   "has no sh");
	assert_null(t);
}

static void test_unpacked_root_without_a_sandbox(void **state)
{
	(void)state;
	struct err e = {0};
	const struct toolchain *t = NULL;
	struct root r = toy_root();
	assert_err(toolchain_probe(&r, SANDBOX_NONE, test_run(), &arena, &t, &e), &e, ERR_POLICY,
		   "without a sandbox");
}

/* A root whose tools all answer, and the memo of what they said. */
static struct root remembered(const char **ret_memo)
{
	struct err e = {0};
	const struct toolchain *t = NULL;
	struct root r = toy_root();

	script("ld", "#!/bin/sh\necho 'GNU ld (Toy) 2.99'\n");
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e);
	*ret_memo = arena_strdup(&arena, test_path("memo"));
	toolchain_remember(t, &r, SANDBOX_BWRAP, *ret_memo);
	return r;
}

static void test_what_was_said_is_recalled(void **state)
{
	(void)state;
	struct err e = {0};
	const struct toolchain *asked = NULL;
	const char *memo = NULL;
	struct root r = remembered(&memo);
	const struct toolchain *t = toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena);
	assert_non_null(t);
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &asked, &e), &e);
	assert_string_equal(t->text, asked->text);
	assert_string_equal(t->fingerprint, asked->fingerprint);
	assert_int_equal(t->count, asked->count);
	for (size_t i = 0; i < t->count; i++) {
		assert_string_equal(t->tools[i].version, asked->tools[i].version);
		assert_string_equal(t->tools[i].id, asked->tools[i].id);
	}

	assert_string_equal(toolchain_get(t, "gcc")->version, "99.1.0");
	assert_null(toolchain_get(t, "g++")->path);
}

static void test_nothing_is_recalled_of_another_root(void **state)
{
	(void)state;
	const char *memo = NULL;
	struct root r = remembered(&memo), other = r;
	assert_null(toolchain_recall(&r, SANDBOX_NONE, memo, &arena));
	assert_null(toolchain_recall(&r, SANDBOX_BWRAP, test_path("no-memo"), &arena));
	other.fingerprint[0] = (char)(r.fingerprint[0] == 'a' ? 'b' : 'a');
	assert_null(toolchain_recall(&other, SANDBOX_BWRAP, memo, &arena));
	assert_non_null(toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena));
	/* the same place and size, another file; a new one; one that went */
	assert_int_equal(unlink(test_path("root/usr/local/bin/gcc")), 0);
	assert_null(toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena));
	script("gcc", "#!/bin/sh\necho 'gcc (Toy) 99.2.0'\n");
	assert_null(toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena));
	r = remembered(&memo);
	assert_non_null(toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena));
	script("mold", "#!/bin/sh\necho 'mold 2.0'\n");
	assert_null(toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena));
}

static void test_a_damaged_memo_is_none(void **state)
{
	(void)state;
	const char *memo = NULL;
	struct root r = remembered(&memo);
	AUTO_FREE char *good = test_read(memo);
	size_t len = strlen(good);
	for (size_t i = 0; i < len; i++) {
		char *bad = arena_strdup(&arena, good);
		bad[i] = (char)(bad[i] ^ 1);
		test_write_bytes(memo, bad, len);
		assert_null(toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena));
		test_write_bytes(memo, good, i);
		assert_null(toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena));
	}

	test_write(memo, good);
	assert_non_null(toolchain_recall(&r, SANDBOX_BWRAP, memo, &arena));
}

static void test_a_tool_that_says_nothing_is_asked_again(void **state)
{
	(void)state;
	struct err e = {0};
	const struct toolchain *t = NULL;
	struct root r = toy_root(); /* its ld fails */
	assert_ok(toolchain_probe(&r, SANDBOX_BWRAP, test_run(), &arena, &t, &e), &e);
	toolchain_remember(t, &r, SANDBOX_BWRAP, test_path("memo"));
	assert_int_not_equal(access(test_path("memo"), F_OK), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		T(test_parse_gcc),
		T(test_parse_clang),
		T(test_parse_linkers),
		T(test_parse_bare_numbers),
		T(test_parse_python_and_others),
		T(test_parse_nvcc),
		T(test_parse_nothing),
		T(test_host),
		T(test_same_tools_without_a_sandbox),
		T(test_every_known_tool_is_in_the_list),
		T(test_tools_of_an_unpacked_root),
		T(test_text_holds_what_changes_bytes),
		T(test_a_broken_tool_has_no_version),
		T(test_a_killed_tool_is_no_answer),
		T(test_root_without_a_shell),
		T(test_unpacked_root_without_a_sandbox),
		T(test_what_was_said_is_recalled),
		T(test_nothing_is_recalled_of_another_root),
		T(test_a_damaged_memo_is_none),
		T(test_a_tool_that_says_nothing_is_asked_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
