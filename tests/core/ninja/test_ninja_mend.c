#include "support.h"

#include <string.h>

#include "base/buf.h"
#include "core/ninja/ninja_log.h"

static void whole_lines_of_a_log_stay(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t len, whole;
	} cases[] = {
		{"", 0, 0},
		{"# ninja log v6\n", 15, 15},
		{"# ninja log v6\n1\t2\t3\ta.o\tff\n", 28, 28},
		{"# ninja log v6\n1\t2\t3\ta.o\tf", 26, 15},
		{"# ninja", 7, 0},
		{"# ninja log v6\n1\t2\0\0\0\0\n", 23, 15},
		{"\0\0\0", 3, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(ninja_mend_log(cases[i].text, cases[i].len), cases[i].whole);
}

static void add_word(struct buf *b, uint32_t w)
{
	buf_add(b, &w, sizeof(w));
}

static void add_path(struct buf *b, const char *path4, uint32_t id)
{
	add_word(b, (uint32_t)strlen(path4) + 4);
	buf_addstr(b, path4);
	add_word(b, ~id);
}

static void add_deps(struct buf *b, uint32_t out, uint32_t in)
{
	add_word(b, 16 | UINT32_C(1) << 31);
	add_word(b, out);
	add_word(b, 1);
	add_word(b, 0);
	add_word(b, in);
}

static void begin(struct buf *b, uint32_t version)
{
	buf_addstr(b, "# ninjadeps\n");
	add_word(b, version);
}

static void whole_records_of_dependencies_stay(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	begin(&b, 4);
	add_path(&b, "aa.o", 0);
	add_path(&b, "aa.h", 1);
	size_t before = b.len;
	add_deps(&b, 0, 1);
	assert_int_equal(ninja_mend_deps(b.data, b.len), b.len);
	for (size_t n = before; n < b.len; n++)
		assert_int_equal(ninja_mend_deps(b.data, n), before);
	size_t whole = b.len;
	for (int i = 0; i < 32; i++) /* a hole where data never arrived */
		add_word(&b, 0);
	assert_int_equal(ninja_mend_deps(b.data, b.len), whole);
}

static void records_that_cannot_be_are_cut(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	begin(&b, 4);
	add_path(&b, "aa.o", 0);
	size_t whole = b.len;
	add_path(&b, "bb.o", 7); /* not its number */
	assert_int_equal(ninja_mend_deps(b.data, b.len), whole);
	b.len = whole;
	add_deps(&b, 0, 5); /* no such path */
	assert_int_equal(ninja_mend_deps(b.data, b.len), whole);
	b.len = whole;
	add_deps(&b, 3, 0);
	assert_int_equal(ninja_mend_deps(b.data, b.len), whole);
	b.len = whole;
	add_word(&b, UINT32_C(0x7fffffff));
	assert_int_equal(ninja_mend_deps(b.data, b.len), whole);
	b.len = whole;
	add_word(&b, 6);
	buf_addstr(&b, "abcdef");
	assert_int_equal(ninja_mend_deps(b.data, b.len), whole);
}

static void other_versions_are_ninjas_own_business(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	begin(&b, 3);
	add_word(&b, 0);
	assert_int_equal(ninja_mend_deps(b.data, b.len), b.len);
	assert_int_equal(ninja_mend_deps("nonsense of some length", 23), 23);
	assert_int_equal(ninja_mend_deps("", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_lines_of_a_log_stay),
		cmocka_unit_test(whole_records_of_dependencies_stay),
		cmocka_unit_test(records_that_cannot_be_are_cut),
		cmocka_unit_test(other_versions_are_ninjas_own_business),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
