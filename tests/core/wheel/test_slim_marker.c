/* The record of a slimmed distribution: written, read, and damaged. */
#include "support.h"

#include <string.h>

#include "base/sys/fs.h"
#include "core/wheel/slim_marker.h"

static struct arena arena;
static struct err err;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static struct slim_marker two_gpus(void)
{
	struct slim_marker m = {.release = "2.15.0", .ptbuild = "0.3.0"};

	slim_marker_gpu(&m, 120, true, &arena);
	slim_marker_gpu(&m, 90, false, &arena);
	strlist_add(&m.dropped, &arena, "debug");
	return m;
}

static int parse(const char *text, struct slim_marker *ret)
{
	return slim_marker_parse(&(struct file_bytes){text, strlen(text), "marker"}, &arena, ret,
				 &err);
}

static void test_text_is_read_back(void **state)
{
	(void)state;
	const struct slim_marker m = two_gpus();
	struct slim_marker back;
	const char *text = slim_marker_text(&m, &arena);
	assert_string_equal(
		text, "{\"schema\": 1, \"gpus\": [\"12.0+PTX\", \"9.0\"], \"release\": \"2.15.0\", "
		      "\"ptbuild\": \"0.3.0\", \"dropped\": [\"debug\"]}\n");
	assert_ok(parse(text, &back), &err);
	assert_true(slim_marker_same(&m, &back));
	assert_false(slim_marker_adds(&m, &back));
	assert_string_equal(slim_marker_names(&back, &arena), "sm120+ptx+sm90");
	assert_string_equal(back.release, "2.15.0");
	assert_string_equal(back.ptbuild, "0.3.0");
	assert_string_equal(back.dropped.items[0], "debug");
}

static void test_same_needs_equal_gpus_in_any_order(void **state)
{
	(void)state;
	const struct slim_marker m = two_gpus();
	struct slim_marker other;
	assert_ok(parse("{\"schema\":1,\"gpus\":[\"9.0\",\"12.0+PTX\"],\"dropped\":[]}", &other),
		  &err);
	assert_true(slim_marker_same(&m, &other));
	assert_true(slim_marker_adds(&other, &m));
	assert_false(slim_marker_adds(&m, &other));
	assert_ok(parse("{\"schema\":1,\"gpus\":[\"9.0\",\"12.0\"],\"dropped\":[]}", &other), &err);
	assert_false(slim_marker_same(&m, &other));
	assert_ok(parse("{\"schema\":1,\"gpus\":[\"9.0\"],\"dropped\":[],\"later\":{}}", &other),
		  &err);
	assert_false(slim_marker_same(&m, &other));
	assert_false(slim_marker_same(&other, &m));
}

static void test_marker_without_gpus_is_for_any(void **state)
{
	(void)state;
	const struct slim_marker wanted = two_gpus();
	struct slim_marker had;
	assert_ok(parse("{\"schema\":1,\"gpus\":[],\"dropped\":[\"same\"]}", &had), &err);
	assert_false(slim_marker_same(&had, &wanted));
	assert_false(slim_marker_others(&had, &wanted));
	assert_contains(slim_marker_text(&had, &arena), "\"gpus\": []");
	assert_ok(parse("{\"schema\":1,\"gpus\":[\"9.0\"],\"dropped\":[\"same\"]}", &had), &err);
	assert_true(slim_marker_others(&had, &wanted));
	assert_false(slim_marker_others(&wanted, &wanted));
}

static void test_label_names_gpus(void **state)
{
	(void)state;
	static const struct {
		const char *label, *names;
	} rows[] = {
		{"cu128.sm90", "sm90"},
		{"sm90", "sm90"},
		{"cu130.sm80.sm90.ptx", "sm80+sm90+ptx"},
		{"cu128.sm120", "sm120"},
		{"cu128.sm90a.avx512", "sm90a"},
		{"cu128", NULL},
		{"cpu.avx2", NULL},
		{"", NULL},
		{"smith.sm.sm9.sm90x.sm1200.xsm90", NULL},
		{"pt29cu128.sm86", "sm86"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slim_marker m;
		assert_int_equal(slim_marker_of_label(rows[i].label, &arena, &m),
				 rows[i].names != NULL);
		if (rows[i].names)
			assert_string_equal(slim_marker_names(&m, &arena), rows[i].names);
	}
}

static void test_damaged_marker_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"schema\":2,\"gpus\":[],\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":\"9.0\",\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":[9.0],\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":[\"90\"],\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":[\"9.\"],\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":[\"09.0\"],\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":[\"900.0\"],\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":[\"9.0+ptx\"],\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":[\"9.0\\u0000\"],\"dropped\":[]}",
		"{\"schema\":1,\"gpus\":[\"9.0\"]}",
		"{\"schema\":1,\"gpus\":[\"9.0\"],\"dropped\":[\"\\u001b[2J\"]}",
		"{\"schema\":1,\"gpus\":[\"9.0\"],\"dropped\":[],\"release\":\"a\\nb\"}",
		"{\"schema\":1,\"schema\":1,\"gpus\":[\"9.0\"],\"dropped\":[]}",
	};
	struct slim_marker m;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_err(parse(bad[i], &m), &err, ERR_INTEGRITY, "marker");
}

static void test_read_finds_marker_below_dist_info(void **state)
{
	(void)state;
	const struct slim_marker m = two_gpus();
	struct slim_marker back;
	bool any = true;
	test_write(test_path("env/torch-2.15.0.dist-info/RECORD"), "");
	assert_ok(slim_marker_read(test_path("env"), "torch-2.15.0.dist-info", &arena, &back, &any,
				   &err),
		  &err);
	assert_false(any);
	test_write(test_path("env/torch-2.15.0.dist-info/" SLIM_MARKER),
		   slim_marker_text(&m, &arena));
	assert_ok(slim_marker_read(test_path("env"), "torch-2.15.0.dist-info", &arena, &back, &any,
				   &err),
		  &err);
	assert_true(any);
	assert_true(slim_marker_same(&m, &back));
}

static void test_read_follows_no_link(void **state)
{
	(void)state;
	struct slim_marker back;
	bool any;
	test_write(test_path("out/marker"), "{\"schema\":1,\"gpus\":[\"9.0\"],\"dropped\":[]}");
	test_write(test_path("env/torch-2.15.0.dist-info/RECORD"), "");
	const char *link = test_path("env/torch-2.15.0.dist-info/" SLIM_MARKER);
	assert_int_equal(symlink("../../out/marker", link), 0);
	assert_int_equal(slim_marker_read(test_path("env"), "torch-2.15.0.dist-info", &arena, &back,
					  &any, &err),
			 -1);
	assert_int_equal(err.kind, ERR_INTEGRITY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_text_is_read_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_needs_equal_gpus_in_any_order, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_marker_without_gpus_is_for_any, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_label_names_gpus, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_marker_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_finds_marker_below_dist_info, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_read_follows_no_link, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
