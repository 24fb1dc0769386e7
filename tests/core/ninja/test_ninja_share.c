#include "support.h"

#include <string.h>

#include "base/sys/proc.h"
#include "core/ninja/ninja.h"

/* "unit7.o" takes 7 s; the others are not known. */
static double by_digit(const char *output, void *user)
{
	(void)user;
	const char *digit = strpbrk(output, "123456789");
	return digit ? *digit - '0' : 0;
}

static const char rules[] = "rule CXX_COMPILER__t\n  command = : > $out\n"
			    "rule CXX_SHARED_LIBRARY_LINKER__t\n  command = : > $out\n"
			    "rule CUSTOM_COMMAND\n  command = : > $out\n";

static void share_of(const char *text, unsigned index, unsigned count, struct arena *a,
		     struct ninja_share *ret)
{
	struct err e = {0};
	const struct ninja_share_options o = {.index = index, .count = count, .seconds = by_digit};
	const char *whole = arena_printf(a, "%s%s", rules, text);

	assert_ok(ninja_share(whole, strlen(whole), "build.ninja", &o, a, ret, &e), &e);
}

static void assert_share(const char *text, unsigned index, unsigned count, const char *outputs,
			 double seconds)
{
	AUTO_ARENA struct arena a = {0};
	struct ninja_share s;

	share_of(text, index, count, &a, &s);
	assert_string_equal(strlist_join(&s.outputs, &a, " "), outputs);
	assert_true(s.seconds == seconds);
}

static void test_divided_by_time(void **state)
{
	(void)state;
	static const char text[] = "build u1.o: CXX_COMPILER__t a\nbuild u9.o: CXX_COMPILER__t a\n"
				   "build u3.o: CXX_COMPILER__t a\nbuild u5.o: CXX_COMPILER__t a\n"
				   "build u4.o: CXX_COMPILER__t a\n";
	assert_share(text, 1, 2, "u9.o u3.o", 12);
	assert_share(text, 2, 2, "u5.o u4.o u1.o", 10);
	assert_share(text, 1, 1, "u9.o u5.o u4.o u3.o u1.o", 22);
	assert_share(text, 7, 7, "", 0);
}

static void test_order_of_the_text_does_not_count(void **state)
{
	(void)state;
	assert_share("build a2.o: CXX_COMPILER__t a\nbuild b2.o: CXX_COMPILER__t a\n", 1, 2, "a2.o",
		     2);
	assert_share("build b2.o: CXX_COMPILER__t a\nbuild a2.o: CXX_COMPILER__t a\n", 1, 2, "a2.o",
		     2);
}

static void test_unknown_ones_take_the_mean(void **state)
{
	(void)state;
	static const char text[] = "build u4.o: CXX_COMPILER__t a\nbuild u2.o: CXX_COMPILER__t a\n"
				   "build new.o: CXX_COMPILER__t a\n";
	assert_share(text, 1, 2, "u4.o", 4);
	assert_share(text, 2, 2, "new.o u2.o", 5);
}

static void test_only_what_all_needs(void **state)
{
	(void)state;
	static const char text[] =
		"build u1.o: CXX_COMPILER__t a\nbuild test2.o: CXX_COMPILER__t a\n"
		"build lib.so: CXX_SHARED_LIBRARY_LINKER__t u1.o\n"
		"build test: CXX_SHARED_LIBRARY_LINKER__t test2.o | lib.so\n"
		"build lib: phony lib.so\nbuild all: phony lib\n";
	assert_share(text, 1, 1, "u1.o", 1);
}

static void test_generators_are_common(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct ninja_share s;
	/* The header is made by a program that is compiled
	 * first; the precompiled header is an input. */
	static const char text[] = "build gen8.o: CXX_COMPILER__t a\n"
				   "build gen: CXX_SHARED_LIBRARY_LINKER__t gen8.o\n"
				   "build made.h | other.h: CUSTOM_COMMAND a | gen\n"
				   "build order: phony || made.h\n"
				   "build pch.gch: CXX_COMPILER__t a\n"
				   "build u1.o: CXX_COMPILER__t a | pch.gch || order\n"
				   "build u2.o: CXX_COMPILER__t a | $\n    other.h\n"
				   "build lib.so: CXX_SHARED_LIBRARY_LINKER__t u1.o u2.o\n"
				   "build all: phony lib.so\n";
	share_of(text, 1, 1, &a, &s);
	assert_string_equal(strlist_join(&s.outputs, &a, " "), "u2.o u1.o");
	assert_int_equal(s.units, 2);
	assert_int_equal(s.common, 2);
}

static void test_circle_ends(void **state)
{
	(void)state;
	assert_share("build all: phony x\nbuild x: phony y u1.o\nbuild y: phony x\nbuild u1.o: "
		     "CXX_COMPILER__t a || x\n",
		     1, 1, "", 0);
}

static void test_what_cannot_be_read(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct ninja_share s;
	const struct ninja_share_options o = {.index = 1, .count = 2, .seconds = by_digit};
	assert_int_equal(ninja_share("rule x\nbuild : x\n", 17, "build.ninja", &o, &a, &s, &e), -1);
	assert_int_equal(e.kind, ERR_INTEGRITY);
	assert_contains(e.msg, "build.ninja:2: ");
	assert_int_equal(ninja_share("\0", 1, "build.ninja", &o, &a, &s, &e), -1);
	assert_contains(e.msg, "NUL");
}

/* ninja itself: each share makes what is its own, whatever the names. */
static void test_ninja_understands_it(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf out = {0};
	struct err e = {0};
	struct proc_result res = {0};
	static const char text[] =
		"build a$ 1.o: CXX_COMPILER__t\nbuild b$:2.o: CXX_COMPILER__t\n"
		"build c3.o: CXX_COMPILER__t\nbuild d$$4.o: CXX_COMPILER__t\n"
		"build lib.so: CXX_SHARED_LIBRARY_LINKER__t a$ 1.o b$:2.o c3.o d$$4.o\n"
		"build all: phony lib.so\n";
	test_dir();
	test_write(test_path("build.ninja"), arena_printf(&a, "%s%s", rules, text));
	size_t made = 0;
	for (unsigned i = 1; i <= 3; i++) {
		AUTO_BUF struct buf share = {0};
		struct ninja_share s;
		share_of(text, i, 3, &a, &s);
		ninja_share_text("build.ninja", &s.outputs, &share);
		test_write(test_path("share.ninja"), buf_cstr(&share));
		const char *const argv[] = {"ninja",     "-C", test_path("."), "-f", "share.ninja",
					    NINJA_SHARE, NULL};
		const struct proc_spec spec = {.argv = argv, .out = &out, .timeout_s = 60};
		buf_reset(&out);
		assert_ok(proc_run(&spec, test_run(), &res, &e), &e);
		assert_int_equal(res.status, 0);
		made += s.outputs.count;
		assert_contains(buf_cstr(&out),
				arena_printf(&a, "[%zu/%zu]", s.outputs.count, s.outputs.count));
	}

	assert_int_equal(made, 3); /* a name with a dollar is left to the last build */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_divided_by_time),
		cmocka_unit_test(test_order_of_the_text_does_not_count),
		cmocka_unit_test(test_unknown_ones_take_the_mean),
		cmocka_unit_test(test_only_what_all_needs),
		cmocka_unit_test(test_generators_are_common),
		cmocka_unit_test(test_circle_ends),
		cmocka_unit_test(test_what_cannot_be_read),
		cmocka_unit_test_teardown(test_ninja_understands_it, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
