#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/digest.h"
#include "base/text.h"
#include "core/tables/tables.h"

static const struct tables *shipped(struct arena *a)
{
	const struct tables *t = NULL;
	struct err e = {0};

	assert_ok(tables_load(PROFILES_DIR, a, &t, &e), &e);
	return t;
}

static void loads_what_is_shipped(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	assert_int_equal(t->isas_count, 10);
	assert_int_equal(t->gpus_count, 21);
	assert_int_equal(t->toolkits_count, 7);
	assert_int_equal(t->blas_count, 3);
	assert_int_equal(t->releases_count, 11);
	assert_string_equal(t->dir, PROFILES_DIR);
	assert_true(digest_valid_hex(t->manylinux_digest) &&
		    digest_valid_hex(t->cuda_libraries_digest));
}

static void releases_are_in_order_of_version(void **state)
{
	static const char *const want[] = {"2.6.0",  "2.6.0-debian", "2.7.1",  "2.8.0",
					   "2.9.1",  "2.10.0",       "2.11.0", "2.12.1",
					   "2.13.0", "2.14.1",       "2.15.0"};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	for (unsigned i = 0; i < t->releases_count; i++)
		assert_string_equal(t->releases[i].name, want[i]);
}

static void rows_know_their_lines(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	char *text = test_read(PROFILES_DIR "/gpu.yaml");
	const struct gpu_row *row = tables_gpu(t, "121");
	const char *line = text;

	(void)state;
	for (unsigned i = 1; i < row->line; i++)
		line = strchr(line, '\n') + 1;
	assert_int_equal(strncmp(line, "  - {sm: \"121\"", 14), 0);
	free(text);
}

static void nested_rows_know_their_lines(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	const struct package_row *p;
	const struct release_row *r = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(tables_need_release(t, "2.6.0-debian", &r, &e), &e);
	p = r->pytorch;
	assert_true(p->line > 1);
	assert_true(p->sources[0].line > p->line);
	assert_true(p->sources[1].line > p->sources[0].line);
	assert_true(p->settings[0].line > p->sources[1].line);
	assert_true(r->torchvision->line > p->settings[p->settings_count - 1].line);
}

static void a_row_of_several_names_is_a_row_for_each(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	const struct toggle_row *one = tables_toggle(t, "pytorch", "BUILD_JNI", "2.6.0");
	const struct toggle_row *other = tables_toggle(t, "pytorch", "USE_NNAPI", "2.6.0");

	(void)state;
	assert_non_null(one);
	assert_non_null(other);
	assert_ptr_not_equal(one, other);
	assert_int_equal(one->line, other->line);
	assert_string_equal(one->cpu, "OFF");
	assert_string_equal(one->cuda, "OFF");
	assert_string_equal(one->mps, "OFF");
	assert_true(one->check);
}

static void strings_are_never_null(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	for (unsigned i = 0; i < t->gpus_count; i++) {
		assert_non_null(t->gpus[i].cuda_max);
		assert_non_null(t->gpus[i].note);
	}

	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct release_row *r = &t->releases[i];
		assert_non_null(r->ninja);
		assert_non_null(r->note);
		assert_non_null(r->pytorch->series);
		for (unsigned k = 0; k < r->pytorch->sources_count; k++)
			assert_non_null(r->pytorch->sources[k].into);
	}
}

static void names_stay_as_written(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	assert_string_equal(tables_gpu(t, "90")->capability, "9.0");
	assert_string_equal(tables_toolkit(t, "13.0")->version, "13.0");
	assert_string_equal(tables_toggle(t, "pytorch", "USE_CUDA", "2.9.1")->cpu, "OFF");
}

static void aliases_count(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	assert_ptr_equal(tables_isa(t, "armv8.2"), tables_isa(t, "armv8_2"));
	assert_ptr_equal(tables_isa(t, "graviton3"), tables_isa(t, "neoverse_v1"));
	assert_ptr_equal(tables_gpu(t, "107"), tables_gpu(t, "100"));
	assert_null(tables_isa(t, "armv7"));
}

static void lookups_give_null(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	assert_null(tables_gpu(t, "91"));
	assert_null(tables_toolkit(t, "12.5"));
	assert_null(tables_blas(t, "cublas"));
	assert_null(tables_toggle(t, "pytorch", "USE_METAL", NULL));
}

static void avx_hides_the_kernels(void **state)
{
	static const char *const hidden[] = {"CXX_AVX2_FOUND", "C_AVX2_FOUND", "CXX_AVX512_FOUND",
					     "C_AVX512_FOUND",
					     "CAFFE2_COMPILER_SUPPORTS_AVX512_EXTENSIONS"};
	AUTO_ARENA struct arena a = {0};
	const struct isa_row *avx = tables_isa(shipped(&a), "avx");
	unsigned found = 0;

	(void)state;
	assert_int_equal(avx->settings_count, 8);
	for (unsigned i = 0; i < avx->settings_count; i++)
		for (size_t k = 0; k < ARRAY_LEN(hidden); k++)
			if (strcmp(avx->settings[i].name, hidden[k]) == 0) {
				assert_true(avx->settings[i].cache);
				assert_string_equal(avx->settings[i].package, "pytorch");
				found++;
			}
	assert_int_equal(found, ARRAY_LEN(hidden));
}

struct flags_case {
	const char *isa;
	const char *flags;
};

static void flags_are_those_of_the_recipes(void **state)
{
	static const struct flags_case cases[] = {
		{"avx", "-mavx -mno-fma -mno-bmi -mno-bmi2 -mno-avx2"},
		{"avx2", "-mavx2 -mfma -mf16c"},
		{"avx512", "-mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma"},
		{"avx512bf16", "-mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx512bf16 -mfma"},
		{"avx512vnni", "-mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx512vnni -mfma"},
		{"armv8_2", "-march=armv8.2-a+fp16+dotprod"},
		{"armv9", "-march=armv9-a+sve+sve2"},
	};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct isa_row *row = tables_isa(t, cases[i].isa);
		struct strlist l = {0};
		for (unsigned k = 0; k < row->flags_count; k++)
			strlist_ref(&l, &a, row->flags[k]);
		assert_string_equal(strlist_join(&l, &a, " "), cases[i].flags);
	}
}

static void gpus_have_their_toolkits(void **state)
{
	static const struct {
		const char *sm;
		const char *min;
		const char *max;
	} cases[] = {{"61", "8.0", "12.9"}, {"75", "10.0", ""},  {"89", "11.8", ""},
		     {"90", "11.8", ""},    {"100", "12.8", ""}, {"101", "12.8", "12.9"},
		     {"103", "12.9", ""},   {"110", "13.0", ""}, {"120", "12.8", ""},
		     {"121", "12.9", ""}};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_string_equal(tables_gpu(t, cases[i].sm)->cuda_min, cases[i].min);
		assert_string_equal(tables_gpu(t, cases[i].sm)->cuda_max, cases[i].max);
	}
}

static bool has_device(const struct gpu_row *row, const char *name)
{
	for (unsigned i = 0; i < row->devices_count; i++)
		if (strcmp(row->devices[i], name) == 0)
			return true;
	return false;
}

static void devices_are_where_they_belong(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	assert_true(has_device(tables_gpu(t, "89"), "L40S"));
	assert_false(has_device(tables_gpu(t, "90"), "L40S"));
	assert_true(has_device(tables_gpu(t, "87"), "DRIVE AGX Orin"));
	assert_true(has_device(tables_gpu(t, "110"), "DRIVE AGX Thor"));
	assert_true(has_device(tables_gpu(t, "121"), "GB10"));
}

static void old_gpus_end_with_an_old_cudnn(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	for (unsigned i = 0; i < t->gpus_count; i++) {
		bool old = version_cmp(t->gpus[i].capability, "7.5") < 0;
		assert_int_equal(*t->gpus[i].cudnn_max != '\0', old);
		if (old) {
			assert_true(version_cmp(t->gpus[i].cudnn_max, "9.11") < 0);
			assert_string_equal(t->gpus[i].cuda_max, "12.9");
		}
	}
}

static void driver_floors_follow_the_line(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	for (unsigned i = 0; i < t->toolkits_count; i++) {
		bool twelve = strncmp(t->toolkits[i].version, "12.", 3) == 0;
		assert_string_equal(t->toolkits[i].driver_floor, twelve ? "525.60.13" : "580");
	}

	assert_string_equal(tables_toolkit(t, "12.8")->driver, "570.26");
}

static void cuda13_has_one_directory(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	const struct toolkit_row *new = tables_toolkit(t, "13.0");

	(void)state;
	assert_string_equal(new->libraries[1].dir, "cu13/lib");
	assert_string_equal(new->libraries[1].package, "nvidia-cublas");
	assert_string_equal(tables_toolkit(t, "12.8")->libraries[1].package, "nvidia-cublas-cu12");
	assert_string_equal(tables_toolkit(t, "12.8")->libraries[1].dir, "cublas/lib");
	assert_string_equal(t->driver_libraries[0], "libcuda.so.1");
}

static void every_toggle_of_the_proven_build_is_there(void **state)
{
	static const char *const names[] = {"ATEN_THREADING",
					    "BUILD_BINARY",
					    "BUILD_TEST",
					    "INSTALL_TEST",
					    "TH_BINARY_BUILD",
					    "USE_CCACHE",
					    "USE_CUDA",
					    "USE_CUDNN",
					    "USE_DISTRIBUTED",
					    "USE_FBGEMM",
					    "USE_GFLAGS",
					    "USE_GLOG",
					    "USE_ITT",
					    "USE_KINETO",
					    "USE_MAGMA",
					    "USE_MIMALLOC",
					    "USE_MKLDNN",
					    "USE_MKLDNN_CBLAS",
					    "USE_MPS",
					    "USE_NATIVE_ARCH",
					    "USE_NCCL",
					    "USE_NNPACK",
					    "USE_NUMA",
					    "USE_NUMPY",
					    "USE_OPENMP",
					    "USE_PRECOMPILED_HEADERS",
					    "USE_PYTORCH_QNNPACK",
					    "USE_ROCM",
					    "USE_VULKAN",
					    "USE_XNNPACK",
					    "USE_XPU"};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct toggle_row *row = tables_toggle(t, "pytorch", names[i], "2.6.0");
		if (!row)
			fail_msg("no toggle '%s'", names[i]);
		assert_true(*row->cpu != '\0');
		assert_int_equal(row->check, strcmp(names[i], "TH_BINARY_BUILD") != 0);
	}
}

static void toggles_have_versions(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	assert_null(tables_toggle(t, "pytorch", "USE_NVSHMEM", "2.7.1"));
	assert_non_null(tables_toggle(t, "pytorch", "USE_NVSHMEM", "2.8.0"));
	assert_non_null(tables_toggle(t, "torchaudio", "BUILD_SOX", "2.8.0"));
	assert_null(tables_toggle(t, "torchaudio", "BUILD_SOX", "2.9.0"));
	assert_true(tables_toggle(t, "torchaudio", "USE_CUDA", "2.10.0")->check);
	assert_false(tables_toggle(t, "torchaudio", "USE_CUDA", "2.11.0")->check);
}

static void toggle_values_take_the_rows_spelling(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	const char *value = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(tables_toggle_value(tables_toggle(t, "pytorch", "USE_CUDNN", NULL), "false",
				      &value, &e),
		  &e);
	assert_string_equal(value, "OFF");
	assert_ok(tables_toggle_value(tables_toggle(t, "pytorch", "USE_CUDNN", NULL), "1", &value,
				      &e),
		  &e);
	assert_string_equal(value, "ON");
	assert_ok(tables_toggle_value(tables_toggle(t, "torchvision", "FORCE_CUDA", NULL), "on",
				      &value, &e),
		  &e);
	assert_string_equal(value, "1");
	assert_ok(tables_toggle_value(tables_toggle(t, "pytorch", "ATEN_THREADING", NULL), "native",
				      &value, &e),
		  &e);
	assert_string_equal(value, "NATIVE");
}

static void toggle_values_are_refused(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct toggle_row *row =
		tables_toggle(shipped(&a), "pytorch", "ATEN_THREADING", NULL);
	const char *value = NULL;
	struct err e = {0};

	(void)state;
	assert_err(tables_toggle_value(row, "on", &value, &e), &e, ERR_CONFIG,
		   "'ATEN_THREADING' cannot be 'on'");
	assert_contains(e.hint, "OMP, NATIVE");
	assert_null(value);
}

static void retired_names_have_a_reason(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	assert_contains(tables_retired(t, "pytorch", "USE_CUBLAS", "2.9.1")->why,
			"cuBLAS comes with USE_CUDA");
	assert_contains(tables_retired(t, "pytorch", "USE_METAL", "2.6.0")->why, "USE_MPS");
	assert_null(tables_retired(t, "torchaudio", "BUILD_SOX", "2.8.0"));
	assert_contains(tables_retired(t, "torchaudio", "BUILD_SOX", "2.9.1")->why, "TorchCodec");
	assert_non_null(tables_retired(t, "torchaudio", "BUILD_SOX", NULL));
	assert_null(tables_retired(t, "pytorch", "USE_CUDA", NULL));
}

static void releases_are_found(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	const struct release_row *r = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(tables_need_release(t, "2.9.1", &r, &e), &e);
	assert_string_equal(r->pytorch->version, "2.9.1");
	assert_ptr_equal(tables_package(r, "torchvision"), r->torchvision);
	assert_string_equal(tables_package(r, "torchaudio")->version, "2.9.1");
	assert_null(tables_package(r, "torchtext"));
	assert_contains(r->file, "releases/2.9.1.yaml");
}

static void unknown_release_gets_the_nearest(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	const struct release_row *r = NULL;
	struct err e = {0};

	(void)state;
	assert_err(tables_need_release(t, "2.9.0", &r, &e), &e, ERR_CONFIG,
		   "unknown release '2.9.0'");
	assert_contains(e.hint, "did you mean '2.");
	assert_contains(e.hint, "2.13.0");
	assert_null(r);
}

static void companions_are_paired(void **state)
{
	static const struct {
		const char *release;
		const char *vision;
		const char *audio;
	} pairs[] = {{"2.6.0", "0.21.0", "2.6.0"},   {"2.6.0-debian", "0.21.0", "2.6.0"},
		     {"2.7.1", "0.22.1", "2.7.1"},   {"2.8.0", "0.23.0", "2.8.0"},
		     {"2.9.1", "0.24.1", "2.9.1"},   {"2.10.0", "0.25.0", "2.10.0"},
		     {"2.11.0", "0.26.0", "2.11.0"}, {"2.12.1", "0.27.1", "2.11.0"},
		     {"2.13.0", "0.28.0", "2.11.0"}, {"2.14.1", "0.29.1", "2.11.0"},
		     {"2.15.0", "0.29.2", "2.11.0"}};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		const struct release_row *r = NULL;
		assert_ok(tables_need_release(t, pairs[i].release, &r, &e), &e);
		assert_string_equal(r->torchvision->version, pairs[i].vision);
		assert_string_equal(r->torchaudio->version, pairs[i].audio);
	}
}

static void same_bytes_have_one_digest(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	const struct release_row *up = NULL;
	const struct release_row *debian = NULL;
	struct err e = {0};

	(void)state;
	assert_ok(tables_need_release(t, "2.6.0", &up, &e), &e);
	assert_ok(tables_need_release(t, "2.6.0-debian", &debian, &e), &e);
	assert_string_equal(up->torchvision->sources[0].sha256,
			    debian->torchvision->sources[0].sha256);
	assert_string_equal(up->torchaudio->sources[0].name, debian->torchaudio->sources[0].name);
	assert_int_equal(strncmp(up->torchvision->sources[0].urls[0], "https://github.com/", 19),
			 0);
	assert_int_equal(strncmp(debian->torchvision->sources[0].urls[0], "deb:debian/", 11), 0);
	assert_true(debian->pytorch->sources[1].keep_top);
	assert_false(debian->pytorch->sources[0].keep_top);
}

static void locked_requirements_have_hashes(void **state)
{
	static const char *const files[] = {PROFILES_DIR "/requirements/shared.txt",
					    PROFILES_DIR "/requirements/skbuild.txt"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char *text = test_read(files[i]);
		unsigned pins = 0;
		assert_non_null(text);
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			if (*line == '#' || *line == ' ')
				continue;
			assert_contains(line, "==");
			size_t n = strlen(line);
			assert_int_equal(line[n - 1], '\\'); /* its hashes follow */
			pins++;
		}

		assert_true(pins >= 10);
		free(text);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_teardown(loads_what_is_shipped, test_teardown),
	cmocka_unit_test_teardown(releases_are_in_order_of_version, test_teardown),
	cmocka_unit_test_teardown(rows_know_their_lines, test_teardown),
	cmocka_unit_test_teardown(nested_rows_know_their_lines, test_teardown),
	cmocka_unit_test_teardown(a_row_of_several_names_is_a_row_for_each, test_teardown),
	cmocka_unit_test_teardown(strings_are_never_null, test_teardown),
	cmocka_unit_test_teardown(names_stay_as_written, test_teardown),
	cmocka_unit_test_teardown(aliases_count, test_teardown),
	cmocka_unit_test_teardown(lookups_give_null, test_teardown),
	cmocka_unit_test_teardown(avx_hides_the_kernels, test_teardown),
	cmocka_unit_test_teardown(flags_are_those_of_the_recipes, test_teardown),
	cmocka_unit_test_teardown(gpus_have_their_toolkits, test_teardown),
	cmocka_unit_test_teardown(devices_are_where_they_belong, test_teardown),
	cmocka_unit_test_teardown(old_gpus_end_with_an_old_cudnn, test_teardown),
	cmocka_unit_test_teardown(driver_floors_follow_the_line, test_teardown),
	cmocka_unit_test_teardown(cuda13_has_one_directory, test_teardown),
	cmocka_unit_test_teardown(every_toggle_of_the_proven_build_is_there, test_teardown),
	cmocka_unit_test_teardown(toggles_have_versions, test_teardown),
	cmocka_unit_test_teardown(toggle_values_take_the_rows_spelling, test_teardown),
	cmocka_unit_test_teardown(toggle_values_are_refused, test_teardown),
	cmocka_unit_test_teardown(retired_names_have_a_reason, test_teardown),
	cmocka_unit_test_teardown(releases_are_found, test_teardown),
	cmocka_unit_test_teardown(unknown_release_gets_the_nearest, test_teardown),
	cmocka_unit_test_teardown(companions_are_paired, test_teardown),
	cmocka_unit_test_teardown(same_bytes_have_one_digest, test_teardown),
	cmocka_unit_test_teardown(locked_requirements_have_hashes, test_teardown),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
