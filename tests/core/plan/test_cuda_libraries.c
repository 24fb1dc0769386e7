#include "support.h"

#include <string.h>

#include "compile.h"
#include "core/plan/cuda_libraries.h"

static struct arena arena;
static struct err err;
static const struct tables *tables;
static struct toolkit kit;
static struct toolkit_part parts[2];
static struct part_row rows[2] = {{.name = "cublas"}, {.name = "cusolver"}};

static int load_tables(void **state)
{
	static struct arena all;
	(void)state;
	return tables_load(PROFILES_DIR, &all, &tables, &err);
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static struct plan plan_of(const char *cuda)
{
	parts[0] = (struct toolkit_part){.row = &rows[0], .header = "h", .version = "12.4.5.8"};
	parts[1] = (struct toolkit_part){.row = &rows[1], .header = "h", .version = "11.6.1.9"};
	kit = (struct toolkit){.parts = parts, .parts_count = 2};
	struct strlist driver = {0};
	for (unsigned i = 0; i < tables->driver_libraries_count; i++)
		strlist_ref(&driver, &arena, tables->driver_libraries[i]);
	return (struct plan){.cuda = cuda,
			     .driver_libraries = driver,
			     .toolkit = &kit,
			     .toolkit_row = tables_toolkit(tables, cuda),
			     .cuda_libraries = "packages"};
}

static struct cuda_needs needs_of(const struct plan *p, const char *names)
{
	struct cuda_needs n;
	struct strlist needed = {0};

	strlist_split(&needed, &arena, names, " ");
	cuda_needs(p, &needed, &arena, &n);
	return n;
}

static const char *joined(const struct strlist *l)
{
	return strlist_join(l, &arena, " ");
}

static void test_exactly_what_is_needed(void **state)
{
	(void)state;
	struct plan p = plan_of("12.4");
	struct cuda_needs n = needs_of(&p, "libc.so.6 libcublasLt.so.12 libcublas.so.12 "
					   "libcudart.so.12 libcuda.so.1 libgomp.so.1");
	assert_string_equal(joined(&n.requires),
			    "nvidia-cublas-cu12>=12.4.5.8,<13 nvidia-cuda-runtime-cu12>=12.4,<13");
	assert_string_equal(joined(&n.dirs), "nvidia/cuda_runtime/lib nvidia/cublas/lib");
	assert_true(strlist_contains(&n.names, "libcuda.so.1"));
	assert_true(strlist_contains(&n.names, "libcufft.so.11"));
}

/* nvtx 12.9 has libnvToolsExt no more; a toolkit of 12.9 may have it. cuSPARSELt is a 0.x. */
static void test_versions_that_do_not_fit_are_not_taken(void **state)
{
	(void)state;
	struct plan p = plan_of("12.4");
	static const struct part_row lt = {.name = "cusparselt"};
	parts[1] = (struct toolkit_part){.row = &lt, .header = "h", .version = "0.6.2"};
	struct cuda_needs n = needs_of(&p, "libnvToolsExt.so.1 libcusparseLt.so.0");
	assert_string_equal(joined(&n.requires),
			    "nvidia-cusparselt-cu12>=0.6.2,<0.7 nvidia-nvtx-cu12>=12.4,<12.9");
	p.cuda = "12.9";
	n = needs_of(&p, "libnvToolsExt.so.1");
	assert_string_equal(joined(&n.requires), "nvidia-nvtx-cu12<12.9");
	p.cuda = "12.10";
	n = needs_of(&p, "libnvToolsExt.so.1");
	assert_string_equal(joined(&n.requires), "nvidia-nvtx-cu12<12.9");
}

/* cuSOLVER needs others: their directories are searched, their packages come with its own. */
static void test_what_these_need_in_turn(void **state)
{
	(void)state;
	struct plan p = plan_of("12.4");
	struct cuda_needs n = needs_of(&p, "libcusolver.so.11");
	assert_string_equal(joined(&n.requires), "nvidia-cusolver-cu12>=11.6.1.9,<12");
	assert_string_equal(
		joined(&n.dirs),
		"nvidia/cublas/lib nvidia/cusolver/lib nvidia/cusparse/lib nvidia/nvjitlink/lib");
}

/* Which version pip takes is not known beforehand, so both directories are searched. */
static void test_where_older_versions_have_them(void **state)
{
	(void)state;
	struct plan p = plan_of("12.4");
	struct cuda_needs n = needs_of(&p, "libcusparseLt.so.0");
	assert_string_equal(joined(&n.dirs), "nvidia/cusparselt/lib cusparselt/lib");
}

static void test_one_directory_from_cuda_13_on(void **state)
{
	(void)state;
	struct plan p = plan_of("13.0");
	parts[0].version = "13.0.0.19";
	struct cuda_needs n = needs_of(&p, "libcublas.so.13 libcudart.so.13 libcudnn.so.9");
	assert_string_equal(
		joined(&n.requires),
		"nvidia-cublas>=13.0.0.19,<14 nvidia-cuda-runtime>=13.0,<14 nvidia-cudnn-cu13");
	assert_string_equal(joined(&n.dirs), "nvidia/cu13/lib nvidia/cudnn/lib");
}

static void test_libraries_of_the_system(void **state)
{
	(void)state;
	struct plan p = plan_of("12.4");
	p.cuda_libraries = "system";
	struct cuda_needs n = needs_of(&p, "libcublas.so.12");
	assert_int_equal(n.requires.count, 0);
	assert_int_equal(n.dirs.count, 0);
	assert_true(strlist_contains(&n.names, "libcublas.so.12"));
}

static void test_nothing_without_cuda(void **state)
{
	(void)state;
	struct plan p = {.cuda_libraries = ""};
	struct cuda_needs n = needs_of(&p, "libcublas.so.12");
	assert_int_equal(n.names.count + n.requires.count + n.dirs.count, 0);
}

static void test_needed_names_of_a_tree(void **state)
{
	(void)state;
	struct strlist names = {0};
	test_dir();
	compile("libdep.so", "int puts(const char *); int dep(void) { return puts(\"\"); }",
		"-shared -fPIC -Wl,-soname,libdep.so.3");
	compile("sub/libx.so",
		"int puts(const char *), dep(void); int x(void) { return dep() + puts(\"\"); }",
		"-shared -fPIC libdep.so");
	test_write(test_path("text"), "no ELF");
	assert_ok(cuda_needed(test_path("."), &arena, &names, &err), &err);
	assert_true(strlist_contains(&names, "libdep.so.3"));
	size_t libc = 0;
	for (size_t i = 0; i < names.count; i++)
		libc += strcmp(names.items[i], "libc.so.6") == 0;
	assert_int_equal(libc, 1);
}

static void test_where_a_stranger_has_them_from(void **state)
{
	(void)state;
	struct strlist d = {0}, none = {0};
	strlist_add(&d, &arena, "nvidia_cublas_cu12");
	assert_int_equal(cuda_source(tables, &d, "libcublas.so.12", &arena), CUDA_PACKAGE);
	assert_int_equal(cuda_source(tables, &d, "libcublas.so.13", &arena), CUDA_SYSTEM);
	assert_int_equal(cuda_source(tables, &d, "libcufft.so.11", &arena), CUDA_SYSTEM);

	assert_int_equal(cuda_source(tables, &none, "libcuda.so.1", &arena), CUDA_DRIVER);
	assert_int_equal(cuda_source(tables, &d, "libc.so.6", &arena), CUDA_UNKNOWN);
}

static bool brings(const char *line, const char *name)
{
	struct requirement r;
	struct strlist all = {0};

	assert_ok(requirement_parse(line, &arena, &r, &err), &err);
	cuda_brings(tables, &r, &arena, &all);
	return strlist_contains(&all, name);
}

static void test_what_a_requirement_brings(void **state)
{
	(void)state;
	assert_true(brings("cuda-toolkit[cublas]==13.0.2", "nvidia_cublas"));
	assert_false(brings("cuda-toolkit[cudart]==13.0.2", "nvidia_cublas"));
	assert_true(brings("cuda-toolkit[cusolver]==13.0.2", "nvidia_cublas"));
	assert_false(brings("cuda-toolkit[cublas]==13.0.2", "nvidia_cublas_cu12"));
	assert_true(brings("cuda-toolkit[all]==12.8.*", "nvidia_curand_cu12"));
	assert_true(brings("nvidia-cudnn-cu12", "nvidia_cublas_cu12"));
	assert_true(brings("pydantic", "pydantic"));
	assert_false(brings("pydantic", "nvidia_cublas"));
}

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_exactly_what_is_needed),
		TEST(test_versions_that_do_not_fit_are_not_taken),
		TEST(test_what_these_need_in_turn),
		TEST(test_where_older_versions_have_them),
		TEST(test_one_directory_from_cuda_13_on),
		TEST(test_libraries_of_the_system),
		TEST(test_nothing_without_cuda),
		TEST(test_needed_names_of_a_tree),
		TEST(test_where_a_stranger_has_them_from),
		TEST(test_what_a_requirement_brings),
	};

	return cmocka_run_group_tests(tests, load_tables, NULL);
}
