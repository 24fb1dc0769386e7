/* doctor on this machine's own root, with toolkits that are scripts. */
#include "cmd_fixture.h"

#include <sys/stat.h>

#define VERSION                                                                                    \
	"nvcc: NVIDIA (R) Cuda compiler driver\\nCuda compilation tools, release 12.8, "           \
	"V12.8.93\\nBuild "                                                                        \
	"cuda_12.8.r12.8/compiler.1_0\\n"

static void program(const char *path, const char *text)
{
	test_write(path, text);
	assert_int_equal(chmod(path, 0755), 0);
}

/* An nvcc 12.8 that knows `targets`, and whose compilations end with `status`. */
static void make_toolkit(const char *targets, unsigned gcc_max, int status)
{
	program(test_path("cuda/bin/nvcc"),
		arena_printf(&ran.arena,
			     "#!/bin/sh\ncase $1 in --version) printf '" VERSION
			     "';; --help|--list*) echo \"%s\";;\n"
			     "*) echo \"$@\" >&2; echo made-up trouble >&2; exit %d;; esac\n",
			     targets, status));
	test_write(test_path("cuda/include/crt/host_config.h"),
		   arena_printf(&ran.arena, "#if __GNUC__ > %u\n#error\n#endif\n", gcc_max));
	test_write(test_path("cuda/include/cuda_runtime_api.h"), "#define CUDART_VERSION 12080\n");
	test_write(test_path("cuda/include/cudnn_version.h"),
		   "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 13\n#define CUDNN_PATCHLEVEL 0\n");
}

static json_t *doctor(const char *options)
{
	const char *home = strstr(options, "sm")
				   ? arena_printf(&ran.arena, "--cuda-home '%s'", test_path("cuda"))
				   : "";

	ptbuild(arena_printf(&ran.arena, "doctor --json --sandbox none --python 3.13 %s %s", home,
			     options));
	return json_out();
}

/* The line of that name, NULL if there is none. */
static const json_t *line(const json_t *doc, const char *name)
{
	size_t i;
	const json_t *row;

	json_array_foreach(json_object_get(doc, "checks"), i,
			   row) if (strcmp(json_string_value(json_object_get(row, "name")), name) ==
				    0) return row;
	return NULL;
}

static void expect_line(const json_t *doc, const char *name, const char *level, const char *text,
			const char *fix)
{
	const json_t *row = line(doc, name);

	if (!row)
		fail_msg("doctor has no line '%s': %s", name, out());
	assert_string_equal(json_string_value(json_object_get(row, "level")), level);
	assert_contains(json_string_value(json_object_get(row, "text")), text);
	assert_contains(json_string_value(json_object_get(row, "fix")), fix);
}

static void nvcc_really_compiles(void **state)
{
	(void)state;
	make_toolkit("'sm_75','sm_80','sm_90'", 99, 0);
	AUTO_JSON json_t *doc = doctor("--profile sm80+sm90-avx2 --release 2.8.0 --cuda 12.8");
	expect_line(doc, "nvcc", "ok", "12.8.93", "");
	expect_line(doc, "targets", "ok", "compiles for sm_80, sm_90", "");
	expect_line(doc, "nvcc-host", "ok", "accepts GCC up to 99", "");
	expect_line(doc, "cudart", "ok", "12080", "");
	expect_line(doc, "cudnn", "ok", "9.13.0", "");
}

static void a_kernel_that_does_not_compile(void **state)
{
	(void)state;
	make_toolkit("'sm_90'", 99, 1);
	AUTO_JSON json_t *doc = doctor("--profile sm90-avx2 --release 2.8.0 --cuda 12.8");
	expect_line(doc, "targets", "failure", "made-up trouble", "are not compatible");
	assert_contains(out(), "-gencode=arch=compute_90,code=sm_90");
	assert_true(ran.status == 7 || ran.status == 8);
}

static void nvcc_without_the_target(void **state)
{
	(void)state;
	make_toolkit("'sm_75','sm_80'", 99, 0);
	AUTO_JSON json_t *doc = doctor("--profile sm90-avx2 --release 2.8.0 --cuda 12.8");
	expect_line(doc, "targets", "failure", "does not compile for sm90", "75 80");
}

static void a_compiler_that_nvcc_refuses(void **state)
{
	(void)state;
	make_toolkit("'sm_90'", 4, 0);
	AUTO_JSON json_t *doc = doctor("--profile sm90-avx2 --release 2.8.0 --cuda 12.8");
	expect_line(doc, "nvcc-host", "failure", "accepts GCC up to 4", "install gcc-4 and g++-4");
	assert_null(line(doc, "targets"));
}

static void missing_libraries_are_named_with_the_way_out(void **state)
{
	(void)state;
	make_toolkit("'sm_90'", 99, 0);
	/* A part that no machine has. */
	assert_int_equal(
		shell(arena_printf(
			&ran.arena,
			"cp -r '" PROFILES_DIR "' '" PATCHES_DIR "' '%s' && sed -i "
			"'s/^parts:/&\\n  - {name: made_up, header: made-up.h, toggle: USE_CUDA, "
			"debian: libmade-up-dev}/' '%s'",
			test_path("."), test_path("profiles/cuda.yaml"))),
		0);
	AUTO_JSON json_t *doc = doctor(arena_printf(
		&ran.arena, "--profile sm90-avx2 --release 2.8.0 --cuda 12.8 --profiles '%s'",
		test_path("profiles")));
	expect_line(doc, "made_up", "failure", "no header 'made-up.h'",
		    "Debian's package libmade-up-dev");
	AUTO_JSON json_t *without =
		doctor("--profile sm90-avx2 --release 2.8.0 --cuda 12.8 --set USE_CUDNN=OFF");
	assert_null(line(without, "cudnn"));
}

static void a_cudnn_that_dropped_the_gpu(void **state)
{
	(void)state;
	make_toolkit("'sm_61'", 99, 0);
	AUTO_JSON json_t *doc =
		doctor("--profile sm61-avx2 --release 2.8.0 --cuda 12.8 --set USE_CUDNN=ON");
	expect_line(doc, "cudnn", "failure", "9.10.2.21 was the last", "--without cudnn");
}

static void a_toolkit_of_another_version(void **state)
{
	(void)state;
	make_toolkit("'sm_90'", 99, 0);
	AUTO_JSON json_t *doc = doctor("--profile sm90-avx2 --release 2.8.0 --cuda 12.6");
	expect_line(doc, "nvcc", "failure", "no CUDA 12.6 in the root; there is: 12.8",
		    "--cuda-home");
}

static void an_empty_cuda_home(void **state)
{
	(void)state;
	test_write(test_path("cuda/file"), "");
	AUTO_JSON json_t *doc = doctor("--profile sm90-avx2 --release 2.8.0 --cuda 12.8");
	expect_line(doc, "nvcc", "failure", "cuda", "");
}

/* What this machine lacks for it is of no use. */
static void another_platform_is_not_looked_at(void **state)
{
	(void)state;
#ifdef __x86_64__
	const char *profile = "cpu-armv9";
#else
	const char *profile = "cpu-avx2";
#endif
	AUTO_JSON json_t *doc =
		doctor(arena_printf(&ran.arena, "--profile %s --release 2.8.0", profile));
	expect_line(doc, "platform", "failure", "this machine is", "build it on such a machine");
	assert_null(line(doc, "cpu"));
	assert_null(line(doc, "gcc"));
	assert_null(line(doc, "flags"));
	assert_null(line(doc, "downloads"));
	assert_not_contains(out(), "apt-get");
	assert_int_equal(ran.status, 7);
}

static void pythons_that_the_release_lacks(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = doctor("--profile cpu-avx2 --release 2.8.0");
	const json_t *python = line(doc, "python3");
	assert_non_null(python);
	const char *text = json_string_value(json_object_get(python, "text"));
	assert_true(strstr(text, "3.13.") || strstr(text, "the build is for Python 3.13"));
	assert_non_null(line(doc, "python3-dev"));
}

static void each_build_of_a_command_is_checked(void **state)
{
	(void)state;
	AUTO_JSON json_t *docs = doctor(
		"--profile cpu-avx2 --package torchvision,torchaudio --release 2.6.0-debian");
	assert_int_equal(json_array_size(docs), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *doc = json_array_get(docs, i);
		assert_string_equal(json_string_value(json_object_get(doc, "variant")),
				    i ? "torchaudio-python313-cpu-avx2"
				      : "torchvision-python313-cpu-avx2");
		expect_line(doc, "decoder", "ok", "every set of it has a row", "");
	}

	expect("doctor --matrix build-pytorch/main", 2,
	       "doctor checks the builds of a command, not the ");
	expect("doctor --profile cpu-avx3", 3, "avx3");
}

static void a_compiler_cache_that_a_build_would_refuse(void **state)
{
	(void)state;
	setenv("PTBUILD_CCACHE_REMOTE", "nowhere", 1);
	expect("doctor --profile cpu-avx2 --release 2.6.0-debian", 2, "an unknown kind of address");
	unsetenv("PTBUILD_CCACHE_REMOTE");
}

static void text_has_a_line_each(void **state)
{
	(void)state;
	int status = ptbuild("doctor --sandbox none --release 2.8.0");
	assert_contains(out(), "root / (");
	assert_contains(out(), "warning  sandbox ");
	assert_contains(out(), "                      -> leave --sandbox none out\n");
	assert_int_equal(status != 0, occurrences(out(), "\nfailure ") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nvcc_really_compiles),
		T(a_kernel_that_does_not_compile),
		T(nvcc_without_the_target),
		T(a_compiler_that_nvcc_refuses),
		T(missing_libraries_are_named_with_the_way_out),
		T(a_cudnn_that_dropped_the_gpu),
		T(a_toolkit_of_another_version),
		T(an_empty_cuda_home),
		T(another_platform_is_not_looked_at),
		T(pythons_that_the_release_lacks),
		T(each_build_of_a_command_is_checked),
		T(a_compiler_cache_that_a_build_would_refuse),
		T(text_has_a_line_each),
	};

	return cmocka_run_group_tests_name("cmd/doctor", tests, NULL, NULL);
}
