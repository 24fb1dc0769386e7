#include "support.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "capture.h"

/* The row of an array whose `key` is `value`; the test fails if there is none. */
static const json_t *row_of(const json_t *j, const char *section, const char *key,
			    const char *value)
{
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(j, section), i, row)
	{
		const char *s = json_string_value(json_object_get(row, key));
		if (s && strcmp(s, value) == 0)
			return row;
	}

	fail_msg("%s has no row with %s '%s'", section, key, value);
	return NULL;
}

static void without_an_option_releases_are_listed(void **state)
{
	(void)state;
	AUTO_FREE char *text = text_of("list");
	assert_contains(text, "name ");
	assert_contains(text, "\n2.6.0-debian  2.6.0 ");
	assert_contains(text, "\n2.9.1 ");
	assert_contains(text, "\nthe tables: /");
	assert_not_contains(text, "darwin-mps");
}

static void every_section_has_rows(void **state)
{
	(void)state;
	static const char *const sections[] = {"releases", "matrices", "profiles", "isas",
					       "gpus",     "toolkits", "blas",     "toggles"};
	AUTO_JSON json_t *j = json_of("list --releases --matrices --profiles --isas --gpus "
				      "--toolkits --blas --toggles --json");
	assert_int_equal(json_object_size(j), ARRAY_LEN(sections) + 2);
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		assert_true(json_array_size(json_object_get(j, sections[i])) > 0);
	/* each release has a file */
	AUTO_ARENA struct arena a = {0};
	struct strlist files = {0};
	struct err e = {0};
	assert_ok(fs_list(PROFILES_DIR, "releases", &a, &files, &e), &e);
	assert_int_equal(json_array_size(json_object_get(j, "releases")), files.count);
}

static void only_what_is_asked_for_is_listed(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of("list --isas --json");
	assert_int_equal(json_object_size(j), 3);
	const json_t *row = row_of(j, "isas", "name", "avx512");
	assert_string_equal(json_string_value(json_object_get(row, "platform")), "x86_64-linux");
	assert_int_equal(json_array_size(json_object_get(row, "flags")), 5);
}

static void several_sections_have_titles(void **state)
{
	(void)state;
	AUTO_FREE char *one = text_of("list --gpus");
	AUTO_FREE char *two = text_of("list --gpus --isas");
	assert_int_equal(strncmp(one, "sm ", 3), 0);
	assert_int_equal(strncmp(two, "isas\nname ", 10), 0);
	assert_contains(two, "\n\ngpus\nsm ");
	assert_contains(one, "Hopper");
	assert_contains(one, "H100, H200");
}

static void profiles_are_those_of_machines_that_exist(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of("list --profiles --json");
	const json_t *row = row_of(j, "profiles", "name", "sm90-avx512");
	assert_string_equal(json_string_value(json_object_get(row, "gpu")), "9.0");
	row_of(j, "profiles", "name", "cpu-avx2");
	row_of(j, "profiles", "name", "darwin-mps");
	row_of(j, "profiles", "name", "sm121-armv9");
	size_t i;
	json_t *p;
	json_array_foreach(json_object_get(j, "profiles"), i, p) assert_string_not_equal(
		json_string_value(json_object_get(p, "name")), "sm121-avx2");
}

static void absent_values_are_null(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of("list --gpus --json");
	assert_true(json_is_null(json_object_get(row_of(j, "gpus", "sm", "sm90"), "cuda_max")));
	assert_string_equal(
		json_string_value(json_object_get(row_of(j, "gpus", "sm", "sm61"), "cuda_max")),
		"12.9");
}

static void words_are_refused(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_FREE char *out = NULL;
	assert_err(capture_run("list gpus", &out, &e), &e, ERR_USAGE, "gpus");
}

static void other_tables_are_listed(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_FREE char *out = NULL;
	AUTO_JSON json_t *j = json_of("list --gpus --json --profiles " PROFILES_DIR);
	assert_non_null(row_of(j, "gpus", "sm", "sm90"));
	assert_null(json_object_get(j, "profiles"));
	assert_err(capture_run("list --profiles /nonexistent", &out, &e), &e, ERR_USAGE,
		   "not a directory");
}

/* Damage in a table that no plan reads. */
static void all_tables_are_read(void **state)
{
	static const char *const files[] = {"cpu.yaml",
					    "ci.yaml",
					    "stable_abi.yaml",
					    "toolkit_tree.yaml",
					    "worlds/debian13.yaml",
					    "tests/2.6.0-debian.yaml"};
	char dir[] = "/tmp/ptbuild-list-XXXXXX";
	AUTO_ARENA struct arena a = {0};

	(void)state;
	assert_non_null(mkdtemp(dir)); /* each command has the test's own directory anew */
	assert_int_equal(system(arena_printf(&a, "cp -rL '%s'/* %s", PROFILES_DIR, dir)), 0);
	const char *command = arena_printf(&a, "list --profiles %s", dir);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct err e = {0};
		AUTO_FREE char *out = NULL;
		const char *path = arena_printf(&a, "%s/%s", dir, files[i]);
		AUTO_FREE char *good = test_read(path);
		test_write(path, arena_printf(&a, "%s\nnonsense: 1\n", good));
		assert_err(capture_run(command, &out, &e), &e, ERR_CONFIG, files[i]);
		assert_contains(e.msg, "unknown key 'nonsense'");
		test_write(path, good);
	}

	AUTO_FREE char *text = text_of(command);
	assert_contains(text, "2.9.1");
	assert_int_equal(system(arena_printf(&a, "rm -r %s", dir)), 0);
}

static void matrices_are_counted(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of("list --matrices --json");
	const json_t *row = row_of(j, "matrices", "name", "build-torchaudio/main");
	assert_string_equal(json_string_value(json_object_get(row, "release")), "2.8.0");
	assert_int_equal(json_integer_value(json_object_get(row, "variants")), 60);
	assert_int_equal(json_integer_value(json_object_get(row, "refused")), 18);
	assert_int_equal(json_integer_value(json_object_get(row, "torchaudio")), 60);
	row = row_of(j, "matrices", "name", "build-pytorch/main");
	assert_int_equal(json_integer_value(json_object_get(row, "pytorch")), 58);
	assert_int_equal(json_integer_value(json_object_get(row, "torchvision")), 2);
	assert_int_equal(json_integer_value(json_object_get(row, "refused")),
			 1); /* darwin-mps, which is planned only */
	row = row_of(j, "matrices", "name", "build-torchvision/cuda-12_9");
	assert_string_equal(json_string_value(json_object_get(row, "view_of")),
			    "build-torchvision/pytorch-2.9");
	AUTO_FREE char *text = text_of("list --matrices");
	assert_contains(text, "build-pytorch/pytorch-2.10-python313   2.10.0        237 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(without_an_option_releases_are_listed, test_teardown),
		cmocka_unit_test_teardown(every_section_has_rows, test_teardown),
		cmocka_unit_test_teardown(matrices_are_counted, test_teardown),
		cmocka_unit_test_teardown(only_what_is_asked_for_is_listed, test_teardown),
		cmocka_unit_test_teardown(several_sections_have_titles, test_teardown),
		cmocka_unit_test_teardown(profiles_are_those_of_machines_that_exist, test_teardown),
		cmocka_unit_test_teardown(absent_values_are_null, test_teardown),
		cmocka_unit_test_teardown(words_are_refused, test_teardown),
		cmocka_unit_test_teardown(other_tables_are_listed, test_teardown),
		cmocka_unit_test_teardown(all_tables_are_read, test_teardown),
	};

	return cmocka_run_group_tests_name("cmd/list", tests, NULL, NULL);
}
