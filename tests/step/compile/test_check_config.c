#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "step/compile/build.h"

/* A plan with nothing but what the comparison looks at. */
static struct setting entries[8];
static const char *flags[8];

static struct plan plan_with(size_t settings, size_t cpu_flags)
{
	return (struct plan){.package = "pytorch",
			     .cmake = {.items = entries, .count = settings},
			     .cpu_flags = {.items = flags, .count = cpu_flags}};
}

static void entry(size_t i, const char *name, const char *value)
{
	entries[i] = (struct setting){.name = name, .value = value, .check = true};
}

static int cache_is(const char *cache, const char *log, const struct plan *p,
		    struct config_report *r, struct err *e)
{
	test_write(test_path("CMakeCache.txt"), cache);
	if (log)
		test_write(test_path("build.log"), log);
	return check_config_cache(&(struct config_check){.plan = p,
							 .top = test_path("."),
							 .file = "CMakeCache.txt",
							 .log = log ? "build.log" : NULL,
							 .report = r},
				  e);
}

/* How a build in "build" is judged: by CMake's files, or by those of an extension. */
static int tree_is(const struct plan *p, bool cmake, struct config_report *r, struct err *e)
{
	return check_config_tree(&(struct config_check){.plan = p,
							.top = test_path("."),
							.build = "build",
							.cmake = cmake,
							.report = r},
				 e);
}

/* A log that cannot be read is no log without a summary. */
static void test_a_log_that_cannot_be_read(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan p = {0};
	struct config_report r = {0};
	assert_int_equal(mkdir(test_path("build.log"), 0700), 0);
	assert_ok(cache_is("A:BOOL=ON\n", NULL, &p, &r, &e), &e);
	assert_err(check_config_cache(&(struct config_check){.plan = &p,
							     .top = test_path("."),
							     .file = "CMakeCache.txt",
							     .log = "build.log",
							     .report = &r},
				      &e),
		   &e, ERR_INTEGRITY, "build.log");
}

static void test_equal_values_pass(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "USE_MKLDNN", "ON");
	entry(1, "BLAS", "OpenBLAS");
	struct plan p = plan_with(2, 0);
	assert_ok(cache_is("# comment\n//doc\nUSE_MKLDNN:BOOL=ON\nBLAS:STRING=OpenBLAS\n", NULL, &p,
			   &r, &e),
		  &e);
	assert_int_equal(r.entries, 2);
}

static void test_booleans_compare_by_meaning(void **state)
{
	(void)state;
	static const char *const same[][2] = {{"ON", "1"},  {"ON", "True"}, {"OFF", "FALSE"},
					      {"OFF", "0"}, {"0", "no"},    {"1", "Y"}};
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		struct err e = {0};
		struct config_report r = {0};
		char text[128];
		test_dir();
		entry(0, "USE_X", same[i][0]);
		struct plan p = plan_with(1, 0);
		snprintf(text, sizeof(text), "USE_X:UNINITIALIZED=%s\n", same[i][1]);
		assert_ok(cache_is(text, NULL, &p, &r, &e), &e);
	}
}

static void test_a_different_value_is_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "USE_CUDNN", "ON");
	struct plan p = plan_with(1, 0);
	assert_err(cache_is("USE_CUDNN:BOOL=OFF\n", NULL, &p, &r, &e), &e, ERR_POLICY,
		   "USE_CUDNN: asked ON, got OFF in CMakeCache.txt");
	assert_int_equal(r.entries, 0);
}

static void test_an_absent_entry_is_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "CXX_AVX2_FOUND", "FALSE");
	struct plan p = plan_with(1, 0);
	assert_err(cache_is("OTHER:BOOL=OFF\n", NULL, &p, &r, &e), &e, ERR_POLICY,
		   "CXX_AVX2_FOUND: asked FALSE, got nothing");
}

static void test_a_prefix_of_a_name_is_another_name(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "USE_MKLDNN", "ON");
	struct plan p = plan_with(1, 0);
	assert_err(cache_is("USE_MKLDNN_CBLAS:BOOL=ON\nUSE_MKL:BOOL=ON\n", NULL, &p, &r, &e), &e,
		   ERR_POLICY, "got nothing");
}

static void test_the_log_explains(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "USE_CUDNN", "ON");
	struct plan p = plan_with(1, 0);
	const char *log = "cmake -GNinja -DUSE_CUDNN=ON /src\nCMake Warning: Cannot find cuDNN "
			  "library. Turning "
			  "USE_CUDNN off, not found\n";
	assert_err(cache_is("USE_CUDNN:BOOL=OFF\n", log, &p, &r, &e), &e, ERR_POLICY,
		   "the log says: CMake Warning: Cannot find cuDNN");
	assert_contains(e.hint, "profile");
}

static void test_the_summary_shows_what_the_cache_hides(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "USE_FBGEMM", "ON");
	struct plan p = plan_with(1, 0);
	const char *log = "-- ******** Summary ********\n--   USE_FBGEMM            : OFF\n-- "
			  "Configuring done (1.0s)\n";
	assert_err(cache_is("USE_FBGEMM:BOOL=ON\n", log, &p, &r, &e), &e, ERR_POLICY,
		   "USE_FBGEMM: asked ON, got OFF in the summary");
}

static void test_the_last_summary_counts(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "USE_FBGEMM", "ON");
	struct plan p = plan_with(1, 0);
	const char *log =
		"-- ******** Summary ********\n--   USE_FBGEMM : OFF\n-- Configuring done\n"
		"-- ******** Summary ********\n--   USE_FBGEMM : ON\n-- Configuring done\n";
	assert_ok(cache_is("USE_FBGEMM:BOOL=ON\n", log, &p, &r, &e), &e);
}

static void test_text_values_are_not_looked_for_in_the_summary(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "BLAS", "OpenBLAS"); /* the summary has PyTorch's own word for it */
	struct plan p = plan_with(1, 0);
	assert_ok(cache_is("BLAS:STRING=OpenBLAS\n",
			   "-- ******** Summary ********\n--     BLAS : open\n", &p, &r, &e),
		  &e);
}

static void test_quoted_names_and_equal_signs(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "A:B", "x=y");
	struct plan p = plan_with(1, 0);
	assert_ok(cache_is("\"A:B\":STRING=x=y\n", NULL, &p, &r, &e), &e);
}

static void test_a_damaged_cache_names_the_line(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "A", "1");
	struct plan p = plan_with(1, 0);
	assert_err(cache_is("A:BOOL=1\n\nrubbish\n", NULL, &p, &r, &e), &e, ERR_INTEGRITY,
		   "line 3: not a cache entry: 'rubbish'");
}

static void test_a_missing_cache_is_an_error(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	struct plan p = plan_with(0, 0);
	assert_err(check_config_cache(
			   &(struct config_check){
				   .plan = &p, .top = test_path("."), .file = "none", .report = &r},
			   &e),
		   &e, ERR_SYSTEM, "none");
}

static int commands_are(const char *json, const struct plan *p, struct config_report *r,
			struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	test_write(test_path("compile_commands.json"), json);
	return check_config_commands(
		&(struct config_check){.plan = p,
				       .top = path_absolute(&a, "/", test_path(".")),
				       .file = "compile_commands.json",
				       .report = r},
		e);
}

static void test_flags_on_every_unit(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	flags[0] = "-mavx2";
	flags[1] = "-mfma";
	struct plan p = plan_with(0, 2);
	assert_ok(commands_are("[{\"file\":\"a.c\",\"command\":\"cc -mavx2 -mfma -c "
			       "a.c\"},{\"file\":\"b.cpp\",\"command\":\"c++ -O2 -mfma "
			       "-mavx2 -c b.cpp\"},"
			       "{\"file\":\"c.S\",\"command\":\"cc -c c.S\"}]",
			       &p, &r, &e),
		  &e);
	assert_int_equal(r.host_units, 2);
	assert_int_equal(r.commands, 2);
}

static void test_a_unit_without_a_flag_is_named(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	flags[0] = "-mavx2";
	struct plan p = plan_with(0, 1);
	assert_err(commands_are("[{\"file\":\"x/b.cc\",\"command\":\"c++ -mavx2fake -c x/b.cc\"}]",
				&p, &r, &e),
		   &e, ERR_POLICY, "'x/b.cc' is compiled without '-mavx2'");
}

/* A plan with these flags, and a unit with `words` behind them. */
static size_t overridden_by(const char *flag, const char *words)
{
	struct err e = {0};
	struct config_report r = {0};

	test_dir();
	flags[0] = flag;
	struct plan p = plan_with(0, 1);
	AUTO_ARENA struct arena a = {0};
	const char *json = arena_printf(&a,
					"[{\"file\":\"k.c\",\"command\":\"cc %s -O2 %s -c k.c\"},"
					"{\"file\":\"a.c\",\"command\":\"cc %s -c a.c\"}]",
					flag, words, flag);
	assert_ok(commands_are(json, &p, &r, &e), &e);
	return r.overridden;
}

/* oneDNN on Arm: cmake/Modules/FindMKLDNN.cmake forces -mcpu=generic. */
static void test_flags_that_are_taken_back(void **state)
{
	(void)state;
	assert_int_equal(overridden_by("-mavx2", "-mno-avx2"), 1);
	assert_int_equal(overridden_by("-mavx2", "-mno-avx"), 1);
	assert_int_equal(overridden_by("-mavx2", "-mno-sse4.1"), 1);
	assert_int_equal(overridden_by("-mcpu=neoverse-v1", "-mcpu=generic"), 1);
	assert_int_equal(overridden_by("-march=armv9-a+sve", "-march=armv8.2-a+fp16"), 1);
	assert_int_equal(overridden_by("-mavx2", "-mno-avx256-split-unaligned-load"), 0);
	assert_int_equal(overridden_by("-mavx2", "-mno-avx512f -mno-fma"), 0);
	assert_int_equal(overridden_by("-mavx2", "-mno-avx2 -mavx2"), 0);
	assert_int_equal(overridden_by("-march=armv9-a+sve", "-mcpu=generic"), 0);
	assert_int_equal(overridden_by("-mno-fma", "-mfma"), 0);
}

static void test_flags_that_most_units_take_back(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	flags[0] = "-mavx2";
	struct plan p = plan_with(0, 1);
	assert_err(commands_are("[{\"file\":\"a.c\",\"command\":\"cc -mavx2 -mno-avx2 -c a.c\"}]",
				&p, &r, &e),
		   &e, ERR_POLICY,
		   "1 of 1 units override the planned CPU flags: 'a.c' has '-mno-avx2'");
}

static void test_native_is_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	struct plan p = plan_with(0, 0);
	assert_err(commands_are("[{\"file\":\"b.c\",\"command\":\"cc -march=native -c b.c\"}]", &p,
				&r, &e),
		   &e, ERR_POLICY, "-march=native");
}

/* Files of words, read where the command runs; one may name
 * another. What is not there, or lies outside, is no file. */
static void test_native_in_response_files_is_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	struct plan p = plan_with(0, 0);
	AUTO_ARENA struct arena a = {0};
	static const char *const words[] = {"@flags.rsp",
					    "@more.rsp",
					    "\\\"@flags.rsp\\\"",
					    "@../sub/flags.rsp",
					    "--options-file flags.rsp",
					    "-optf flags.rsp",
					    "--options-file=flags.rsp",
					    "--config=../sub/more.rsp",
					    "-march=native"};
	test_write(test_path("sub/flags.rsp"), "-O2\n-march=native\n");
	test_write(test_path("sub/more.rsp"), "-g @flags.rsp -fPIC");
	test_write(test_path("sub/tune.rsp"), "-mtune=native");
	test_write(test_path("sub/good.rsp"),
		   "-O2 -march=native-like @good.rsp @gone.rsp @/etc/hostname");
	const char *entry =
		"[{\"file\":\"b.c\",\"directory\":\"%s\",\"command\":\"cc %s -c b.c\"}]";
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_err(commands_are(arena_printf(&a, entry, test_path("sub"), words[i]), &p, &r,
					&e),
			   &e, ERR_POLICY,
			   "'b.c' is compiled for the machine it is built on: '-march=native'");
	assert_err(commands_are(arena_printf(&a, entry, "/ptbuild/sub", "@tune.rsp"), &p, &r, &e),
		   &e, ERR_POLICY, "-mtune=native");
	assert_err(commands_are(arena_printf(&a, entry, "/", "-mcpu=native"), &p, &r, &e), &e,
		   ERR_POLICY, "-mcpu=native");
	assert_ok(commands_are(arena_printf(&a, entry, test_path("sub"), "@good.rsp"), &p, &r, &e),
		  &e);
	assert_ok(commands_are(arena_printf(&a, entry, test_path("."), "@flags.rsp"), &p, &r, &e),
		  &e);
}

static void test_cpu_flags_stay_out_of_cuda(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	flags[0] = "-mavx2";
	struct plan p = plan_with(0, 1);
	assert_ok(
		commands_are("[{\"file\":\"k.cu\",\"command\":\"nvcc -O2 -c k.cu\"}]", &p, &r, &e),
		&e);
	assert_int_equal(r.device_units, 1);
	assert_err(commands_are("[{\"file\":\"k.cu\",\"command\":\"nvcc -Xcompiler=-mavx2,-fPIC -c "
				"k.cu\"}]",
				&p, &r, &e),
		   &e, ERR_POLICY, "'k.cu' is CUDA code that gets the CPU flag '-mavx2'");
}

static void test_damaged_commands_are_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	struct plan p = plan_with(0, 0);
	assert_err(commands_are("{}", &p, &r, &e), &e, ERR_INTEGRITY, "not an array");
	assert_err(commands_are("[{\"file\":\"a.c\"}]", &p, &r, &e), &e, ERR_INTEGRITY, "entry 0");
	assert_err(commands_are("[{", &p, &r, &e), &e, ERR_INTEGRITY, "compile_commands.json");
}

static void test_tree_takes_the_outermost_files(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	entry(0, "USE_X", "ON");
	flags[0] = "-mavx2";
	struct plan p = plan_with(1, 1);
	test_write(test_path("build/CMakeCache.txt"), "USE_X:BOOL=ON\n");
	test_write(test_path("build/compile_commands.json"),
		   "[{\"file\":\"a.c\",\"command\":\"cc -mavx2 -c a.c\"}]");
	test_write(test_path("build/third/party/CMakeCache.txt"), "USE_X:BOOL=OFF\n");
	assert_ok(tree_is(&p, true, &r, &e), &e);
	assert_int_equal(r.entries, 1);
	assert_int_equal(r.host_units, 1);
}

/* What CMake then takes for a compiler that cannot do it, in the words of its versions. */
static void test_a_check_that_was_killed_is_no_answer(void **state)
{
	(void)state;
	static const char *const logs[][2] = {
		{"CMakeError.log",
		 "Performing C++ SOURCE FILE Test HAS_X failed with the following output:\n"
		 "c++: fatal error: Killed signal terminated program cc1plus\n"},
		{"CMakeConfigureLog.yaml",
		 "      stdout: |\n        FAILED: [code=137] x.o\n        c++ -c x.cxx\n"},
		{"CMakeConfigureLog.yaml",
		 "      stdout: |\n        FAILED: x.o\n        Killed\n"},
	};
	struct err e = {0};
	struct config_report r = {0};
	for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
		test_dir();
		struct plan p = plan_with(0, 0);
		test_write(test_path("build/CMakeCache.txt"), "");
		test_write(test_path("build/compile_commands.json"),
			   "[{\"file\":\"a.c\",\"command\":\"cc -c a.c\"}]");
		const char *log = test_path("build/CMakeFiles/%s", logs[i][0]);
		test_write(log, "Test HAS_X failed:\nx.cxx:1:1: error: 'Killed' is no type\n");
		assert_ok(tree_is(&p, true, &r, &e), &e);
		test_write(test_path("build/CMakeFiles/%s", logs[i][0]), logs[i][1]);
		assert_err(tree_is(&p, true, &r, &e), &e, ERR_BUILD,
			   "a program was killed while CMake tried");
		assert_contains(e.hint, logs[i][0]);
	}
}

static void test_tree_without_proof_is_refused(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	struct plan p = plan_with(0, 0);
	test_write(test_path("build/CMakeCache.txt"), "");
	assert_err(check_config_tree(&(struct config_check){.plan = &p,
							    .top = test_path("."),
							    .build = "build",
							    .log = "the.log",
							    .cmake = true,
							    .report = &r},
				     &e),
		   &e, ERR_POLICY, "no compile_commands.json");
	assert_contains(e.hint, "the.log");
	test_dir();
	test_write(test_path("build/x"), "");
	assert_err(tree_is(&p, false, &r, &e), &e, ERR_POLICY, "neither");
}

static void test_extension_ninja_files_are_read(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	flags[0] = "-mavx2";
	struct plan p = plan_with(0, 1);
	test_write(test_path("build/temp/build.ninja"),
		   "cflags = -O2 -mavx2\npost_cflags = -DX\ncuda_cflags = -O2\n"
		   "build /o/a.o: compile /s/a.cpp\nbuild /o/k.o: cuda_compile /s/k.cu\n");
	assert_ok(tree_is(&p, false, &r, &e), &e);
	assert_int_equal(r.host_units, 1);
	assert_int_equal(r.device_units, 1);
	test_write(test_path("build/temp/build.ninja"),
		   "cflags = -O2\nbuild /o/a.o: compile /s/a.cpp\n");
	assert_err(tree_is(&p, false, &r, &e), &e, ERR_POLICY, "/s/a.cpp");
}

/* torchvision has three extensions: the build.ninja that is left is the last one's. */
static void test_commands_of_all_extensions_are_in_the_log(void **state)
{
	(void)state;
	struct err e = {0};
	struct config_report r = {0};
	test_dir();
	flags[0] = "-mavx2";
	struct plan p = plan_with(0, 1);
	test_write(test_path("build/temp/build.ninja"),
		   "cflags = -mavx2\nbuild /o/b.o: compile /s/b.cpp\n");
	test_write(test_path("log"),
		   "building extensions\n[1/2] c++ -MMD -MF a.o.d -mavx2 -c /s/a.cpp -o a.o -O2\n"
		   "[2/2] nvcc -O2 -c -c /s/k.cu -o k.o\n[1/1] c++ -mavx2 -c /s/b.cpp -o b.o\n");
	assert_ok(check_config_tree(&(struct config_check){.plan = &p,
							   .top = test_path("."),
							   .build = "build",
							   .log = "log",
							   .report = &r},
				    &e),
		  &e);
	assert_int_equal(r.host_units, 2);
	assert_int_equal(r.device_units, 1);
	test_write(test_path("log"),
		   "  [1/1] c++ -O2 -c /s/a.cpp -o a.o\n[1/1] c++ -mavx2 -c /s/b.cpp -o b.o\n");
	assert_err(check_config_tree(&(struct config_check){.plan = &p,
							    .top = test_path("."),
							    .build = "build",
							    .log = "log",
							    .report = &r},
				     &e),
		   &e, ERR_POLICY, "'/s/a.cpp' is compiled without '-mavx2'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_equal_values_pass, test_teardown),
		cmocka_unit_test_teardown(test_a_log_that_cannot_be_read, test_teardown),
		cmocka_unit_test_teardown(test_booleans_compare_by_meaning, test_teardown),
		cmocka_unit_test_teardown(test_a_different_value_is_refused, test_teardown),
		cmocka_unit_test_teardown(test_an_absent_entry_is_refused, test_teardown),
		cmocka_unit_test_teardown(test_a_prefix_of_a_name_is_another_name, test_teardown),
		cmocka_unit_test_teardown(test_the_log_explains, test_teardown),
		cmocka_unit_test_teardown(test_the_summary_shows_what_the_cache_hides,
					  test_teardown),
		cmocka_unit_test_teardown(test_the_last_summary_counts, test_teardown),
		cmocka_unit_test_teardown(test_text_values_are_not_looked_for_in_the_summary,
					  test_teardown),
		cmocka_unit_test_teardown(test_quoted_names_and_equal_signs, test_teardown),
		cmocka_unit_test_teardown(test_a_damaged_cache_names_the_line, test_teardown),
		cmocka_unit_test_teardown(test_a_missing_cache_is_an_error, test_teardown),
		cmocka_unit_test_teardown(test_flags_on_every_unit, test_teardown),
		cmocka_unit_test_teardown(test_a_unit_without_a_flag_is_named, test_teardown),
		cmocka_unit_test_teardown(test_flags_that_are_taken_back, test_teardown),
		cmocka_unit_test_teardown(test_flags_that_most_units_take_back, test_teardown),
		cmocka_unit_test_teardown(test_native_is_refused, test_teardown),
		cmocka_unit_test_teardown(test_native_in_response_files_is_refused, test_teardown),
		cmocka_unit_test_teardown(test_cpu_flags_stay_out_of_cuda, test_teardown),
		cmocka_unit_test_teardown(test_damaged_commands_are_refused, test_teardown),
		cmocka_unit_test_teardown(test_tree_takes_the_outermost_files, test_teardown),
		cmocka_unit_test_teardown(test_a_check_that_was_killed_is_no_answer, test_teardown),
		cmocka_unit_test_teardown(test_tree_without_proof_is_refused, test_teardown),
		cmocka_unit_test_teardown(test_extension_ninja_files_are_read, test_teardown),
		cmocka_unit_test_teardown(test_commands_of_all_extensions_are_in_the_log,
					  test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
