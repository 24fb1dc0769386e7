#include "support.h"

#include "buildenv_fixture.h"

static void the_environment_is_built_from_nothing(void **state)
{
	struct fixture *f = *state;

	setenv("USE_MAGMA", "1", 1);
	resolve(f);
	unsetenv("USE_MAGMA");
	want_env(f, "PATH", "/usr/bin:/bin");
	want_env(f, "LC_ALL", "C.UTF-8");
	want_env(f, "TZ", "UTC");
	want_env(f, "PYTHONHASHSEED", "0");
	want_env(f, "PYTHONDONTWRITEBYTECODE", "1");
	want_env(f, "SOURCE_DATE_EPOCH", "1754000000");
	want_env(f, "HOME", "/ptbuild/home");
	want_env(f, "TMPDIR", "/ptbuild/tmp");
	want_env(f, "CC", "gcc");
	want_env(f, "CXX", "g++");
	assert_null(settings_get(&f->env.env, "USE_MAGMA"));
	assert_null(settings_get(&f->env.env, "MAX_JOBS"));
	assert_null(settings_get(&f->env.env, "LDFLAGS"));
}

static void every_setting_says_where_it_is_from_and_why(void **state)
{
	struct fixture *f = *state;

	use_cuda(f, 2, "", false);
	resolve(f);
	const struct settings *lists[] = {&f->env.env, &f->env.cmake, &f->env.cache};
	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		for (size_t i = 0; i < lists[k]->count; i++) {
			assert_true(*lists[k]->items[i].file);
			assert_true(*lists[k]->items[i].why);
			assert_true(lists[k]->items[i].line ||
				    strcmp(lists[k]->items[i].file, SETTING_BUILT_IN) == 0);
		}
}

static void lists_are_sorted_by_name(void **state)
{
	struct fixture *f = *state;

	f->profile.isa = &f->s.isas[0];
	resolve(f);
	const struct settings *lists[] = {&f->env.env, &f->env.cmake, &f->env.cache};
	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		for (size_t i = 1; i < lists[k]->count; i++)
			assert_true(strcmp(lists[k]->items[i - 1].name, lists[k]->items[i].name) <
				    0);
}

static void isa_flags_go_to_both_compilers_only(void **state)
{
	struct fixture *f = *state;

	resolve(f);
	want_env(f, "CFLAGS", "-mavx2 -mfma -mf16c");
	want_env(f, "CXXFLAGS", "-mavx2 -mfma -mf16c");
	assert_string_equal(settings_origin(settings_get(&f->env.env, "CFLAGS"), &f->a),
			    "isa.yaml:20");
	for (size_t i = 0; i < f->env.env.count; i++)
		if (strstr(f->env.env.items[i].name, "CUDA"))
			assert_null(strstr(f->env.env.items[i].value, "-m"));
}

static void flags_are_isa_then_package_then_user(void **state)
{
	struct fixture *f = *state;
	static const char *extra[] = {"-Wno-dangling-reference"}, *other[] = {"-Wno-psabi"},
			  *arm[] = {"aarch64-linux"};
	static struct cflags_row rows[] = {
		{.flags = extra, .flags_count = 1},
		{.flags = other, .flags_count = 1, .platforms = arm, .platforms_count = 1}};

	f->s.packages[0].extra_cflags = rows;
	f->s.packages[0].extra_cflags_count = 2;
	strlist_add(&f->profile.extra_cflags, &f->a, "-O3");
	resolve(f);
	want_env(f, "CXXFLAGS", "-mavx2 -mfma -mf16c -Wno-dangling-reference -O3");
}

static void without_an_isa_there_are_no_flags(void **state)
{
	struct fixture *f = *state;

	f->profile.isa = NULL;
	f->profile.gpu = GPU_MPS;
	f->profile.platform = "aarch64-darwin";
	f->q.blas = &f->s.blas[2];
	resolve(f);
	assert_null(settings_get(&f->env.env, "CFLAGS"));
	want_env(f, "CC", "clang");
	want_env(f, "CXX", "clang++");
	want_env(f, "BLAS", "vecLib");
}

static void pytorch_gets_its_version_with_the_label(void **state)
{
	struct fixture *f = *state;

	resolve(f);
	want_env(f, "PYTORCH_BUILD_VERSION", "2.8.0+cpu.avx2");
	want_env(f, "PYTORCH_BUILD_NUMBER", "1");
	want_env(f, "CMAKE_BUILD_TYPE", "Release");
	want_env(f, "CMAKE_GENERATOR", "Ninja");
	want_env(f, "CMAKE_EXPORT_COMPILE_COMMANDS", "ON");
	want_env(f, "CMAKE_TOOLCHAIN_FILE", "/ptbuild/cfg/entries.cmake");
	assert_null(settings_get(&f->env.env, "BUILD_VERSION"));
}

static void torchvision_gets_its_own_names(void **state)
{
	struct fixture *f = *state;

	use_package(f, "torchvision", 1, 0);
	f->q.torch_version = "2.8.0+cpu.avx2";
	resolve(f);
	want_env(f, "BUILD_VERSION", "0.23.0+cpu.avx2");
	want_env(f, "PYTORCH_VERSION", "2.8.0+cpu.avx2");
	want_env(f, "FORCE_CUDA", "0");
	want_env(f, "TORCHVISION_USE_JPEG", "1");
	assert_null(settings_get(&f->env.env, "PYTORCH_BUILD_VERSION"));
	assert_null(settings_get(&f->env.env, "CMAKE_TOOLCHAIN_FILE"));
	assert_null(settings_get(&f->env.env, "USE_MPI"));
	assert_null(settings_get(&f->env.env, "BLAS"));
	assert_int_equal(f->env.cmake.count, 0);
}

static void an_unknown_torch_version_is_not_pinned(void **state)
{
	struct fixture *f = *state;

	use_package(f, "torchvision", 1, 0);
	resolve(f);
	assert_null(settings_get(&f->env.env, "PYTORCH_VERSION"));
}

static void torchvision_is_built_with_cuda_on_machines_without_a_gpu(void **state)
{
	struct fixture *f = *state;

	use_package(f, "torchvision", 1, 0);
	use_cuda(f, 2, "", false);
	resolve(f);
	want_env(f, "FORCE_CUDA", "1");
	want_env(f, "TORCH_CUDA_ARCH_LIST", "9.0");
}

static void torchaudio_is_built_with_cuda_on_machines_without_a_gpu(void **state)
{
	struct fixture *f = *state;

	use_package(f, "torchaudio", 2, 0);
	use_cuda(f, 1, "", false);
	use_cuda(f, 2, "", true);
	resolve(f);
	want_env(f, "USE_CUDA", "ON");
	want_env(f, "CMAKE_TOOLCHAIN_FILE", "/ptbuild/cfg/entries.cmake");
	assert_null(settings_value(&f->env.cmake, "TORCH_CUDA_ARCH_LIST"));
	assert_string_equal(settings_value(&f->env.cmake, "CMAKE_CUDA_ARCHITECTURES"),
			    "80-real;90");
	assert_null(settings_value(&f->env.env, "CMAKE_CUDA_ARCHITECTURES"));
}

static void torchaudio_without_cuda_says_so(void **state)
{
	struct fixture *f = *state;

	use_package(f, "torchaudio", 2, 0);
	resolve(f);
	want_env(f, "USE_CUDA", "OFF");
	assert_null(settings_value(&f->env.cmake, "CMAKE_CUDA_ARCHITECTURES"));
}

static void the_arch_list_is_in_dot_notation(void **state)
{
	struct fixture *f = *state;

	use_cuda(f, 1, "", false);
	use_cuda(f, 2, "a", false);
	use_cuda(f, 3, "", true);
	assert_string_equal(buildenv_arch_list(&f->profile, &f->a), "8.0;9.0a;10.3+PTX");
	resolve(f);
	want_env(f, "TORCH_CUDA_ARCH_LIST", "8.0;9.0a;10.3+PTX");
	assert_string_equal(settings_value(&f->env.cmake, "TORCH_CUDA_ARCH_LIST"),
			    "8.0;9.0a;10.3+PTX");
}

static void toggles_follow_the_gpu_kind(void **state)
{
	struct fixture *f = *state;

	resolve(f);
	want_env(f, "USE_CUDA", "OFF");
	use_cuda(f, 2, "", false);
	resolve(f);
	want_env(f, "USE_CUDA", "ON");
	f->profile.gpu = GPU_MPS;
	f->profile.targets_count = 0;
	resolve(f);
	want_env(f, "USE_FBGEMM", "OFF");
	assert_null(settings_get(&f->env.env, "MKL_THREADING"));
}

static void toggles_of_other_versions_are_left_out(void **state)
{
	struct fixture *f = *state;

	use_cuda(f, 2, "", false);
	resolve(f);
	assert_null(settings_get(&f->env.env, "USE_GENAI"));
	use_package(f, "pytorch", 3, 1);
	resolve(f);
	want_env(f, "USE_GENAI", "ON");
}

static void since_is_the_first_and_until_the_first_without(void **state)
{
	(void)state;
	struct toggle_row row = {.since = "2.9", .until = "2.11"};
	assert_false(toggle_applies(&row, "2.8.0"));
	assert_true(toggle_applies(&row, "2.9.0"));
	assert_true(toggle_applies(&row, "2.10.0"));
	assert_false(toggle_applies(&row, "2.11.0"));
}

static void an_isa_overrides_the_default_and_tells(void **state)
{
	struct fixture *f = *state;

	f->profile.isa = &f->s.isas[0];
	resolve(f);
	const struct setting *s = settings_get(&f->env.env, "USE_FBGEMM");
	assert_string_equal(s->value, "OFF");
	assert_string_equal(s->why, "needs AVX2 (instead of 'ON' from toggles.yaml:3)");
	assert_string_equal(settings_origin(s, &f->a), "isa.yaml:11");
	assert_true(s->check);
}

static void entries_that_nothing_forwards_go_through_the_file(void **state)
{
	struct fixture *f = *state;

	f->profile.isa = &f->s.isas[0];
	resolve(f);
	assert_int_equal(f->env.cache.count, 2);
	assert_string_equal(settings_value(&f->env.cache, "BLAS_USE_CBLAS_DOT"), "ON");
	assert_string_equal(settings_value(&f->env.cache, "CXX_AVX2_FOUND"), "FALSE");
	assert_string_equal(settings_value(&f->env.cmake, "CXX_AVX2_FOUND"), "FALSE");
	assert_null(settings_get(&f->env.env, "CXX_AVX2_FOUND"));
}

static void isa_settings_end_with_their_release(void **state)
{
	struct fixture *f = *state;

	f->profile.isa = &f->s.isas[0];
	resolve(f);
	want_env(f, "USE_NNPACK", "OFF");
	use_package(f, "pytorch", 3, 1);
	resolve(f);
	want_env(f, "USE_NNPACK", "ON");
}

static void isa_settings_reach_their_own_package(void **state)
{
	struct fixture *f = *state;

	f->profile.isa = &f->s.isas[0];
	resolve(f);
	assert_null(settings_get(&f->env.env, "TORCHVISION_USE_JPEG"));
	use_package(f, "torchvision", 1, 0);
	resolve(f);
	want_env(f, "TORCHVISION_USE_JPEG", "0");
	assert_null(settings_get(&f->env.env, "USE_FBGEMM"));
}

static void cudnn_stays_on_while_it_supports_the_gpu(void **state)
{
	struct fixture *f = *state;

	use_cuda(f, 2, "", false);
	resolve(f);
	want_env(f, "USE_CUDNN", "ON");
	assert_null(buildenv_cudnn_dropped(&f->profile));
}

static void cudnn_is_off_for_an_old_gpu_though_the_release_could_have_one(void **state)
{
	struct fixture *f = *state;

	use_cuda(f, 0, "", false);
	resolve(f);
	want_env(f, "USE_CUDNN", "OFF");
	assert_contains(settings_get(&f->env.env, "USE_CUDNN")->why,
			"a root may hold a newer one (--set USE_CUDNN=ON where it does not)");
}

static void cudnn_goes_off_when_one_gpu_is_too_old(void **state)
{
	struct fixture *f = *state;

	use_package(f, "pytorch", 3, 1);
	use_cuda(f, 0, "", false);
	use_cuda(f, 2, "", false);
	resolve(f);
	const struct setting *s = settings_get(&f->env.env, "USE_CUDNN");
	assert_string_equal(s->value, "OFF");
	assert_string_equal(settings_origin(s, &f->a), "gpu.yaml:10");
	assert_contains(
		s->why,
		"cuDNN 9.10 is the last that supports sm61, and this release uses 9.13.0.50");
	assert_contains(s->why, "instead of 'ON' from toggles.yaml:2");
}

static void cudnn_goes_off_when_its_version_is_unknown(void **state)
{
	struct fixture *f = *state;

	f->s.packages[0].cudnn = "";
	use_cuda(f, 0, "", false);
	resolve(f);
	want_env(f, "USE_CUDNN", "OFF");
	assert_contains(settings_get(&f->env.env, "USE_CUDNN")->why, "this release names none");
}

static void the_release_overrides_the_isa(void **state)
{
	struct fixture *f = *state;
	struct table_setting own[] = {{SETTING("USE_FBGEMM", "ON", "patched", 50)},
				      {SETTING("ONNX_NAMESPACE", "onnx", "system ONNX", 51)}};

	own[0].package = own[1].package = "pytorch";
	f->s.packages[0].settings = own;
	f->s.packages[0].settings_count = 2;
	f->profile.isa = &f->s.isas[0];
	resolve(f);
	want_env(f, "USE_FBGEMM", "ON");
	want_env(f, "ONNX_NAMESPACE", "onnx");
	assert_null(settings_get(&f->env.cmake, "ONNX_NAMESPACE"));
	assert_string_equal(settings_origin(settings_get(&f->env.env, "USE_FBGEMM"), &f->a),
			    "releases/2.8.0.yaml:50");
}

static void blas_is_explicit_and_checked(void **state)
{
	struct fixture *f = *state;

	resolve(f);
	want_env(f, "BLAS", "OpenBLAS");
	assert_string_equal(settings_value(&f->env.cmake, "BLAS"), "OpenBLAS");
	assert_contains(settings_get(&f->env.env, "BLAS")->why, "the default of x86_64-linux");
	assert_string_equal(settings_value(&f->env.cache, "BLAS_USE_CBLAS_DOT"), "ON");
	assert_string_equal(settings_value(&f->env.cmake, "BLAS_USE_CBLAS_DOT"), "ON");
	f->q.blas = &f->s.blas[1];
	f->q.blas_origin = "command line";
	resolve(f);
	want_env(f, "BLAS", "MKL");
	assert_null(settings_get(&f->env.cache, "BLAS_USE_CBLAS_DOT"));
	assert_contains(settings_get(&f->env.env, "BLAS")->why, "asked for in command line");
}

static void only_checked_toggles_are_compared(void **state)
{
	struct fixture *f = *state;

	resolve(f);
	assert_string_equal(settings_value(&f->env.cmake, "USE_MPI"), "OFF");
	assert_string_equal(settings_value(&f->env.cmake, "CMAKE_BUILD_TYPE"), "Release");
	assert_null(settings_get(&f->env.cmake, "INSTALL_TEST"));
	assert_null(settings_get(&f->env.cmake, "CFLAGS"));
	want_env(f, "INSTALL_TEST", "OFF");
}

static void a_profile_overrides_the_isa(void **state)
{
	struct fixture *f = *state;

	f->profile.isa = &f->s.isas[0];
	use_user_toggle(f, "USE_FBGEMM", "on");
	resolve(f);
	const struct setting *s = settings_get(&f->env.env, "USE_FBGEMM");
	assert_string_equal(s->value, "ON");
	assert_string_equal(settings_origin(s, &f->a), "my.yaml:7");
	assert_contains(s->why, "instead of 'OFF' from isa.yaml:11");
}

static void the_command_line_overrides_all(void **state)
{
	struct fixture *f = *state;

	use_user_toggle(f, "USE_FBGEMM", "OFF");
	kvlist_set(&f->options.toggles, &f->a, "USE_FBGEMM", "1");
	resolve(f);
	const struct setting *s = settings_get(&f->env.env, "USE_FBGEMM");
	assert_string_equal(s->value, "ON");
	assert_string_equal(s->file, "command line");
	assert_contains(s->why, "instead of 'OFF' from my.yaml:7");
	assert_true(s->check);
}

static void the_user_may_keep_cudnn(void **state)
{
	struct fixture *f = *state;

	use_package(f, "pytorch", 3, 1);
	use_cuda(f, 0, "", false);
	kvlist_set(&f->options.toggles, &f->a, "USE_CUDNN", "ON");
	resolve(f);
	want_env(f, "USE_CUDNN", "ON");
}

static void values_are_spelled_as_the_package_reads_them(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->options.toggles, &f->a, "USE_MPI", "true");
	resolve(f);
	want_env(f, "USE_MPI", "ON");
	f->options.toggles.count = 0;
	use_package(f, "torchvision", 1, 0);
	kvlist_set(&f->options.toggles, &f->a, "TORCHVISION_USE_JPEG", "off");
	resolve(f);
	want_env(f, "TORCHVISION_USE_JPEG", "0");
}

static void a_value_that_no_row_has_is_refused(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->options.toggles, &f->a, "USE_MPI", "maybe");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG, "maybe");
	f->options.toggles.count = 0;
	kvlist_set(&f->options.toggles, &f->a, "MKL_THREADING", "ON");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
		   "MKL_THREADING");
}

static void an_entry_without_default_may_still_be_set(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->options.toggles, &f->a, "CXX_AVX2_FOUND", "OFF");
	resolve(f);
	assert_string_equal(settings_value(&f->env.cache, "CXX_AVX2_FOUND"), "OFF");
	assert_null(settings_get(&f->env.env, "CXX_AVX2_FOUND"));
}

static void a_mistyped_toggle_gets_the_nearest(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->options.toggles, &f->a, "USE_FBGEM", "ON");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG, "USE_FBGEM");
	assert_contains(f->e.hint, "USE_FBGEMM");
}

static void a_toggle_of_another_release_is_refused(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->options.toggles, &f->a, "USE_GENAI", "ON");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG, "USE_GENAI");
	assert_contains(f->e.hint, "2.9");
}

static void a_retired_toggle_is_refused_with_the_reason(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->options.toggles, &f->a, "USE_METAL", "ON");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG, "USE_METAL");
	char all[4096];
	snprintf(all, sizeof(all), "%s %s", f->e.msg, f->e.hint);
	assert_contains(all, "use USE_MPS");
}

/* What is known of a name counts, in whatever case it is typed. */
static void case_does_not_hide_a_name(void **state)
{
	static const struct {
		const char *typed, *msg, *hint;
	} cases[] = {
		{"use_metal", "has no option 'USE_METAL'", "use USE_MPS"},
		{"Use_CuBLAS", "has no option 'USE_CUBLAS'", "comes with USE_CUDA"},
		{"use_genai", "has no option 'USE_GENAI'", "2.9"},
		{"use_fbgemm", "unknown option 'use_fbgemm'", "did you mean 'USE_FBGEMM'?"},
		{"force_cuda", "unknown option 'force_cuda'", "did you mean 'FORCE_CUDA'?"},
		{"max_jobs_", "unknown option 'max_jobs_'", "lists all"},
		{"blas", "'BLAS' cannot be overridden", "--blas"},
		{"pytorch_build_version", "'PYTORCH_BUILD_VERSION' cannot be overridden",
		 "built in"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		f->options.toggles.count = 0;
		kvlist_set(&f->options.toggles, &f->a, cases[i].typed, "1");
		assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
			   cases[i].msg);
		assert_contains(f->e.hint, cases[i].hint);
	}
}

static void a_wrong_toggle_of_a_file_names_its_line(void **state)
{
	struct fixture *f = *state;

	use_user_toggle(f, "USE_FBGEM", "ON");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
		   "my.yaml:7: ");
}

static void a_toggle_of_another_package_is_noted(void **state)
{
	struct fixture *f = *state;

	use_package(f, "torchvision", 1, 0);
	kvlist_set(&f->options.toggles, &f->a, "USE_FBGEMM", "OFF");
	resolve(f);
	assert_null(settings_get(&f->env.env, "USE_FBGEMM"));
	assert_int_equal(f->env.notes.count, 1);
	assert_string_equal(
		f->env.notes.items[0],
		"USE_FBGEMM=OFF is for pytorch: it changes nothing of torchvision itself");
}

static void what_ptbuild_sets_is_no_toggle(void **state)
{
	struct fixture *f = *state;
	const char *names[] = {"BLAS", "CFLAGS", "PYTORCH_BUILD_VERSION", "PATH",
			       "TORCH_CUDA_ARCH_LIST"};
	const char *hints[] = {"--blas", "cflags", "built in", "built in", "sm80+sm90"};

	use_cuda(f, 2, "", false);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		f->options.toggles.count = 0;
		kvlist_set(&f->options.toggles, &f->a, names[i], "x");
		assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
			   names[i]);
		assert_contains(f->e.hint, hints[i]);
	}
}

static void a_value_of_the_release_may_be_changed_by_the_user(void **state)
{
	struct fixture *f = *state;
	struct table_setting own = {SETTING("ONNX_NAMESPACE", "onnx", "system ONNX", 51)};

	f->s.packages[0].settings = &own;
	f->s.packages[0].settings_count = 1;
	kvlist_set(&f->options.toggles, &f->a, "ONNX_NAMESPACE", "onnx_torch");
	resolve(f);
	want_env(f, "ONNX_NAMESPACE", "onnx_torch");
	kvlist_set(&f->options.toggles, &f->a, "ONNX_NAMESPACE", "");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
		   "ONNX_NAMESPACE");
	kvlist_set(&f->options.toggles, &f->a, "ONNX_NAMESPACE", "a\nb");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
		   "unprintable");
}

static void without_switches_a_feature_off(void **state)
{
	struct fixture *f = *state;

	strlist_add(&f->options.without, &f->a, "fbgemm");
	resolve(f);
	want_env(f, "USE_FBGEMM", "OFF");
	assert_contains(settings_get(&f->env.env, "USE_FBGEMM")->why, "--without fbgemm");
}

static void without_finds_the_toggle_of_each_package(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(toggle_name(&f->q, "cudnn", &f->a), "USE_CUDNN");
	assert_string_equal(toggle_name(&f->q, "jpeg", &f->a), "TORCHVISION_USE_JPEG");
	assert_string_equal(toggle_name(&f->q, "sox", &f->a), "BUILD_SOX");
	assert_string_equal(toggle_name(&f->q, "no-such", &f->a), "USE_NO_SUCH");
	use_package(f, "torchvision", 1, 0);
	strlist_add(&f->options.without, &f->a, "jpeg");
	resolve(f);
	want_env(f, "TORCHVISION_USE_JPEG", "0");
}

static void without_an_unknown_feature_is_refused(void **state)
{
	struct fixture *f = *state;

	strlist_add(&f->options.without, &f->a, "gravity");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
		   "USE_GRAVITY");
}

static void contradictions_of_the_command_line_are_refused(void **state)
{
	struct fixture *f = *state;

	strlist_add(&f->options.without, &f->a, "fbgemm");
	kvlist_set(&f->options.toggles, &f->a, "USE_FBGEMM", "ON");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG,
		   "asked for twice");
	kvlist_set(&f->options.toggles, &f->a, "USE_FBGEMM", "0");
	resolve(f);
	want_env(f, "USE_FBGEMM", "OFF");
}

static void a_failure_leaves_the_result_alone(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->options.toggles, &f->a, "USE_FBGEM", "ON");
	assert_err(buildenv_resolve(&f->q, &f->a, &f->env, &f->e), &f->e, ERR_CONFIG, "USE_FBGEM");
	assert_int_equal(f->env.env.count, 0);
	assert_null(f->env.env.items);
}

static void all_backends_but_setuptools_use_cmake(void **state)
{
	(void)state;
	assert_true(buildenv_uses_cmake("setup-py-env"));
	assert_true(buildenv_uses_cmake("setup-py-cmake-env"));
	assert_true(buildenv_uses_cmake("scikit-build-core"));
	assert_true(buildenv_uses_cmake("setuptools-cmake"));
	assert_false(buildenv_uses_cmake("setuptools"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_environment_is_built_from_nothing),
		TEST(every_setting_says_where_it_is_from_and_why),
		TEST(lists_are_sorted_by_name),
		TEST(isa_flags_go_to_both_compilers_only),
		TEST(flags_are_isa_then_package_then_user),
		TEST(without_an_isa_there_are_no_flags),
		TEST(pytorch_gets_its_version_with_the_label),
		TEST(torchvision_gets_its_own_names),
		TEST(an_unknown_torch_version_is_not_pinned),
		TEST(torchvision_is_built_with_cuda_on_machines_without_a_gpu),
		TEST(torchaudio_is_built_with_cuda_on_machines_without_a_gpu),
		TEST(torchaudio_without_cuda_says_so),
		TEST(the_arch_list_is_in_dot_notation),
		TEST(toggles_follow_the_gpu_kind),
		TEST(toggles_of_other_versions_are_left_out),
		TEST(since_is_the_first_and_until_the_first_without),
		TEST(an_isa_overrides_the_default_and_tells),
		TEST(entries_that_nothing_forwards_go_through_the_file),
		TEST(isa_settings_end_with_their_release),
		TEST(isa_settings_reach_their_own_package),
		TEST(cudnn_stays_on_while_it_supports_the_gpu),
		TEST(cudnn_is_off_for_an_old_gpu_though_the_release_could_have_one),
		TEST(cudnn_goes_off_when_one_gpu_is_too_old),
		TEST(cudnn_goes_off_when_its_version_is_unknown),
		TEST(the_release_overrides_the_isa),
		TEST(blas_is_explicit_and_checked),
		TEST(only_checked_toggles_are_compared),
		TEST(a_profile_overrides_the_isa),
		TEST(the_command_line_overrides_all),
		TEST(the_user_may_keep_cudnn),
		TEST(values_are_spelled_as_the_package_reads_them),
		TEST(a_value_that_no_row_has_is_refused),
		TEST(an_entry_without_default_may_still_be_set),
		TEST(a_mistyped_toggle_gets_the_nearest),
		TEST(a_toggle_of_another_release_is_refused),
		TEST(a_retired_toggle_is_refused_with_the_reason),
		TEST(case_does_not_hide_a_name),
		TEST(a_wrong_toggle_of_a_file_names_its_line),
		TEST(a_toggle_of_another_package_is_noted),
		TEST(what_ptbuild_sets_is_no_toggle),
		TEST(a_value_of_the_release_may_be_changed_by_the_user),
		TEST(without_switches_a_feature_off),
		TEST(without_finds_the_toggle_of_each_package),
		TEST(without_an_unknown_feature_is_refused),
		TEST(contradictions_of_the_command_line_are_refused),
		TEST(a_failure_leaves_the_result_alone),
		TEST(all_backends_but_setuptools_use_cmake),
	};

	return cmocka_run_group_tests_name("buildenv", tests, NULL, NULL);
}
