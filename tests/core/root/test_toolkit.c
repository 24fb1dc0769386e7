#include "support.h"

#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/root/toolkit.h"

#define VERSION_12_4                                                                               \
	"nvcc: NVIDIA (R) Cuda compiler driver\nBuilt on Thu_Mar_28_02:18:24_PDT_2024\n"           \
	"Cuda compilation tools, release 12.4, V12.4.131\nBuild "                                  \
	"cuda_12.4.r12.4/compiler.34097967_0\n"
#define HELP                                                                                       \
	"--objdir-as-tempdir  (-objtemp)\n--threads <number> (-t)\n Allowed values: "              \
	"'compute_90','sm_75','sm_90','sm_90a','sm_90','sm_100f'.\n"

static struct arena arena;
static struct tables tables;
static struct part_row parts[2];
static struct toolkit_row row;

static int setup(void **state)
{
	static const char *cudnn[] = {"CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"};

	(void)state;
	test_dir();
	parts[0] = (struct part_row){.name = "cudnn",
				     .header = "cudnn-of-the-test.h",
				     .macros = cudnn,
				     .macros_count = 3,
				     .toggle = "USE_CUDNN"};
	parts[1] = (struct part_row){
		.name = "nvrtc", .header = "nvrtc-of-the-test.h", .toggle = "USE_CUDA"};
	row = (struct toolkit_row){.version = "12.4", .gcc_max = "13"};
	tables = (struct tables){
		.parts = parts, .parts_count = 2, .toolkits = &row, .toolkits_count = 1};
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void test_what_nvcc_says(void **state)
{
	(void)state;
	struct toolkit k = {0};
	assert_true(toolkit_parse(VERSION_12_4, HELP, &arena, &k));
	assert_string_equal(k.version, "12.4");
	assert_string_equal(k.release, "12.4.131");
	assert_string_equal(k.build, "cuda_12.4.r12.4/compiler.34097967_0");
	assert_string_equal(strlist_join(&k.targets, &arena, " "), "75 90 90a 100f");
	assert_string_equal(strlist_join(&k.options, &arena, " "), "--objdir-as-tempdir --threads");
}

static void test_nvcc_that_says_nothing(void **state)
{
	(void)state;
	static const char *const bad[][2] = {{"", HELP},
					     {"no compiler installed\n", HELP},
					     {VERSION_12_4, ""},
					     {VERSION_12_4, "'sm_' 'sm_x' 'sm_"},
					     {", release 12.x, V12.4.131", HELP}};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct toolkit k = {0};
		assert_false(toolkit_parse(bad[i][0], bad[i][1], &arena, &k));
	}
}

static void test_numbers_of_a_header(void **state)
{
	(void)state;
	static const char text[] = "#define NAME_LONG 1\n# define  NAME\t (22)\n//#define OTHER "
				   "3\n#define EMPTY\n#define TEXT "
				   "abc\n#define HEX 0x10\n#define LAST 7";
	assert_int_equal(toolkit_header_number(text, "NAME"), 22);
	assert_int_equal(toolkit_header_number(text, "NAME_LONG"), 1);
	assert_int_equal(toolkit_header_number(text, "HEX"), 16);
	assert_int_equal(toolkit_header_number(text, "LAST"), 7);
	const char *none[] = {"OTHER", "EMPTY", "TEXT", "NAM"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_int_equal(toolkit_header_number(text, none[i]), -1);
	assert_int_equal(toolkit_header_number("", "X"), -1);
}

static void test_limits_of_host_config(void **state)
{
	(void)state;
	unsigned gcc = 9, clang = 9;
	toolkit_header_limits("#if __GNUC__ > 13\n#error\n#endif /* __GNUC__ > 13 */\n#if "
			      "(__clang_major__ >= 18) || "
			      "(__clang_major__ < 3)\n",
			      &gcc, &clang);
	assert_int_equal(gcc, 13);
	assert_int_equal(clang, 17);
	toolkit_header_limits("", &gcc, &clang);
	assert_int_equal(gcc, 0);
	assert_int_equal(clang, 0);
	toolkit_header_limits("#if __GNUC__ > 99999999999999999999\n(__clang_major__ >=", &gcc,
			      &clang);
	assert_int_equal(gcc, 0);
	assert_int_equal(clang, 0);
}

static void program(const char *path, const char *text)
{
	test_write(path, text);
	assert_int_equal(chmod(path, 0755), 0);
}

/* A toolkit that is only a script, below the test's directory. */
static const char *make_toolkit(const char *gcc_max)
{
	program(test_path("cuda/bin/nvcc"),
		"#!/bin/sh\ncase $1 in --version) printf '%b' '" VERSION_12_4
		"';; *) cat <<'.'\n" HELP ".\n;; esac\n");
	if (gcc_max)
		test_write(test_path("cuda/include/crt/host_config.h"), gcc_max);
	return test_path("cuda");
}

static const struct toolkit *probe(const char *home, enum sandbox_kind kind)
{
	struct err e = {0};
	struct root root;
	const struct toolkits *l = NULL;

	assert_ok(root_open(NULL, &arena, &root, &e), &e);
	assert_ok(toolkit_probe(&tables, &root, kind, home, test_run(), &arena, &l, &e), &e);
	assert_true(l->count >= 1);
	return toolkit_find(l, "12.4");
}

/* A header that cannot be read is not one that is
 * missing: the kernels would be without that part. */
static void test_a_header_that_cannot_be_read(void **state)
{
	(void)state;
	struct err e = {0};
	struct root root;
	const struct toolkits *l = NULL;
	const char *home = make_toolkit("#if __GNUC__ > 99\n");
	test_write(test_path("cuda/include/nvrtc-of-the-test.h"), "");
	assert_int_equal(truncate(test_path("cuda/include/nvrtc-of-the-test.h"), 17 << 20), 0);
	assert_ok(root_open(NULL, &arena, &root, &e), &e);
	assert_err(toolkit_probe(&tables, &root, SANDBOX_NONE, home, test_run(), &arena, &l, &e),
		   &e, ERR_INTEGRITY, "nvrtc-of-the-test.h");
	assert_null(l);
}

static void test_a_toolkit_of_the_users_own(void **state)
{
	(void)state;
	const char *home = make_toolkit("#if __GNUC__ > 99\n");
	test_write(test_path("cuda/include/cudnn-of-the-test.h"),
		   "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n");
	const struct toolkit *k = probe(home, SANDBOX_BWRAP);
	assert_non_null(k);
	assert_int_equal(k->layout, TOOLKIT_NVIDIA);
	assert_string_equal(k->where, home);
	assert_string_equal(k->home, SANDBOX_CUDA);
	assert_string_equal(k->nvcc, SANDBOX_CUDA "/bin/nvcc");
	assert_string_equal(k->mount_from, home);
	assert_string_equal(k->cc, "gcc");
	assert_string_equal(k->cxx, "g++");
	assert_contains(k->text, "nvcc 12.4.131 cuda_12.4.r12.4/compiler.34097967_0\n");
	assert_contains(k->text, "cudnn 9.1.0\n");
	assert_contains(k->text, k->cc_id);
	assert_string_equal(toolkit_part_of(k, "cudnn")->version, "9.1.0");
	assert_null(toolkit_part_of(k, "nvrtc")->header);
	assert_null(toolkit_part_of(k, "no such part"));
}

/* As a toolkit of wheels lies in a world: links lead to targets/<target>. */
static void test_the_tree_of_a_world(void **state)
{
	(void)state;
	const char *home = make_toolkit(NULL);
	test_write(test_path("cuda/targets/x86_64-linux/include/crt/host_config.h"),
		   "#if __GNUC__ > 99\n");
	test_write(test_path("cuda/targets/x86_64-linux/include/cudnn-of-the-test.h"),
		   "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 20\n#define CUDNN_PATCHLEVEL 0\n");
	assert_int_equal(symlink("targets/x86_64-linux/include", test_path("cuda/include")), 0);
	const struct toolkit *k = probe(home, SANDBOX_BWRAP);
	assert_non_null(k);
	assert_int_equal(k->layout, TOOLKIT_NVIDIA);
	assert_int_equal(k->gcc_max, 99);
	assert_string_equal(toolkit_part_of(k, "cudnn")->version, "9.20.0");
	assert_contains(toolkit_part_of(k, "cudnn")->header, "/targets/x86_64-linux/include/");
}

/* The header decides; the table where there is none. */
static void test_compilers_that_nvcc_does_not_accept(void **state)
{
	(void)state;
	const struct toolkit *k = probe(make_toolkit("#if __GNUC__ > 8\n"), SANDBOX_BWRAP);
	assert_null(k->cc);
	assert_int_equal(k->gcc_max, 8);
	assert_true(*k->gcc != '\0');
	assert_int_equal(unlink(test_path("cuda/include/crt/host_config.h")), 0);
	assert_int_equal(probe(test_path("cuda"), SANDBOX_BWRAP)->gcc_max, 13);
}

static void test_without_a_sandbox(void **state)
{
	(void)state;
	const struct toolkit *k = probe(make_toolkit(NULL), SANDBOX_NONE);
	assert_non_null(k);
	assert_string_equal(k->release, "12.4.131");
}

static void test_home_without_nvcc(void **state)
{
	(void)state;
	struct err e = {0};
	struct root root;
	const struct toolkits *l = NULL;
	assert_ok(root_open(NULL, &arena, &root, &e), &e);
	assert_err(toolkit_probe(&tables, &root, SANDBOX_BWRAP, "/etc", test_run(), &arena, &l, &e),
		   &e, ERR_POLICY, "no CUDA toolkit in '/etc'");
	assert_contains(e.hint, "bin/nvcc");
	assert_null(l);
}

static struct root fake_root(void)
{
	struct err e = {0};
	struct root r;

	test_write(test_path("root/usr/bin/none"), "");
	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	return r;
}

static struct toolkit_places places_of(const struct root *r, const char *home)
{
	struct toolkit_places l = {.root = r, .arena = &arena};
	toolkit_places(&l, home);
	return l;
}

static void nvcc_at(const char *dir)
{
	program(test_path("root%s/bin/nvcc", dir), "#!/bin/sh\n");
}

static void test_every_layout_is_found(void **state)
{
	(void)state;
	struct root r = fake_root();
	assert_int_equal(places_of(&r, NULL).count, 0);
	nvcc_at("/usr/local/cuda-12.4");
	nvcc_at("/usr/local/cuda-13.0");
	assert_int_equal(symlink("cuda-13.0", test_path("root/usr/local/cuda")), 0);
	nvcc_at("/usr");
	nvcc_at("/usr/local/lib/python3.13/dist-packages/nvidia/cu13");
	nvcc_at("/opt/conda");
	test_write(test_path("root/opt/conda/conda-meta/history"), "");
	test_write(test_path("root/usr/local/cuda-12.4/targets/aarch64-linux/include/cuda.h"), "");
	test_write(test_path("root/usr/local/cuda-13.0/targets/sbsa-linux/include/cuda.h"), "");
	static const struct {
		enum toolkit_layout layout;
		const char *home;
	} want[] = {{TOOLKIT_NVIDIA, "/usr/local/cuda-13.0"},
		    {TOOLKIT_NVIDIA, "/usr/local/cuda-12.4"},
		    {TOOLKIT_DISTRIBUTION, "/usr"},
		    {TOOLKIT_PYTHON, "/usr/local/lib/python3.13/dist-packages/nvidia/cu13"},
		    {TOOLKIT_CONDA, "/opt/conda"}};
	struct toolkit_places l = places_of(&r, NULL);
	assert_int_equal(l.count, ARRAY_LEN(want));
	for (size_t i = 0; i < l.count; i++) {
		assert_int_equal(l.items[i].layout, want[i].layout);
		assert_string_equal(l.items[i].where, want[i].home);
		assert_string_equal(l.items[i].home, want[i].home);
		assert_null(l.items[i].mount_from);
		assert_int_equal(l.items[i].tegra, i == 1);
	}
}

static void test_home_comes_first_and_once(void **state)
{
	(void)state;
	struct root r = fake_root();
	nvcc_at("/usr");
	nvcc_at("/usr/local/cuda-12.4");
	struct toolkit_places l = places_of(&r, "/usr");
	assert_int_equal(l.count, 2);
	assert_int_equal(l.items[0].layout, TOOLKIT_DISTRIBUTION);
	assert_string_equal(l.items[1].home, "/usr/local/cuda-12.4");
}

/* A package of Python outside what the root shows: all packages beside it are shown with it. */
static void test_packages_in_a_home_directory(void **state)
{
	(void)state;
	struct root r = fake_root();
	nvcc_at("/home/u/v/lib/python3.13/site-packages/nvidia/cu13");
	test_write(test_path("root/home/u/v/lib/python3.13/site-packages/nvidia/cudnn/include/"
			     "cudnn_version.h"),
		   "");
	struct toolkit_places l =
		places_of(&r, "/home/u/v/lib/python3.13/site-packages/nvidia/cu13");
	struct strlist dirs = {0};
	assert_int_equal(l.count, 1);
	assert_int_equal(l.items[0].layout, TOOLKIT_PYTHON);
	assert_string_equal(l.items[0].mount_to, SANDBOX_CUDA);
	assert_string_equal(l.items[0].home, SANDBOX_CUDA "/cu13");
	assert_true(strlen(l.items[0].mount_from) > strlen("/nvidia"));
	assert_string_equal(l.items[0].mount_from + strlen(l.items[0].mount_from) -
				    strlen("/nvidia"),
			    "/nvidia");
	toolkit_include_dirs(&r, &l.items[0], &arena, &dirs);
	assert_true(strlist_contains(
		&dirs, "/home/u/v/lib/python3.13/site-packages/nvidia/cudnn/include"));
}

static void test_broken_links_are_no_toolkit(void **state)
{
	(void)state;
	struct root r = fake_root();
	assert_int_equal(symlink("/nowhere/nvcc", test_path("root/usr/bin/nvcc")), 0);
	test_write(test_path("root/usr/local/cuda-12.4/bin/nvcc"), "not executable");
	assert_int_equal(places_of(&r, NULL).count, 0);
}

static void test_json(void **state)
{
	(void)state;
	json_t *o = toolkit_json(probe(make_toolkit("#if __GNUC__ > 99\n"), SANDBOX_BWRAP));
	assert_string_equal(json_string_value(json_object_get(o, "layout")), "nvidia");
	assert_int_equal(json_array_size(json_object_get(o, "targets")), 4);
	assert_true(json_is_null(json_object_get(json_object_get(o, "parts"), "cudnn")));
	json_decref(o);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_nvcc_says),
		TEST(test_nvcc_that_says_nothing),
		TEST(test_numbers_of_a_header),
		TEST(test_limits_of_host_config),
		TEST(test_a_toolkit_of_the_users_own),
		TEST(test_a_header_that_cannot_be_read),
		TEST(test_the_tree_of_a_world),
		TEST(test_compilers_that_nvcc_does_not_accept),
		TEST(test_without_a_sandbox),
		TEST(test_home_without_nvcc),
		TEST(test_every_layout_is_found),
		TEST(test_home_comes_first_and_once),
		TEST(test_packages_in_a_home_directory),
		TEST(test_broken_links_are_no_toolkit),
		TEST(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
