/* What units depend on, from lists of compile commands made by hand. */
#include "support.h"

#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "core/ci/units.h"
#include "shipped.h"

static struct arena arena;
static struct err err;
static const struct tables *tables;

static int load(void **state)
{
	static struct arena all;

	(void)state;
	tables = shipped_tables(&all);
	return 0;
}

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

/* Three C++ units, one of them the one that holds the GPU list, and
 * two CUDA units; `more` is behind the flags of the named unit. */
static const char *tree(const char *profile, const char *gpu, const char *isa, const char *unit,
			const char *more)
{
	static const char *const files[] = {"a.cpp", "b.cpp", "torch/csrc/cuda/Module.cpp", "x.cu",
					    "y.cu"};
	AUTO_BUF struct buf b = {0};

	buf_addstr(&b, "[");
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		const char *flags = i < 2    ? isa
				    : i == 2 ? arena_printf(&arena, "%s -DARCHS=%s", isa, gpu)
					     : gpu;
		buf_printf(&b,
			   "%s{\"directory\": \"/d\", \"file\": \"/ptbuild/src/%s\", \"command\": "
			   "\"cc %s%s -c -o %s.o "
			   "%s\"}",
			   i ? "," : "", files[i], flags, strcmp(files[i], unit) == 0 ? more : "",
			   files[i], files[i]);
	}

	buf_addstr(&b, "]");
	const char *path = test_path("%s.json", profile);
	test_write(path, buf_cstr(&b));
	return arena_strdup(&arena, path);
}

static const char *good(const char *profile)
{
	const char *dash = strchr(profile, '-');
	return tree(profile, arena_strndup(&arena, profile, (size_t)(dash - profile)), dash, "",
		    "");
}

static struct configured_tree *read_all(const char *const *paths, size_t count)
{
	struct configured_tree *t = arena_array(&arena, count, sizeof(*t));

	for (size_t i = 0; i < count; i++)
		assert_ok(units_read(tables, paths[i], &arena, &t[i], &err), &err);
	return t;
}

static struct unit_model model_of(const char *const *paths, size_t count)
{
	struct unit_model m;
	assert_ok(units_model(tables, read_all(paths, count), count, &arena, &m, &err), &err);
	return m;
}

static void test_four_trees(void **state)
{
	(void)state;
	const char *const paths[] = {good("sm80-avx2"), good("sm80-avx512"), good("sm90-avx2"),
				     good("sm90-avx512")};
	struct unit_model m = model_of(paths, 4);
	assert_int_equal(m.count, 5);
	assert_int_equal(m.by[0][UNIT_ISA], 2);
	assert_int_equal(m.by[0][UNIT_BOTH], 1);
	assert_int_equal(m.by[1][UNIT_GPU], 2);
	assert_int_equal(m.total, 20);
	assert_int_equal(m.distinct, 2 * 2 + 2 * 2 + 4);
	assert_int_equal(m.unexpected.count, 0);
}

/* Three are enough to know what a unit depends on. */
static void test_cost_of_a_matrix(void **state)
{
	(void)state;
	const char *const paths[] = {good("sm80-avx2"), good("sm80-avx512"), good("sm90-avx2")};
	struct unit_model m = model_of(paths, 3);
	struct variant variants[8];
	const struct variant *list[8];
	struct unit_cost c;
	size_t n = 0;
	for (const char *const *name =
		     (const char *const[]){"pytorch-python313-cuda12_8-sm80-avx2",
					   "pytorch-python313-cuda12_8-sm80-avx512",
					   "pytorch-python313-cuda12_8-sm90-avx2",
					   "pytorch-python313-cuda12_8-sm90-avx512",
					   "pytorch-python313-cuda12_8-sm120-avx2",
					   "pytorch-python313-cuda12_8-sm120-avx512",
					   "pytorch-python313-cpu-avx2",
					   "torchvision-python313-cuda12_8-sm90-avx2", NULL};
	     *name; name++, n++) {
		assert_ok(variant_parse(tables, *name, &arena, &variants[n], &err), &err);
		list[n] = &variants[n];
	}

	units_cost(&m, list, n, &arena, &c);
	assert_int_equal(c.variants, 6);
	assert_int_equal(c.others, 2);
	assert_int_equal(c.gpus, 3);
	assert_int_equal(c.isas, 2);
	assert_int_equal(c.total, 30);
	assert_int_equal(c.distinct, 2 * 2 + 2 * 3 + 6);
}

static void test_flags_that_leak(void **state)
{
	(void)state;
	const char *const paths[] = {
		good("sm80-avx2"),
		tree("sm80-avx512", "sm80", "-avx512", "x.cu", " -Xcompiler -mavx512f"),
		tree("sm90-avx2", "sm90", "-avx2", "b.cpp", " -DSM=90")};
	struct unit_model m = model_of(paths, 3);
	assert_int_equal(m.unexpected.count, 2);
	assert_contains(strlist_join(&m.unexpected, &arena, "\n"),
			"'x.cu' is compiled for the GPU and depends on the instruction set");
	assert_contains(strlist_join(&m.unexpected, &arena, "\n"),
			"'b.cpp' is compiled for the CPU and depends on the GPU list");
}

/* Which units hold the GPU list in a header no command
 * shows: the table knows it, for each kind of source. */
static const char *tree_with_headers(const char *profile, const char *isa, bool apart)
{
	const char *path = test_path("%s.json", profile);
	AUTO_BUF struct buf b = {0};

	buf_printf(&b,
		   "[{\"file\": \"/ptbuild/src/torch/csrc/cuda/Module.cpp\", \"command\": \"cc %s "
		   "-c -o m.o\"},"
		   "{\"file\": \"/ptbuild/src/aten/src/ATen/cuda/CUDAContext.cpp\", \"command\": "
		   "\"cc %s -c -o c.o\"}",
		   isa, isa);
	if (apart)
		buf_printf(
			&b,
			",{\"file\": \"/ptbuild/src/aten/src/ATen/cuda/detail/NvccTargets.cpp\", "
			"\"command\": \"cc "
			"%s -c -o n.o\"}",
			isa);
	buf_addstr(&b, "]");
	test_write(path, buf_cstr(&b));
	return arena_strdup(&arena, path);
}

static void test_the_list_in_a_header(void **state)
{
	(void)state;
	for (int apart = 0; apart < 2; apart++) {
		const char *const paths[] = {tree_with_headers("sm80-avx2", "-mavx2", apart),
					     tree_with_headers("sm90-avx2", "-mavx2", apart),
					     tree_with_headers("sm90-avx512", "-mavx512f", apart)};
		struct unit_model m = model_of(paths, 3);
		assert_int_equal(m.unexpected.count, 0);
		assert_int_equal(m.by[0][UNIT_BOTH], apart ? 1 : 2);
		assert_int_equal(m.by[0][UNIT_ISA], apart ? 2 : 0);
	}
}

static void test_trees_that_say_nothing(void **state)
{
	(void)state;
	const char *const paths[] = {good("sm80-avx2"), good("sm90-avx512")};
	struct unit_model m;
	assert_err(units_model(tables, read_all(paths, 2), 2, &arena, &m, &err), &err, ERR_USAGE,
		   "cannot compare the 2 trees: no two of them differ");
}

static void test_one_thing_only(void **state)
{
	(void)state;
	const char *const paths[] = {good("sm80-avx2"), good("sm90-avx2")};
	struct unit_model m = model_of(paths, 2);
	assert_true(m.gpu_compared);
	assert_false(m.isa_compared);
	assert_int_equal(m.by[0][UNIT_GPU], 1);
}

static void test_units_that_not_every_tree_has(void **state)
{
	(void)state;
	const char *one = good("sm80-avx2");
	test_write(
		test_path("sm90-avx2.json"),
		"[{\"file\": \"/ptbuild/src/x.cu\", \"command\": \"cc sm90 -c -o x.cu.o x.cu\"},"
		"{\"file\": \"/ptbuild/src/z.cu\", \"command\": \"cc sm90 -c -o z.cu.o z.cu\"}]");
	const char *const paths[] = {one, test_path("sm90-avx2.json")};
	struct unit_model m = model_of(paths, 2);
	assert_int_equal(m.count, 1);
	assert_int_equal(m.elsewhere, 5);
}

static void test_a_directory_of_a_tree(void **state)
{
	(void)state;
	struct configured_tree t;
	test_write(test_path("sm90-avx2/build/compile_commands.json"),
		   "[{\"file\": \"/home/u/x/src/x.cu\", \"command\": \"cc -c -o x.o x.cu\"}]");
	assert_ok(units_read(tables, test_path("sm90-avx2"), &arena, &t, &err), &err);
	assert_int_equal(t.count, 1);
	assert_true(t.units[0].cuda);
	assert_string_equal(t.units[0].key, "x.cu x.o");
	assert_string_equal(t.profile.name, "sm90-avx2");
}

static void test_what_is_refused(void **state)
{
	(void)state;
	struct configured_tree t;
	test_write(test_path("list.json"), "[]");
	assert_err(units_read(tables, test_path("list.json"), &arena, &t, &err), &err, ERR_CONFIG,
		   "list.json");
	assert_contains(err.hint, "sm90-avx512.json");
	test_write(test_path("sm90-avx2.json"), "{}");
	assert_err(units_read(tables, test_path("sm90-avx2.json"), &arena, &t, &err), &err,
		   ERR_INTEGRITY, "is not a list of compile commands");
	test_write(test_path("sm90-avx2.json"), "[{\"file\": \"x\"}]");
	assert_err(units_read(tables, test_path("sm90-avx2.json"), &arena, &t, &err), &err,
		   ERR_INTEGRITY, "entry 0 has no file or no command");
	test_write(test_path("sm90-avx2.json"),
		   "[{\"file\": \"x\", \"command\": \"cc -o a x\"}, {\"file\": \"x\", \"command\": "
		   "\"cc -O -o a x\"}]");
	assert_err(units_read(tables, test_path("sm90-avx2.json"), &arena, &t, &err), &err,
		   ERR_INTEGRITY, "compiles 'x' twice into one object");
	assert_err(units_read(tables, test_path("sm80-avx2"), &arena, &t, &err), &err, ERR_SYSTEM,
		   "sm80-avx2");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_four_trees),
		TEST(test_cost_of_a_matrix),
		TEST(test_flags_that_leak),
		TEST(test_the_list_in_a_header),
		TEST(test_trees_that_say_nothing),
		TEST(test_one_thing_only),
		TEST(test_units_that_not_every_tree_has),
		TEST(test_a_directory_of_a_tree),
		TEST(test_what_is_refused),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
