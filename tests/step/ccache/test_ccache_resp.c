#include "support.h"

#include <string.h>

#include "step/ccache/ccache_relay.h"

#define KEY "0123456789abcdefghijklmnopqrstuv0"
#define GET "*2\r\n$3\r\nGET\r\n$40\r\nccache:" KEY "\r\n"

static enum resp_state parse(const char *text, struct resp_command *c)
{
	return resp_parse(text, strlen(text), c);
}

static void a_command_is_read(void **state)
{
	struct resp_command c;
	char key[RESP_MAX_KEY];

	(void)state;
	assert_int_equal(parse(GET "*1\r\n", &c), RESP_DONE);
	assert_int_equal(c.count, 2);
	assert_int_equal(c.used, strlen(GET));
	assert_true(resp_is(&c, "get"));
	assert_false(resp_is(&c, "GETX"));
	assert_true(resp_key(&c, key));
	assert_string_equal(key, KEY);
}

static void every_beginning_wants_more(void **state)
{
	struct resp_command c;

	(void)state;
	for (size_t len = 0; len < strlen(GET); len++)
		assert_int_equal(resp_parse(GET, len, &c), RESP_MORE);
}

static void bytes_in_a_string_are_any(void **state)
{
	static const char text[] = "*1\r\n$6\r\n\r\n\0*$\n\r\n";
	struct resp_command c;

	(void)state;
	assert_int_equal(resp_parse(text, sizeof(text) - 1, &c), RESP_DONE);
	assert_int_equal(c.args[0].len, 6);
	assert_memory_equal(c.args[0].data, "\r\n\0*$\n", 6);
}

static void what_is_no_command_is_refused(void **state)
{
	static const char *const bad[] = {"GET x\r\n",
					  "*\r\n",
					  "*0\r\n",
					  "*5\r\n",
					  "*-1\r\n",
					  "*2x\r\n",
					  "*2\rx",
					  "*1\r\n+OK\r\n",
					  "*1\r\n$-1\r\n",
					  "*1\r\n$3\r\nGETxx",
					  "*1\r\n$268435457\r\n",
					  "*99999999999999999999999999999999\r\n",
					  "*1\r\n$18446744073709551616\r\n"};
	struct resp_command c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(parse(bad[i], &c), RESP_BAD);
}

static void keys_are_ccaches_own(void **state)
{
	static const char *const bad[] = {
		"*2\r\n$3\r\nGET\r\n$7\r\nccache:\r\n", "*2\r\n$3\r\nGET\r\n$8\r\nsecret12\r\n",
		"*2\r\n$3\r\nGET\r\n$17\r\nccache:../../pass\r\n",
		"*2\r\n$3\r\nGET\r\n$15\r\nccache:UPPERCAS\r\n", "*1\r\n$3\r\nGET\r\n"};
	struct resp_command c;
	char key[RESP_MAX_KEY];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(parse(bad[i], &c), RESP_DONE);
		assert_false(resp_key(&c, key));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_read),
		cmocka_unit_test(every_beginning_wants_more),
		cmocka_unit_test(bytes_in_a_string_are_any),
		cmocka_unit_test(what_is_no_command_is_refused),
		cmocka_unit_test(keys_are_ccaches_own),
	};

	return cmocka_run_group_tests_name("ccache_resp", tests, NULL, NULL);
}
