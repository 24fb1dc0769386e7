#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/root/sandbox.h"
#include "step/compile/build_parts.h"

static struct setting env[] = {
	{.name = "CC", .value = "gcc"},
	{.name = "CFLAGS", .value = "-mavx2"},
	{.name = "CXX", .value = "g++"},
	{.name = "CXXFLAGS", .value = "-mavx2"},
	{.name = "PATH", .value = "/usr/bin:/bin"},
};

static struct plan toy(void)
{
	return (struct plan){.package = "pytorch", .env = {.items = env, .count = ARRAY_LEN(env)}};
}

static struct kvlist env_of(const char *name, const struct backend_options *o, struct arena *a)
{
	const struct backend *b;
	struct err e = {0};
	struct kvlist out = {0};
	struct plan p = toy();

	assert_ok(backend_find(name, &b, &e), &e);
	backend_env(&p, b, o, a, &out);
	return out;
}

static void test_every_era_has_a_back_end(void **state)
{
	(void)state;
	static const char *const names[] = {"setup-py-env", "setup-py-cmake-env",
					    "scikit-build-core", "setuptools", "setuptools-cmake"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct backend *b;
		struct err e = {0};
		assert_ok(backend_find(names[i], &b, &e), &e);
		assert_string_equal(b->name, names[i]);
		assert_non_null(b->build[0]);
	}
}

static void test_an_unknown_back_end_is_a_config_error(void **state)
{
	(void)state;
	const struct backend *b = NULL;
	struct err e = {0};
	assert_err(backend_find("bazel", &b, &e), &e, ERR_CONFIG, "'bazel'");
	assert_null(b);
}

static void test_jobs_reach_every_tool(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l = env_of("setup-py-env", &(struct backend_options){.jobs = 7}, &a);
	assert_string_equal(kvlist_get(&l, "MAX_JOBS"), "7");
	assert_string_equal(kvlist_get(&l, "CMAKE_BUILD_PARALLEL_LEVEL"), "7");
	assert_string_equal(kvlist_get(&l, "CMAKE_INSTALL_ALWAYS"), "1");
}

static void test_without_a_compiler_cache_nothing_of_it_is_set(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l = env_of("setup-py-env", &(struct backend_options){.jobs = 1}, &a);
	assert_null(kvlist_get(&l, "CCACHE_DIR"));
	assert_null(kvlist_get(&l, "CMAKE_CXX_COMPILER_LAUNCHER"));
	assert_string_equal(kvlist_get(&l, "CC"), "gcc");
}

static void test_cmake_gets_the_cache_as_launcher(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l =
		env_of("setup-py-env",
		       &(struct backend_options){.jobs = 1, .ccache = "/usr/bin/ccache"}, &a);
	assert_string_equal(kvlist_get(&l, "CMAKE_CXX_COMPILER_LAUNCHER"), "/usr/bin/ccache");
	assert_string_equal(kvlist_get(&l, "CMAKE_C_COMPILER_LAUNCHER"), "/usr/bin/ccache");
	assert_string_equal(kvlist_get(&l, "CC"), "gcc");
	assert_string_equal(kvlist_get(&l, "CCACHE_DEPEND"), "1");
	assert_string_equal(kvlist_get(&l, "CCACHE_DIR"), SANDBOX_CCACHE);
	assert_string_equal(kvlist_get(&l, "CCACHE_CONFIGPATH"), "/dev/null");
	assert_string_equal(kvlist_get(&l, "CCACHE_MAXSIZE"), "30G");
	l = env_of("setup-py-env",
		   &(struct backend_options){.jobs = 1, .ccache = "/c", .ccache_size = "2048Mi"},
		   &a);
	assert_string_equal(kvlist_get(&l, "CCACHE_MAXSIZE"), "2048Mi");
}

static void test_the_cache_takes_precompiled_headers_and_keeps_releases_apart(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct setting with_time[] = {{.name = "PATH", .value = "/usr/bin:/bin"},
				      {.name = "SOURCE_DATE_EPOCH", .value = "1738108800"},
				      {.name = "USE_PRECOMPILED_HEADERS", .value = "ON"}};
	struct plan p = {.package = "pytorch",
			 .env = {.items = with_time, .count = ARRAY_LEN(with_time)}};
	const struct backend *b;
	struct err e = {0};
	struct kvlist l = {0};
	assert_ok(backend_find("setup-py-env", &b, &e), &e);
	backend_env(&p, b, &(struct backend_options){.jobs = 1, .ccache = "/usr/bin/ccache"}, &a,
		    &l);
	assert_string_equal(kvlist_get(&l, "CCACHE_SLOPPINESS"), "pch_defines,time_macros");
	assert_string_equal(kvlist_get(&l, "CCACHE_NAMESPACE"), "1738108800");
	assert_string_equal(kvlist_get(&l, "CMAKE_CUDA_COMPILER_LAUNCHER"), BACKEND_NVCC_LAUNCHER);
	with_time[2].value = "OFF";
	struct kvlist strict = {0};
	backend_env(&p, b, &(struct backend_options){.jobs = 1, .ccache = "/usr/bin/ccache"}, &a,
		    &strict);
	assert_null(kvlist_get(&strict, "CCACHE_SLOPPINESS"));
	assert_null(kvlist_get(&strict, "CCACHE_NAMESPACE"));
}

/* A root with a GCC of this version, and mold if `mold`. */
static const char *linker_for(const char *asked, const char *gcc, bool mold)
{
	struct tool tools[] = {{.name = "gcc", .path = "/usr/bin/gcc", .version = gcc, .id = ""},
			       {.name = "mold",
				.path = mold ? "/usr/bin/mold" : NULL,
				.version = "2.37.1",
				.id = ""}};
	struct toolchain t = {.tools = tools, .count = ARRAY_LEN(tools)};
	struct setting s[] = {{.name = "PTBUILD_LINKER", .value = asked}};
	struct plan p = {.package = "pytorch", .env = {.items = s, .count = 1}};

	return backend_linker(&p, &t);
}

static void test_the_linker_is_the_one_named_where_root_and_compiler_have_it(void **state)
{
	(void)state;
	assert_string_equal(linker_for("mold", "14.2.0", true), "mold");
	assert_string_equal(linker_for("mold", "12.1.0", true), "mold");
	assert_null(linker_for("mold", "11.4.0", true));
	assert_null(linker_for("mold", "14.2.0", false));
	assert_null(linker_for("default", "14.2.0", true));
}

static void test_the_linker_reaches_the_flags(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l =
		env_of("setup-py-env", &(struct backend_options){.jobs = 1, .linker = "mold"}, &a);
	assert_contains(kvlist_get(&l, "LDFLAGS"), "-fuse-ld=mold -Wl,--disable-new-dtags,-rpath,");
	l = env_of("setup-py-env", &(struct backend_options){.jobs = 1}, &a);
	assert_null(strstr(kvlist_get(&l, "LDFLAGS"), "-fuse-ld"));
}

/* What the script of the larger heap runs for a compiler of this name. */
static char *run_by_heap(const char *compiler, const char *options, struct arena *a)
{
	char line[512] = "";
	const char *script = test_path("heap"), *path = arena_strdup(a, test_path("%s", compiler));

	test_write(script, backend_heap(a));
	(void)unlink(path);
	assert_int_equal(symlink("/bin/echo", path), 0);
	FILE *f = popen(
		arena_printf(a, "sh %s %s -c 'a b.cpp'%s", test_path("heap"), path, options), "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_int_equal(pclose(f), 0);
	return arena_strdup(a, line);
}

static void test_a_larger_heap_is_for_gcc_alone(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static const char *const as_it_is[] = {
		" -g",         " -g0 -ggdb3", " -frecord-gcc-switches",
		" -flto=auto", " -flto",      " --param ggc-min-heapsize=4096"};
	static const char heap[] = "--param=ggc-min-heapsize=1048576 -c a b.cpp";
	assert_string_equal(run_by_heap("g++-13", "", &a), arena_printf(&a, "%s\n", heap));
	assert_string_equal(run_by_heap("x86_64-linux-gnu-gcc", "", &a),
			    arena_printf(&a, "%s\n", heap));
	assert_string_equal(run_by_heap("gcc", " -g -g0", &a),
			    arena_printf(&a, "%s -g -g0\n", heap));
	/* the host's half of its work stays below that */
	assert_string_equal(run_by_heap("nvcc", "", &a), "-c a b.cpp\n");
	assert_string_equal(run_by_heap("clang++", "", &a), "-c a b.cpp\n");
	/* the options would be in the object */
	for (size_t i = 0; i < ARRAY_LEN(as_it_is); i++)
		assert_string_equal(run_by_heap("g++", as_it_is[i], &a),
				    arena_printf(&a, "-c a b.cpp%s\n", as_it_is[i]));
}

static void test_setuptools_gets_the_cache_by_the_compilers_names(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l =
		env_of("setuptools",
		       &(struct backend_options){.jobs = 1, .ccache = "/usr/bin/ccache"}, &a);
	assert_string_equal(kvlist_get(&l, "CC"), "gcc");
	assert_string_equal(kvlist_get(&l, "PATH"), "/ptbuild/cfg/ccache:/usr/bin:/bin");
}

static void test_the_prefix_map_is_a_flag_only_without_cmake(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist cmake = env_of("setup-py-env", &(struct backend_options){.jobs = 1}, &a);
	assert_string_equal(kvlist_get(&cmake, "CXXFLAGS"), "-mavx2");
	struct kvlist plain = env_of("setuptools", &(struct backend_options){.jobs = 1}, &a);
	assert_string_equal(kvlist_get(&plain, "CXXFLAGS"),
			    "-mavx2 -ffile-prefix-map=/ptbuild/src/=");
	assert_string_equal(kvlist_get(&plain, "CFLAGS"),
			    "-mavx2 -ffile-prefix-map=/ptbuild/src/=");
}

static void test_the_rpath_placeholder_has_room_and_nothing_to_quote(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l = env_of("setup-py-env", &(struct backend_options){.jobs = 1}, &a);
	assert_contains(kvlist_get(&l, "LDFLAGS"),
			"-Wl,--disable-new-dtags,-rpath,/ptbuild/rpath/");
	assert_true(strlen(BACKEND_RPATH) >= 400);
	assert_null(strpbrk(BACKEND_RPATH, "$ '\":;,\\"));
}

static void test_torch_and_venv_are_found(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l =
		env_of("setuptools",
		       &(struct backend_options){
			       .jobs = 1, .torch = "/ptbuild/torch", .venv = "/ptbuild/venv"},
		       &a);
	assert_string_equal(kvlist_get(&l, "PYTHONPATH"), "/ptbuild/cfg/modules:/ptbuild/torch");
	assert_contains(kvlist_get(&l, "CXXFLAGS"), "-ffile-prefix-map=/ptbuild/torch/=");
	assert_contains(kvlist_get(&l, "CXXFLAGS"), "-ffile-prefix-map=/ptbuild/venv/=");
	assert_string_equal(kvlist_get(&l, "PATH"), "/ptbuild/venv/bin:/usr/bin:/bin");
}

static void test_nvcc_maps_prefixes_and_has_the_cache_as_well(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct setting path[] = {{.name = "PATH", .value = "/usr/bin:/bin"}};
	const struct toolkit cuda = {.text = "12.4", .nvcc = "/usr/bin/nvcc"};
	struct plan p = {
		.package = "torchvision", .env = {.items = path, .count = 1}, .toolkit = &cuda};
	const struct backend *b;
	struct err e = {0};
	struct kvlist l = {0};
	assert_ok(backend_find("setuptools", &b, &e), &e);
	backend_env(&p, b, &(struct backend_options){.jobs = 1, .torch = "/ptbuild/torch"}, &a, &l);
	assert_string_equal(kvlist_get(&l, "NVCC_APPEND_FLAGS"),
			    "-Xcompiler=-ffile-prefix-map=/ptbuild/src/= "
			    "-Xcompiler=-ffile-prefix-map=/ptbuild/torch/=");
	assert_null(kvlist_get(&l, "PYTORCH_NVCC"));
	const struct backend_options cached = {.jobs = 1, .ccache = "/usr/bin/ccache"};
	backend_env(&p, b, &cached, &a, &l);
	assert_string_equal(kvlist_get(&l, "PYTORCH_NVCC"), BACKEND_NVCC_LAUNCHER " /usr/bin/nvcc");
	p.toolkit = NULL;
	backend_env(&p, b, &cached, &a, &l);
	assert_null(kvlist_get(&l, "NVCC_APPEND_FLAGS"));
	assert_null(kvlist_get(&l, "PYTORCH_NVCC"));
}

static void test_the_environment_is_sorted(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct kvlist l =
		env_of("setuptools",
		       &(struct backend_options){.jobs = 1, .ccache = "/usr/bin/ccache"}, &a);
	for (size_t i = 1; i < l.count; i++)
		assert_true(strcmp(l.items[i - 1].key, l.items[i].key) < 0);
}

static void test_the_cache_file_quotes_what_cmake_would_read(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct setting cache[] = {{.name = "CXX_AVX2_FOUND", .value = "FALSE"},
				  {.name = "ODD", .value = "a\"b$c\\d"}};
	struct plan p = toy();
	p.cache = (struct settings){.items = cache, .count = 2};
	const char *text = backend_cache_file(&p, &a);
	assert_contains(text, "set(CXX_AVX2_FOUND \"FALSE\" CACHE STRING \"\")\n");
	assert_contains(text, "set(ODD \"a\\\"b\\$c\\\\d\" CACHE STRING \"\")\n");
	assert_contains(text, "add_compile_options(\"$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map="
			      "/ptbuild/src/=>\")");
	assert_contains(text,
			"$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=/ptbuild/src/=>");
	assert_not_contains(text, "/ptbuild/torch");
	p.torch = "sha256:00";
	assert_contains(backend_cache_file(&p, &a), "-ffile-prefix-map=/ptbuild/torch/=");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_era_has_a_back_end),
		cmocka_unit_test(test_an_unknown_back_end_is_a_config_error),
		cmocka_unit_test(test_jobs_reach_every_tool),
		cmocka_unit_test(test_without_a_compiler_cache_nothing_of_it_is_set),
		cmocka_unit_test(test_cmake_gets_the_cache_as_launcher),
		cmocka_unit_test(test_the_cache_takes_precompiled_headers_and_keeps_releases_apart),
		cmocka_unit_test(test_the_linker_is_the_one_named_where_root_and_compiler_have_it),
		cmocka_unit_test(test_the_linker_reaches_the_flags),
		cmocka_unit_test_teardown(test_a_larger_heap_is_for_gcc_alone, test_teardown),
		cmocka_unit_test(test_setuptools_gets_the_cache_by_the_compilers_names),
		cmocka_unit_test(test_the_prefix_map_is_a_flag_only_without_cmake),
		cmocka_unit_test(test_the_rpath_placeholder_has_room_and_nothing_to_quote),
		cmocka_unit_test(test_torch_and_venv_are_found),
		cmocka_unit_test(test_nvcc_maps_prefixes_and_has_the_cache_as_well),
		cmocka_unit_test(test_the_environment_is_sorted),
		cmocka_unit_test(test_the_cache_file_quotes_what_cmake_would_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
