/* The rows of applications: mistakes in a table, names, and the wheels that fit. */
#include "support.h"

#include <string.h>

#include "base/sys/fs.h"
#include "core/wheel/application.h"

static struct arena arena;
static struct err err;
static struct application_file table;
static struct official pins;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	table = (struct application_file){0};
	pins = (struct official){0};
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TOP "applications:\n"
#define APP "  - {name: app, version: \"1.0\", source: x, parts: ["
#define OWN "{wheel: app==1.0, python: \">=3.11\", requires: [torch==2.9.0, vision]}"
#define TORCH "{wheel: torch==2.9.0, gpus: [\"80\", \"90\"]}"
#define VISION "{wheel: vision==0.24, requires: [torch==2.9.0], platforms: [x86_64-linux]}"

static void put(const char *path, const char *text)
{
	assert_ok(fs_mkdirs(TRUSTED, path_dir(&arena, test_path("%s", path)), &err), &err);
	assert_ok(fs_write(TRUSTED, test_path("%s", path), text, strlen(text), 0644, &err), &err);
}

static int load(const char *text)
{
	err_clear(&err);
	put("p/bundles.yaml", text);
	return applications_load(test_path("p"), &arena, &table, &err);
}

static void test_damaged_rows(void **state)
{
	(void)state;
	static const struct {
		const char *parts, *text;
	} bad[] = {
		{"{wheel: app}", "not NAME==VERSION"},
		{"{wheel: app==}", "not NAME==VERSION"},
		{"{wheel: torch==2.9.0}", "the first part is not the application: 'app==1.0'"},
		{OWN ", " TORCH, "no part meets the requirement: 'vision'"},
		{"{wheel: app==1.0}, {wheel: app==1.0}", "two parts are both: 'app'"},
		{"{wheel: app==1.0}, {wheel: a.B==1}, {wheel: a-b==2}",
		 "two parts are both: 'a-b'"},
		{"{wheel: app==1.0, requires: [\"torch==\"]}", ":2: "},
		{"{wheel: app==1.0, gpus: [sm90]}", "not a GPU target: 'sm90'"},
		{"{wheel: app==1.0, python: \">=x\"}", ":2: "},
		{"{wheel: app==1.0, platforms: [windows]}", ":2: "},
		{"{wheel: app==1.0, more: 1}", "unknown key 'more'"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *text = arena_printf(&arena, TOP APP "%s]}\n", bad[i].parts);
		assert_err(load(text), &err, ERR_CONFIG, bad[i].text);
		assert_contains(err.msg, "bundles.yaml:2: ");
		assert_int_equal(table.applications_count, 0);
	}

	assert_err(load(TOP APP "{wheel: app==1.0}]}\n" APP "{wheel: app==1.0}]}\n"), &err,
		   ERR_CONFIG, "bundles.yaml:3: listed twice: 'app==1.0'");
	assert_err(load(TOP "  - {name: ../x, version: \"1\", source: x, parts: [{wheel: "
			    "../x==1}]}\n"),
		   &err, ERR_CONFIG, "not a name: '../x'");
}

static void test_a_directory_without_the_table_has_no_rows(void **state)
{
	(void)state;
	assert_ok(applications_load(test_path("nowhere"), &arena, &table, &err), &err);
	assert_int_equal(table.applications_count, 0);
}

static void test_names_find_the_newest_or_suggest(void **state)
{
	(void)state;
	const struct application_row *row;

	assert_ok(load(TOP APP "{wheel: app==1.0}]}\n"
			       "  - {name: app, version: \"1.10\", source: x, parts: [{wheel: "
			       "app==1.10}]}\n"
			       "  - {name: app, version: \"1.9\", source: x, parts: [{wheel: "
			       "app==1.9}]}\n"),
		  &err);
	assert_ok(applications_find(&table, "app", &arena, &row, &err), &err);
	assert_string_equal(row->version, "1.10");
	assert_ok(applications_find(&table, "App==1", &arena, &row, &err), &err);
	assert_string_equal(row->version, "1.0");
	assert_err(applications_find(&table, "aap==1.9", &arena, &row, &err), &err, ERR_USAGE,
		   "unknown application 'aap'");
	assert_contains(err.hint, "did you mean 'app'?");
	err_clear(&err);
	assert_err(applications_find(&table, "app==1.8", &arena, &row, &err), &err, ERR_USAGE,
		   "no bundle of app 1.8");
	assert_contains(err.hint, "1.0 1.10 1.9");
	err_clear(&err);
	assert_err(applications_find(&table, "app==", &arena, &row, &err), &err, ERR_USAGE,
		   "no bundle of app");
}

/* ---- one answer ---- */

static const char *const files[] = {"app-1.0-py3-none-any.whl",
				    "torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl",
				    "torch-2.9.0-cp313-cp313-manylinux_2_28_x86_64.whl",
				    "torch-2.9.0-cp313-cp313-manylinux_2_28_aarch64.whl",
				    "vision-0.24-cp39-abi3-manylinux_2_28_x86_64.whl"};

static struct application_query query(const struct tables *t, const char *parts)
{
	AUTO_BUF struct buf text = {0};

	assert_ok(load(arena_printf(&arena, TOP APP "%s]}\n", parts)), &err);
	buf_addstr(&text, "ptbuild official 1\n");
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		buf_printf(&text, "%s " SHA " 5 %s\n", files[i],
			   strncmp(files[i], "torch", 5) == 0 ? "13.0" : "-");
	put("p/bundles/app-1.0", buf_cstr(&text));
	assert_ok(application_pins(test_path("p"), &table.applications[0], &arena, &pins, &err),
		  &err);
	return (struct application_query){.tables = t,
					  .row = &table.applications[0],
					  .pins = &pins,
					  .python = "3.13",
					  .platform = "x86_64-linux"};
}

static void test_each_part_gets_the_wheel_that_fits(void **state)
{
	(void)state;
	const struct tables *t;
	const struct official_wheel **w;
	struct strlist pythons = {0};

	assert_ok(tables_load(PROFILES_DIR, &arena, &t, &err), &err);
	struct application_query q = query(t, OWN ", " TORCH ", " VISION);
	strlist_ref(&q.gpus, &arena, "9.0");
	assert_ok(application_choose(&q, &arena, &w, &err), &err);
	assert_string_equal(w[0]->file, files[0]);
	assert_string_equal(w[1]->file, files[2]);
	assert_string_equal(w[2]->file, files[4]);
	assert_false(application_cuts(&q, &q.row->parts[0], w[0]));
	assert_true(application_cuts(&q, &q.row->parts[1], w[1]));
	application_pythons(&q, &arena, &pythons);
	assert_string_equal(strlist_join(&pythons, &arena, " "), "3.11 3.13");
	/* the part that this platform does not need */
	q.platform = "aarch64-linux";
	assert_ok(application_choose(&q, &arena, &w, &err), &err);
	assert_string_equal(w[1]->file, files[3]);
	assert_null(w[2]);
}

static void test_conflicts_are_named(void **state)
{
	(void)state;
	const struct tables *t;
	const struct official_wheel **w;

	assert_ok(tables_load(PROFILES_DIR, &arena, &t, &err), &err);
	struct application_query q = query(t, OWN ", " TORCH ", " VISION);
	q.python = "3.10";
	assert_err(application_choose(&q, &arena, &w, &err), &err, ERR_POLICY,
		   "app 1.0 requires Python >=3.11, not 3.10");
	q.python = "3.12";
	err_clear(&err);
	assert_err(application_choose(&q, &arena, &w, &err), &err, ERR_POLICY,
		   "torch 2.9.0 has no wheel for Python 3.12, x86_64-linux");
	q.python = "3.13";
	q.cuda = "12.8";
	err_clear(&err);
	assert_err(application_choose(&q, &arena, &w, &err), &err, ERR_POLICY, "CUDA 12.8");
	q.cuda = NULL;
	strlist_ref(&q.gpus, &arena, "7.5");
	err_clear(&err);
	assert_err(application_choose(&q, &arena, &w, &err), &err, ERR_POLICY,
		   "torch 2.9.0 has no GPU code for compute capability 7.5");
	assert_contains(err.hint, "sm80, sm90");
	/* what one part requires of another, unless one of them is left out */
	q = query(t, OWN ", " TORCH ", {wheel: vision==0.24, requires: [torch==2.8.0]}");
	err_clear(&err);
	assert_err(application_choose(&q, &arena, &w, &err), &err, ERR_POLICY,
		   "vision 0.24 requires 'torch==2.8.0', not torch 2.9.0");
	const bool off[] = {false, false, true};
	q.off = off;
	err_clear(&err);
	assert_ok(application_choose(&q, &arena, &w, &err), &err);
	assert_null(w[2]);
}

static void test_optional_gpu_code_is_no_condition(void **state)
{
	(void)state;
	const struct tables *t;
	const struct official_wheel **w;

	assert_ok(tables_load(PROFILES_DIR, &arena, &t, &err), &err);
	struct application_query q =
		query(t, OWN ", " TORCH ", {wheel: vision==0.24, optional: true, gpus: [90a]}");
	strlist_ref(&q.gpus, &arena, "8.0");
	assert_ok(application_choose(&q, &arena, &w, &err), &err);
	assert_true(application_cuts(&q, &q.row->parts[1], w[1]));
	assert_false(application_cuts(&q, &q.row->parts[2], w[2]));
}

static void test_every_part_has_a_digest(void **state)
{
	(void)state;
	assert_ok(load(TOP APP "{wheel: app==1.0}]}\n"), &err);
	put("p/bundles/app-1.0", "ptbuild official 1\napp-1.1-py3-none-any.whl " SHA " 5 -\n");
	assert_err(application_pins(test_path("p"), &table.applications[0], &arena, &pins, &err),
		   &err, ERR_CONFIG, "has no wheel of app==1.0");
	put("p/bundles/app-1.0", "ptbuild official 1\napp-1.0-py3-none-any.whl 12 5 -\n");
	err_clear(&err);
	assert_err(application_pins(test_path("p"), &table.applications[0], &arena, &pins, &err),
		   &err, ERR_CONFIG, "bundles/app-1.0:2: not a sha256");
}

/* ---- the shipped rows ---- */

static void test_shipped_rows_hold_together(void **state)
{
	(void)state;
	const struct tables *t;

	assert_ok(tables_load(PROFILES_DIR, &arena, &t, &err), &err);
	assert_ok(applications_load(PROFILES_DIR, &arena, &table, &err), &err);
	assert_true(table.applications_count >= 3);
	for (unsigned i = 0; i < table.applications_count; i++) {
		static const char *const platforms[] = {"x86_64-linux", "aarch64-linux"};
		const struct application_row *row = &table.applications[i];
		assert_ok(application_pins(PROFILES_DIR, row, &arena, &pins, &err), &err);
		for (size_t k = 0; k < ARRAY_LEN(platforms); k++) {
			struct strlist pythons = {0};
			struct application_query q = {
				.tables = t, .row = row, .pins = &pins, .platform = platforms[k]};
			strlist_ref(&q.gpus, &arena, "9.0");
			application_pythons(&q, &arena, &pythons);
			if (!strlist_contains(&pythons, "3.12"))
				fail_msg("%s %s: %s", row->name, platforms[k],
					 strlist_join(&pythons, &arena, " "));
		}

		/* a digest of no part would never be used */
		for (size_t k = 0; k < pins.count; k++) {
			bool used = false;
			for (unsigned p = 0; p < row->parts_count && !used; p++)
				used = strcmp(wheel_normalize(row->parts[p].name, &arena),
					      wheel_normalize(pins.wheels[k].name.dist, &arena)) ==
				       0;
			if (!used)
				fail_msg("%s: no part of '%s'", pins.path, pins.wheels[k].file);
		}
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_damaged_rows),
		TEST(test_a_directory_without_the_table_has_no_rows),
		TEST(test_names_find_the_newest_or_suggest),
		TEST(test_each_part_gets_the_wheel_that_fits),
		TEST(test_conflicts_are_named),
		TEST(test_optional_gpu_code_is_no_condition),
		TEST(test_every_part_has_a_digest),
		TEST(test_shipped_rows_hold_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
