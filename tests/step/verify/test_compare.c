#include "wheel_fixture.h"

#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "step/verify/verify.h"

#define CODE                                                                                       \
	"int helper(int x) { return x * 3; } int answer(void) { return %d; } int other(int x) { "  \
	"return x + 7; }\n"

/* The fixture's tree, changed by a shell command in it, as a wheel in a directory of its own. */
static const char *wheel(const char *name, const char *code, const char *change)
{
	shell("rm -rf '%s'", test_path("tree"));
	make_tree();
	compile("tree/tiny/libtiny.so", code, "-O1 -Wl,--build-id=none");
	shell("cd '%s' && { %s; }", test_path("tree"), change);
	struct pack_request q = request();
	mkdir(test_path("%s", name), 0755);
	q.out_dir = arena_strdup(&arena, test_path("%s", name));
	return pack_ok(&q).path;
}

static const char *code(int n)
{
	return arena_printf(&arena, CODE, n);
}

/* Until the next. */
static json_t *compare(const char *one, const char *other)
{
	static json_t *found;

	json_decref(found);
	assert_ok(compare_wheels(one, other, test_run(), &arena, &found, &err), &err);
	return found;
}

static size_t count_of(const json_t *c)
{
	return json_array_size(json_object_get(c, "differences"));
}

static void assert_difference(const json_t *c, const char *member, const char *where,
			      const char *what)
{
	const json_t *d;
	size_t i;

	json_array_foreach(json_object_get(c, "differences"), i,
			   d) if (strcmp(json_member(d, "member"), member) == 0 &&
				  strcmp(json_member(d, "where"), where) == 0 &&
				  test_has(json_member(d, "what"), what)) return;
	fail_msg("no '%s' of '%s' '%s' in:\n%s", what, member, where, json_dumps(c, 0));
}

static bool has_difference(const json_t *c, const char *where)
{
	const json_t *d;
	size_t i;

	json_array_foreach(json_object_get(c, "differences"), i,
			   d) if (strcmp(json_member(d, "where"), where) == 0) return true;
	return false;
}

static void test_the_same(void **state)
{
	(void)state;
	json_t *c = compare(wheel("a", code(42), ":"), wheel("b", code(42), ":"));
	assert_true(json_is_true(json_object_get(c, "same")));
	assert_int_equal(count_of(c), 0);
	assert_int_equal(json_int(c, "members"), 0);
}

static void test_a_line_of_text(void **state)
{
	(void)state;
	json_t *c = compare(wheel("a", code(42), "printf 'one\\ntwo\\nthree\\n' >tiny/t.txt"),
			    wheel("b", code(42), "printf 'one\\nzwei\\nthree\\n' >tiny/t.txt"));
	assert_true(json_is_false(json_object_get(c, "same")));
	assert_difference(c, "tiny/t.txt", "line 2", "is 'two' in the first, 'zwei' in the second");
	/* and RECORD, which holds its digest */
	assert_difference(c, INFO "/RECORD", "rows", "1 row");
	assert_int_equal(json_int(c, "members"), 2);
}

static void test_the_symbol_that_differs(void **state)
{
	(void)state;
	json_t *c = compare(wheel("a", code(42), ":"), wheel("b", code(43), ":"));
	assert_difference(c, "tiny/libtiny.so", "section .text", "1 of ");
	assert_difference(c, "tiny/libtiny.so", "symbol answer", "has other bytes in .text");
	assert_false(has_difference(c, "symbol helper"));
	assert_false(has_difference(c, "symbol other"));
}

static void test_symbols_that_come_and_go(void **state)
{
	(void)state;
	json_t *c = compare(
		wheel("a", code(42), ":"),
		wheel("b",
		      "int answer(void) { return 42; } int fresh(int x) { return x / 5 + 9; }\n",
		      ":"));
	assert_difference(c, "tiny/libtiny.so", "symbol helper", "is in the first only");
	assert_difference(c, "tiny/libtiny.so", "symbol fresh", "is in the second only");
	assert_true(has_difference(c, "section .text"));
	assert_false(has_difference(c, "symbol answer"));
}

static void test_sections_that_come_and_go(void **state)
{
	(void)state;
	const char *extra = arena_printf(
		&arena, "%s__attribute__((section(\"extra\"))) int more = 1;\n", code(42));
	json_t *c = compare(wheel("a", code(42), ":"), wheel("b", extra, ":"));
	assert_difference(c, "tiny/libtiny.so", "section extra", "is in the second only");
}

static void test_other_binaries(void **state)
{
	(void)state;
	json_t *c = compare(
		wheel("a", code(42), "printf 'a\\0bcd' >tiny/x.bin; printf 'a\\0b' >tiny/y.bin"),
		wheel("b", code(42), "printf 'a\\0bxd' >tiny/x.bin; printf 'a\\0bcd' >tiny/y.bin"));
	assert_difference(c, "tiny/x.bin", "", "1 of 5 bytes differ, the first at 0x3");
	assert_difference(c, "tiny/y.bin", "", "has 3 bytes in the first, 5 in the second");
}

static void test_members_that_come_and_go(void **state)
{
	(void)state;
	json_t *c = compare(wheel("a", code(42), "echo 1 >tiny/old.py"),
			    wheel("b", code(42), "echo 1 >tiny/new.py"));
	assert_difference(c, "tiny/old.py", "", "is in the first only");
	assert_difference(c, "tiny/new.py", "", "is in the second only");
}

static void test_modes(void **state)
{
	(void)state;
	json_t *c = compare(wheel("a", code(42), "echo 1 >tiny/s; chmod 644 tiny/s"),
			    wheel("b", code(42), "echo 1 >tiny/s; chmod 755 tiny/s"));
	assert_difference(c, "tiny/s", "mode", "is 100644 in the first, 100755 in the second");
	assert_int_equal(json_int(c, "members"), 0);
}

static void test_modes_that_differ_alike_are_one_line(void **state)
{
	(void)state;
	json_t *c = compare(
		wheel("a", code(42), "echo 1 >tiny/s; echo 1 >tiny/t; chmod 644 tiny/s tiny/t"),
		wheel("b", code(42), "echo 1 >tiny/s; echo 1 >tiny/t; chmod 755 tiny/s tiny/t"));
	assert_difference(c, "", "mode",
			  "2 members have 100644 in the first, 100755 in the second");
	assert_false(has_difference(c, "tiny/s"));
}

/* The same members, after a change to the list of them. */
static void rewrite(const char *from, const char *to, const char *script)
{
	shell("mkdir -p '%s' && python3 - '%s' '%s' <<'END'\n"
	      "import sys, zipfile\n"
	      "with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], 'w') as "
	      "new:\n"
	      "    items = old.infolist()\n"
	      "    data = {i.filename: old.read(i) for i in items}\n"
	      "%s"
	      "    for i in items:\n"
	      "        new.writestr(i, data[i.filename])\n"
	      "END",
	      test_path("c"), from, to, script);
}

static void test_the_archive_itself(void **state)
{
	(void)state;
	const char *one = wheel("a", code(42), ":"),
		   *other = arena_strdup(&arena, test_path("c/tiny_pack-1.0-py3-none-any.whl"));
	rewrite(one, other, "    items = items[1:] + items[:1]\n");
	json_t *c = compare(one, other);
	assert_difference(c, "", "order", "in another order from 'tiny/__init__.py' on");
	rewrite(one, other, "    for i in items: i.compress_type = 0\n");
	c = compare(one, other);
	assert_difference(c, "tiny/libtiny.so", "packing", "packed differently");
	rewrite(one, other, "    items[0].date_time = (2001, 1, 1, 0, 0, 0)\n");
	c = compare(one, other);
	assert_difference(c, "", "time",
			  "1 members have another one, the first is 'tiny/__init__.py'");
}

static void test_details_are_cut(void **state)
{
	(void)state;
	AUTO_BUF struct buf one = {0}, other = {0};
	for (int i = 0; i < 40; i++) {
		buf_printf(&one, "__attribute__((section(\"s%d\"))) int v%d = 1;\n", i, i);
		buf_printf(&other, "__attribute__((section(\"s%d\"))) int v%d = 2;\n", i, i);
	}

	json_t *c = compare(wheel("a", buf_cstr(&one), ":"), wheel("b", buf_cstr(&other), ":"));
	size_t n = 0;
	const json_t *d;
	size_t i;
	json_array_foreach(json_object_get(c, "differences"), i, d) n +=
		strcmp(json_member(d, "member"), "tiny/libtiny.so") == 0;
	assert_int_equal(n, COMPARE_DETAILS + 1);
	assert_difference(c, "tiny/libtiny.so", "", "more than these");
}

/* A file that only looks like ELF, and one whose section table leaves it. */
static void test_broken_elf(void **state)
{
	(void)state;
	json_t *c = compare(wheel("a", code(42), "printf '\\177ELF\\0one' >tiny/x.so"),
			    wheel("b", code(42), "printf '\\177ELF\\0two' >tiny/x.so"));
	assert_difference(c, "tiny/x.so", "", "3 of 8 bytes differ");
	const char *cut = "head -c 700 tiny/libtiny.so >tiny/cut.so";
	c = compare(wheel("c", code(42), cut),
		    wheel("d", code(43),
			  "printf x >>tiny/libtiny.so; head -c 701 tiny/libtiny.so >tiny/cut.so"));
	assert_difference(c, "tiny/cut.so", "", "has 700 bytes in the first, 701");
}

static void test_json(void **state)
{
	(void)state;
	const char *one = wheel("a", code(42), ":"), *other = wheel("b", code(43), ":");
	json_t *c = compare(one, other);
	char sha256[DIGEST_HEX_LEN + 1];
	assert_ok(digest_file(other, sha256, &err), &err);
	assert_true(json_is_false(json_object_get(c, "same")));
	assert_true(count_of(c) > 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(c, "sha256"), 1)),
			    sha256);
}

static void test_what_cannot_be_compared(void **state)
{
	(void)state;
	json_t *c = NULL;
	const char *one = wheel("a", code(42), ":");
	assert_err(compare_wheels(one, test_path("absent.whl"), test_run(), &arena, &c, &err), &err,
		   ERR_SYSTEM, "absent.whl");
	test_write(test_path("no.whl"), "no archive");
	assert_err(compare_wheels(one, arena_strdup(&arena, test_path("no.whl")), test_run(),
				  &arena, &c, &err),
		   &err, ERR_INTEGRITY, "no.whl");
	assert_null(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_same),
		TEST(test_a_line_of_text),
		TEST(test_the_symbol_that_differs),
		TEST(test_symbols_that_come_and_go),
		TEST(test_sections_that_come_and_go),
		TEST(test_other_binaries),
		TEST(test_members_that_come_and_go),
		TEST(test_modes),
		TEST(test_modes_that_differ_alike_are_one_line),
		TEST(test_the_archive_itself),
		TEST(test_details_are_cut),
		TEST(test_broken_elf),
		TEST(test_json),
		TEST(test_what_cannot_be_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
