/* Matrices: those that are shipped are the branches of the recipe projects,
 * name by name; files that are wrong are refused with their place. */
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/plan/plan.h"
#include "core/variant/variant.h"
#include "recipe_branches.h"

static const struct matrix *matrix_of(const char *name, struct arena *a)
{
	struct err e = {0};
	const struct matrix *m = NULL;

	assert_ok(matrix_load(tables, name, a, &m, &e), &e);
	return m;
}

static void names_of(const char *name, struct arena *a, struct strlist *ret)
{
	const struct matrix *m = matrix_of(name, a);
	struct matrix_walk w = {0};
	const char *variant;

	while ((variant = matrix_next(m, &w, a)))
		strlist_ref(ret, a, variant);
}

static size_t count_of(const char *name)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};

	names_of(name, &a, &l);
	return l.count;
}

static void every_branch_holds_its_recipes_name_by_name(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct recipe_branch branches[RECIPE_BRANCHES];
	recipe_branches(branches, &a);
	for (size_t i = 0; i < RECIPE_BRANCHES; i++) {
		struct strlist got = {0};
		names_of(branches[i].name, &a, &got);
		assert_string_equal(matrix_of(branches[i].name, &a)->release->name,
				    branches[i].release);
		strlist_sort(&got);
		strlist_sort(&branches[i].names);
		if (got.count != branches[i].recipes || branches[i].names.count != got.count)
			fail_msg("%s: %zu variants for %zu recipes", branches[i].name, got.count,
				 branches[i].recipes);
		for (size_t k = 0; k < got.count; k++)
			assert_string_equal(got.items[k], branches[i].names.items[k]);
	}
}

static void the_staging_branches_hold_what_they_are_said_to(void **state)
{
	(void)state;
	assert_int_equal(count_of("build-pytorch/main-staging"), 51);
	assert_int_equal(count_of("build-torchvision/main-staging"), 45);
}

static void all_branches_together_hold_1355(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct recipe_branch branches[RECIPE_BRANCHES];
	size_t all =
		count_of("build-pytorch/main-staging") + count_of("build-torchvision/main-staging");
	recipe_branches(branches, &a);
	for (size_t i = 0; i < RECIPE_BRANCHES; i++)
		all += count_of(branches[i].name);
	assert_int_equal(all, 1355);
}

static void the_counts_of_the_readmes_are_matrices_too(void **state)
{
	(void)state;
	assert_int_equal(count_of("build-pytorch/main"), 62);
	assert_int_equal(count_of("build-pytorch/pytorch-2.9-cuda12_9"), 66);
	assert_int_equal(count_of("build-pytorch/pytorch-2.9-vllm-0.15.1"), 117);
	assert_int_equal(count_of("build-pytorch/pytorch-2.9-vllm-0.14.0"), 131);
	assert_int_equal(count_of("build-pytorch/pytorch-2.10-cuda13_0"), 68);
	assert_int_equal(count_of("build-torchvision/cuda-12_8"), 44);
	assert_int_equal(count_of("build-torchvision/cuda-12_9"), 57);
	assert_int_equal(count_of("build-torchvision/cuda-13_0"), 12);
}

/* Names of recipes in their own spelling. */
static void the_branches_together_hold_every_recipe_name(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct recipe_branch branches[RECIPE_BRANCHES];
	struct strlist held = {0}, names = {0};
	AUTO_FREE char *text = test_read(TEST_DATA_DIR "/recipe-names.txt");
	recipe_branches(branches, &a);
	for (size_t i = 0; i < RECIPE_BRANCHES; i++)
		names_of(branches[i].name, &a, &held);
	assert_non_null(text);
	strlist_split(&names, &a, text, "\n");
	assert_int_equal(names.count, 342);
	for (size_t i = 0; i < names.count; i++) {
		struct err e = {0};
		struct variant v;
		assert_ok(variant_parse(tables, names.items[i], &a, &v, &e), &e);
		if (!strlist_contains(&held, variant_name(&v, &a)))
			fail_msg("no branch holds %s", names.items[i]);
	}
}

static void every_shipped_matrix_loads_and_names_variants(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	struct err e = {0};
	assert_ok(matrix_names(tables, &a, &names, &e), &e);
	assert_int_equal(names.count, 19);
	for (size_t i = 0; i < names.count; i++) {
		struct strlist l = {0};
		names_of(names.items[i], &a, &l);
		assert_true(l.count > 0);
		assert_true(*matrix_of(names.items[i], &a)->note);
		for (size_t k = 0; k < l.count; k++) {
			struct variant v;
			assert_ok(variant_parse(tables, l.items[k], &a, &v, &e), &e);
			assert_string_equal(variant_name(&v, &a), l.items[k]);
		}
	}
}

static void rows_are_walked_in_their_order(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	names_of("build-pytorch/main", &a, &l);
	assert_string_equal(l.items[0], "pytorch-python313-cpu-avx2");
	assert_string_equal(l.items[5], "pytorch-python313-cpu-armv9");
	assert_string_equal(l.items[6], "pytorch-python313-cuda12_8-sm75-avx");
	assert_string_equal(l.items[61], "torchaudio-python313-cuda12_8-sm75-avx");
}

static const char head[] = "note: mine\nrelease: 2.8.0\npythons: [\"3.13\"]\nrows:\n";

static const char *file_with(const char *text)
{
	test_dir();
	test_write(test_path("mine.yaml"), text);
	return test_path("mine.yaml");
}

static void a_file_of_the_users(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	names_of(file_with(arena_printf(
			 &a,
			 "%s  - {packages: [pytorch, torchvision], gpus: [sm90+sm80], toolkits: "
			 "[\"12.8\"], isas: [graviton3]}\n",
			 head)),
		 &a, &l);
	assert_int_equal(l.count, 2);
	assert_string_equal(l.items[0], "pytorch-python313-cuda12_8-sm80+sm90-neoverse_v1");
	assert_string_equal(l.items[1], "torchvision-python313-cuda12_8-sm80+sm90-neoverse_v1");
}

static void a_view_of_a_view(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	names_of(file_with("note: mine\nof: build-torchvision/cuda-12_9\nonly: [\"*-cpu-*\", "
			   "\"*-sm90-*\"]\nexcept: "
			   "[\"*-avx\", "
			   "\"*-arm*\"]\n"),
		 &a, &l);
	assert_int_equal(l.count, 8);
	assert_string_equal(l.items[0], "torchvision-python313-cpu-avx2");
	assert_string_equal(l.items[7], "torchvision-python313-cuda12_9-sm90-avx512vnni");
}

static void wrong_rows_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *row;
		const char *message;
	} cases[] = {
		{"{gpus: [sm91], toolkits: [\"12.8\"], isas: [avx2]}",
		 "mine.yaml:5: unknown GPU target 'sm91'"},
		{"{gpus: [sm90], toolkits: [\"12.5\"], isas: [avx2]}",
		 "mine.yaml:5: unknown CUDA toolkit '12.5'"},
		{"{gpus: [sm90], toolkits: [\"12.8\"], isas: [avx3]}",
		 "mine.yaml:5: unknown instruction set or group 'avx3'"},
		{"{gpus: [sm90], toolkits: [\"12.8\"], isas: [avx2], pythons: [\"2.7\"]}",
		 "mine.yaml:5: unknown Python '2.7'"},
		{"{gpus: [sm90], toolkits: [\"12.8\"], isas: [avx2], packages: [torch]}",
		 "'packages' cannot be 'torch'"},
		{"{gpus: [sm90], isas: [avx2]}", "mine.yaml:5: no 'toolkits' with 'sm90'"},
		{"{gpus: [cpu], toolkits: [\"12.8\"], isas: [avx2]}",
		 "mine.yaml:5: 'toolkits' with 'cpu'"},
		{"{gpus: [sm90], toolkits: [\"12.8\"]}", "mine.yaml:5: no 'isas' with 'sm90'"},
		{"{gpus: [mps], isas: [avx2]}", "mine.yaml:5: 'isas' with 'mps'"},
		{"{gpus: [cpu, sm90], isas: [avx2]}", "mine.yaml:5: 'cpu' and 'sm90' in one row"},
		{"{gpus: [], isas: [avx2]}", "mine.yaml:5"},
		{"{isas: [avx2]}", "gpus"},
		{"{gpus: [cpu], isas: [avx2], gpu: [cpu]}", "gpu"},
		{"{gpus: [cpu], isas: [avx2, avx2]}",
		 "'pytorch-python313-cpu-avx2' is in two rows"},
	};

	(void)state;
	AUTO_ARENA struct arena a = {0};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct matrix *m = NULL;
		struct err e = {0};
		const char *path = file_with(arena_printf(&a, "%s  - %s\n", head, cases[i].row));
		assert_err(matrix_load(tables, path, &a, &m, &e), &e, ERR_CONFIG, cases[i].message);
		assert_null(m);
		test_teardown(state);
	}
}

static void wrong_files_are_refused(void **state)
{
	static const struct {
		const char *text;
		const char *message;
	} cases[] = {
		{"note: mine\nrelease: 2.8.0\npythons: [\"3.13\"]\n", "no 'rows', and no 'of'"},
		{"note: mine\nrelease: 2.8.7\nrows:\n  - {gpus: [mps]}\n",
		 "unknown release '2.8.7'"},
		{"note: mine\nrelease: 2.8.0\nrows:\n  - {gpus: [mps]}\n",
		 "mine.yaml:4: no 'pythons', here or in the file"},
		{"note: mine\nof: build-pytorch/main\nrelease: 2.8.0\n",
		 "has no release, no pythons and no rows of its own"},
		{"note: mine\nof: build-pytorch/mane\n", "unknown matrix 'build-pytorch/mane'"},
		{"release: 2.8.0\nrows:\n  - {gpus: [mps]}\n", "note"},
	};

	(void)state;
	AUTO_ARENA struct arena a = {0};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct matrix *m = NULL;
		struct err e = {0};
		assert_err(matrix_load(tables, file_with(cases[i].text), &a, &m, &e), &e,
			   ERR_CONFIG, cases[i].message);
		assert_null(m);
		test_teardown(state);
	}
}

static void a_view_of_itself_is_refused(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct matrix *m = NULL;
	struct err e = {0};
	test_dir();
	const char *path = test_path("mine.yaml");
	test_write(path, arena_printf(&a, "note: mine\nof: %s\n", path));
	assert_err(matrix_load(tables, path, &a, &m, &e), &e, ERR_CONFIG, "is a view too deep");
}

static void names_that_are_none(void **state)
{
	static const char *const names[] = {"",
					    "nothing",
					    "../isa",
					    "/build-pytorch/main",
					    "build-pytorch",
					    "build-pytorch/main.yaml",
					    "/etc/none.yaml"};

	(void)state;
	AUTO_ARENA struct arena a = {0};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct matrix *m = NULL;
		struct err e = {0};
		assert_err(matrix_load(tables, names[i], &a, &m, &e), &e, ERR_CONFIG,
			   "unknown matrix");
		assert_contains(e.hint, "ptbuild list --matrices");
		assert_null(m);
	}
}

static void a_mistyped_name_gets_the_nearest(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct matrix *m = NULL;
	struct err e = {0};
	assert_err(matrix_load(tables, "build-pytorch/pytorch-2.10-python314", &a, &m, &e), &e,
		   ERR_CONFIG, "unknown matrix");
	assert_contains(e.hint, "did you mean 'build-pytorch/pytorch-2.10-python313'?");
}

static void globs(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist l = {0};
	assert_false(strings_match(l.items, l.count, "pytorch-python313-cpu-avx2"));
	strlist_ref(&l, &a, "*-avx2");
	assert_true(strings_match(l.items, l.count, "pytorch-python313-cpu-avx2"));
	assert_false(strings_match(l.items, l.count, "pytorch-python313-cpu-avx512"));
	strlist_ref(&l, &a, "pytorch-python31[23]-*-avx512");
	assert_true(strings_match(l.items, l.count, "pytorch-python313-cpu-avx512"));
	assert_false(strings_match(l.items, l.count, "pytorch-python311-cpu-avx512"));
}

#define TEST(f) cmocka_unit_test_teardown(f, test_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_branch_holds_its_recipes_name_by_name),
		TEST(the_staging_branches_hold_what_they_are_said_to),
		TEST(all_branches_together_hold_1355),
		TEST(the_counts_of_the_readmes_are_matrices_too),
		TEST(the_branches_together_hold_every_recipe_name),
		TEST(every_shipped_matrix_loads_and_names_variants),
		TEST(rows_are_walked_in_their_order),
		TEST(a_file_of_the_users),
		TEST(a_view_of_a_view),
		TEST(wrong_rows_are_refused_with_their_place),
		TEST(wrong_files_are_refused),
		TEST(a_view_of_itself_is_refused),
		TEST(names_that_are_none),
		TEST(a_mistyped_name_gets_the_nearest),
		TEST(globs),
	};

	return cmocka_run_group_tests_name("matrix", tests, load, unload);
}
