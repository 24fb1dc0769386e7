#include "support.h"

#include <string.h>

#include "base/buf.h"

static void empty_buffer_is_an_empty_string(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	assert_string_equal(buf_cstr(&b), "");
	buf_add(&b, NULL, 0);
	assert_int_equal(b.len, 0);
	assert_string_equal(buf_cstr(&b), "");
}

static void pieces_are_appended(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	buf_addstr(&b, "sm");
	buf_addc(&b, '9');
	buf_add(&b, "0a-rest", 2);
	buf_printf(&b, "+%s%d", "ptx", 7);
	assert_string_equal(b.data, "sm90a+ptx7");
	assert_int_equal(b.len, 10);
}

static void bytes_with_nul_are_kept(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	buf_add(&b, "a\0b", 3);
	buf_addc(&b, '\0');
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "a\0b\0", 5);
}

static void it_grows_and_stays_terminated(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	for (int i = 0; i < 100000; i++) {
		buf_addc(&b, (char)('a' + i % 26));
		assert_true(b.cap > b.len);
		assert_int_equal(b.data[b.len], 0);
	}

	for (int i = 0; i < 100000; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
}

static void long_printf_fits(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	buf_addstr(&b, ">");
	buf_printf(&b, "%70000d", 1);
	assert_int_equal(b.len, 70001);
	assert_int_equal(b.data[0], '>');
	assert_int_equal(b.data[70000], '1');
}

static void reserved_bytes_belong_to_the_caller(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	buf_addstr(&b, "ab");
	char *to = buf_reserve(&b, 4);
	memset(to, 'x', 4);
	b.len += 3;
	assert_string_equal(buf_cstr(&b), "abxxx");
}

static void reset_keeps_memory_release_does_not(void **state)
{
	(void)state;
	struct buf b = {0};
	buf_addstr(&b, "text");
	size_t cap = b.cap;
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_int_equal(b.cap, cap);
	assert_string_equal(buf_cstr(&b), "");
	buf_release(&b);
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
	buf_addstr(&b, "again");
	assert_string_equal(buf_cstr(&b), "again");
	buf_release(&b);
}

static void what_a_url_cannot_have_is_encoded(void **state)
{
	(void)state;
	AUTO_BUF struct buf b = {0};
	buf_addurl(&b, "/a b/c+d%é~", "/");
	assert_string_equal(buf_cstr(&b), "/a%20b/c%2Bd%25%C3%A9~");
	buf_addurl(&b, "+/", "+");
	assert_string_equal(buf_cstr(&b), "/a%20b/c%2Bd%25%C3%A9~+%2F");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_buffer_is_an_empty_string),
		cmocka_unit_test(pieces_are_appended),
		cmocka_unit_test(bytes_with_nul_are_kept),
		cmocka_unit_test(it_grows_and_stays_terminated),
		cmocka_unit_test(long_printf_fits),
		cmocka_unit_test(reserved_bytes_belong_to_the_caller),
		cmocka_unit_test(reset_keeps_memory_release_does_not),
		cmocka_unit_test(what_a_url_cannot_have_is_encoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
