#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "base/sys/json.h"

static void lists_become_arrays(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	AUTO_JSON json_t *empty = json_from_strlist(&l);
	assert_int_equal(json_array_size(empty), 0);
	strlist_split(&l, &a, "8.0 9.0", " ");
	AUTO_JSON json_t *two = json_from_strlist(&l);
	assert_int_equal(json_array_size(two), 2);
	assert_string_equal(json_string_value(json_array_get(two, 1)), "9.0");
}

static json_t *twice(const void *member)
{
	return json_integer((json_int_t)2 * *(const int *)member);
}

static void structs_become_objects(void **state)
{
	(void)state;
	static const char *const items[] = {"a", "b"};
	struct row {
		const char *name, *note;
		char kind[4];
		bool on;
		int n;
		unsigned u;
		int64_t size;
		double seconds;
		struct strlist list;
		const char *const *items;
		unsigned items_count;
	} rows[] = {{.name = "x",
		     .note = "",
		     .kind = "k",
		     .on = true,
		     .n = -1,
		     .u = 4294967295U,
		     .size = -1099511627776,
		     .seconds = 0.5,
		     .items = items,
		     .items_count = 2},
		    {.name = NULL}};
	JSON_FIELDS(fields, JSON_FIELD(struct row, name),
		    JSON_IF_FILLED(struct row, note, "remark"), JSON_AS(struct row, kind, "type"),
		    JSON_FIELD(struct row, on), JSON_FIELD(struct row, n),
		    JSON_FIELD(struct row, u), JSON_FIELD(struct row, size),
		    JSON_FIELD(struct row, seconds), JSON_FIELD(struct row, list),
		    JSON_STRINGS(struct row, items), JSON_BY(struct row, n, "twice", twice));
	AUTO_JSON json_t *got = json_rows(rows, 2, sizeof(*rows), fields);
	AUTO_FREE char *text = json_dumps(got, JSON_COMPACT);
	assert_string_equal(
		text, "[{\"name\":\"x\",\"remark\":null,\"type\":\"k\",\"on\":true,\"n\":-1,\"u\":"
		      "4294967295,"
		      "\"size\":-1099511627776,\"seconds\":0.5,\"list\":[],\"items\":[\"a\",\"b\"],"
		      "\"twice\":-2},{\"name\":null,\"remark\":null,\"type\":\"\",\"on\":false,"
		      "\"n\":0,\"u\":0,"
		      "\"size\":0,\"seconds\":0.0,\"list\":[],\"items\":[],\"twice\":0}]");
}

static void missing_strings_are_null(void **state)
{
	(void)state;
	AUTO_JSON json_t *none = json_or_null(NULL);
	AUTO_JSON json_t *some = json_or_null("12.8");
	assert_true(json_is_null(none));
	assert_string_equal(json_string_value(some), "12.8");
}

static void strings_that_are_not_utf8_survive(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	strlist_add(&l, &a,
		    "a\xff"
		    "b");
	AUTO_JSON json_t *list = json_from_strlist(&l);
	assert_string_equal(json_string_value(json_array_get(list, 0)), "a\xef\xbf\xbd"
									"b");
	AUTO_JSON json_t *one = json_or_null("\xc3\xa9");
	assert_string_equal(json_string_value(one), "\xc3\xa9");
}

static void written_keys_keep_their_order(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	AUTO_JSON json_t *j =
		json_pack("{s:i, s:s, s:[s]}", "zeta", 1, "alpha", "x/y", "list", "a");
	assert_ok(json_write(j, TRUSTED, test_path("f.json"), &e), &e);
	char *text = test_read(test_path("f.json"));
	assert_string_equal(
		text, "{\n \"zeta\": 1,\n \"alpha\": \"x/y\",\n \"list\": [\n  \"a\"\n ]\n}\n");
	free(text);
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	AUTO_JSON json_t *j = json_pack("{s:I, s:f, s:b, s:n}", "big", (json_int_t)1 << 53, "real",
					0.1, "flag", 1, "none");
	AUTO_JSON json_t *back = NULL;
	assert_ok(json_write(j, TRUSTED, test_path("f"), &e), &e);
	assert_ok(json_read(TRUSTED, test_path("f"), &back, &e), &e);
	assert_true(json_equal(j, back));
}

static void documents_are_printed_without_stdio(void **state)
{
	(void)state;
	struct err e = {0};
	test_dir();
	AUTO_JSON json_t *j = json_pack("[i]", 7);
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	int file = open(test_path("out"), O_WRONLY | O_CREAT, 0644);
	dup2(file, STDOUT_FILENO);
	int rc = json_print(j, &e);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(file);
	assert_int_equal(rc, 0);
	char *text = test_read(test_path("out"));
	assert_string_equal(text, "[\n 7\n]\n");
	free(text);
}

static void full_output_is_an_error(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_JSON json_t *j = json_pack("[i]", 7);
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	int file = open("/dev/full", O_WRONLY);
	dup2(file, STDOUT_FILENO);
	int rc = json_print(j, &e);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(file);
	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_contains(e.msg, "cannot write 'standard output'");
	assert_err(json_write(j, TRUSTED, test_path("none/f"), &e), &e, ERR_SYSTEM, "none/f");
}

static void bad_documents_are_refused_with_their_place(void **state)
{
	(void)state;
	struct err e = {0};
	static const struct {
		const char *text;
		const char *place;
	} bad[] = {
		{"", ":1:0: invalid JSON"},
		{"{\"a\": 1,\n \"a\": 2}", ":2:4: invalid JSON: duplicate object key"},
		{"{\n\n\"a\" 1}", ":3:5: invalid JSON"},
		{"[1, 2] x", ":1:8: invalid JSON"},
		{"\"\xff\"", ":1:1: invalid JSON"},
		{"[\"\\u0000\"]", ":1:9: invalid JSON"},
		{"[01]", ":1:2: invalid JSON"},
	};
	test_dir();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *j = NULL;
		test_write(test_path("f"), bad[i].text);
		assert_err(json_read(TRUSTED, test_path("f"), &j, &e), &e, ERR_INTEGRITY, "/f:");
		assert_contains(e.msg, bad[i].place);
		assert_null(j);
	}
}

static void deep_nesting_is_refused(void **state)
{
	(void)state;
	struct err e = {0};
	char deep[100001];
	memset(deep, '[', 100000);
	deep[100000] = '\0';
	test_dir();
	test_write(test_path("f"), deep);
	json_t *j = NULL;
	assert_err(json_read(TRUSTED, test_path("f"), &j, &e), &e, ERR_INTEGRITY, "invalid JSON");
}

static void missing_and_too_large_files(void **state)
{
	(void)state;
	struct err e = {0};
	json_t *j = NULL;
	test_dir();
	assert_err(json_read(TRUSTED, test_path("none"), &j, &e), &e, ERR_SYSTEM,
		   "/none': No such file");
	test_write(test_path("big"), "");
	assert_int_equal(truncate(test_path("big"), (64 << 20) + 1), 0);
	assert_err(json_read(TRUSTED, test_path("big"), &j, &e), &e, ERR_INTEGRITY, "too large");
	assert_null(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_become_arrays),
		cmocka_unit_test(structs_become_objects),
		cmocka_unit_test(missing_strings_are_null),
		cmocka_unit_test(strings_that_are_not_utf8_survive),
		cmocka_unit_test_teardown(written_keys_keep_their_order, test_teardown),
		cmocka_unit_test_teardown(what_is_written_is_read, test_teardown),
		cmocka_unit_test_teardown(documents_are_printed_without_stdio, test_teardown),
		cmocka_unit_test(full_output_is_an_error),
		cmocka_unit_test_teardown(bad_documents_are_refused_with_their_place,
					  test_teardown),
		cmocka_unit_test_teardown(deep_nesting_is_refused, test_teardown),
		cmocka_unit_test_teardown(missing_and_too_large_files, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
