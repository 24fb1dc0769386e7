#include "support.h"

#include <jansson.h>

#include "base/sys/json.h"
#include "capture.h"

static const char *string_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s ? s : "";
}

static void refuse(const char *words, enum err_kind kind, const char *text)
{
	struct err e = {0};
	char *out = NULL;
	int rc = capture_run(words, &out, &e);

	assert_int_equal(rc, -1);
	assert_int_equal(e.kind, kind);
	assert_contains(e.msg, text);
	assert_string_equal(out, "");
	free(out);
}

static void one_plan_is_an_object(void **state)
{
	(void)state;
	AUTO_JSON json_t *j =
		json_of("plan pytorch-python313-cuda12_8-sm90-avx512 --release 2.8.0 --json");
	assert_int_equal(json_integer_value(json_object_get(j, "schema")), 1);
	assert_string_equal(string_of(j, "variant"), "pytorch-python313-cuda12_8-sm90-avx512");
	assert_string_equal(string_of(j, "local_label"), "cu128.sm90.avx512");
	assert_string_equal(string_of(json_object_get(j, "env"), "TORCH_CUDA_ARCH_LIST"), "9.0");
	json_t *source = json_array_get(json_object_get(j, "sources"), 0);
	assert_string_equal(string_of(source, "sha256"),
			    "c70a2c9488f6f6e8af5982a10d1cc2c37b7df5e6506d839daa5d5e250953d7b5");
}

static void several_plans_are_an_array_with_torch_first(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of("plan --profile cpu-avx2 --package torchaudio,all --python "
				      "3.13 --release 2.8.0 --json");
	assert_int_equal(json_array_size(j), 3);
	assert_string_equal(string_of(json_array_get(j, 0), "package"), "pytorch");
	assert_string_equal(string_of(json_array_get(j, 1), "package"), "torchvision");
	assert_string_equal(string_of(json_array_get(j, 2), "package"), "torchaudio");
	json_t *depends = json_object_get(json_array_get(j, 1), "depends");
	assert_string_equal(json_string_value(json_array_get(depends, 0)),
			    "pytorch-python313-cpu-avx2");
}

static void the_default_release_is_upstreams_newest(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of("plan --profile cpu-avx2 --python 3.13 --json");
	assert_not_contains(string_of(j, "release"), "debian");
	assert_true(*string_of(j, "release"));
}

static void the_toolkit_fits_the_target(void **state)
{
	(void)state;
	AUTO_JSON json_t *j =
		json_of("plan --profile sm103-avx512 --python 3.13 --release 2.9.1 --json");
	assert_string_equal(string_of(j, "cuda"), "12.9");
}

static void explain_shows_the_line_of_each_value(void **state)
{
	(void)state;
	AUTO_FREE char *plain = text_of("plan pytorch-python313-cpu-avx --release 2.8.0 --all");
	AUTO_FREE char *reasons =
		text_of("plan pytorch-python313-cpu-avx --release 2.8.0 --explain");
	assert_contains(plain, "  USE_FBGEMM=OFF\n");
	assert_not_contains(plain, "isa.yaml:");
	assert_contains(reasons, "isa.yaml:");
	assert_contains(reasons, "(instead of 'ON' from toggles.yaml:");
	assert_contains(reasons, "compared with CMakeCache.txt after configure");
}

/* Lines of a text; none may be longer than a terminal. */
static size_t lines_of_a_screen(const char *text)
{
	size_t lines = 0;

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n', lines++)
		if (strcspn(p, "\n") > 80)
			fail_msg("longer than 80 columns: %.*s", (int)strcspn(p, "\n"), p);
	return lines;
}

static void a_plan_fits_a_screen(void **state)
{
	(void)state;
	AUTO_FREE char *text = text_of(
		"plan pytorch-python313-cuda12_8-sm90-avx512 --release 2.8.0 --without cudnn");
	assert_in_range(lines_of_a_screen(text), 20, 46); /* with what is known of a version: six */
	static const char *const wanted[] = {
		"pytorch-python313-cuda12_8-sm90-avx512\n",
		"torch 2.8.0+cu128.sm90.avx512.nocudnn, of release 2.8.0\n",
		"-mavx512bw",
		"pytorch-v2.8.0.tar.gz\n",
		"  TORCH_CUDA_ARCH_LIST=9.0\n",
		"  USE_CUDNN=OFF\n",
		" more are defaults of the release: --all shows them\n",
		"\nnotes\n  - ",
		"  python        3.13 only\n",
		"  processor     x86_64 with avx512: Intel Xeon from Skylake-SP (2017) on,\n",
		"  gpu           9.0 and newer 9.x (Hopper: H100, H200, H20, GH200)\n",
		"  driver        NVIDIA's 525.60.13 or newer\n",
		"  this machine  ",
		"  compile key ",
		"  output key ",
		"; not in the keys\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		assert_contains(text, wanted[i]);
	assert_not_contains(text, "USE_KINETO");
	AUTO_FREE char *all =
		text_of("plan pytorch-python313-cuda12_8-sm90-avx512 --release 2.8.0 --all");
	assert_contains(all, "  USE_KINETO=ON\n");
	assert_contains(all, "pytorch-v2.8.0.tar.gz  sha256 ");
	assert_contains(all, "  keys          a build's also count the tools of its root\n");
	assert_not_contains(all, "--all");
	AUTO_FREE char *three = text_of(
		"plan --profile sm80+sm90-avx2 --release 2.8.0 --python 3.13 --package all");
	assert_in_range(lines_of_a_screen(three), 60, 130);
}

/* Each in front of the next. */
static void assert_in_order(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *at = strstr(text, words[i]);
		if (!at)
			fail_msg("'%s' is missing, or not behind '%s', in:\n%s", words[i],
				 i ? words[i - 1] : "", text);
		text = at;
	}
}

static void test_plan_answers_before_it_shows_settings(void **state)
{
	(void)state;
	static const char *const order[] = {"  builds ",     "  size ",   "  time ",
					    "  disk ",       "  python ", "  processor ",
					    "  gpu ",        "  driver ", "  source ",
					    "\nenvironment", "\nnotes\n", "  compile key "};
	AUTO_FREE char *text = text_of("plan pytorch-python311-cuda12_8-sm89-avx2 --release 2.9.1");
	assert_in_order(text, order, ARRAY_LEN(order));
	AUTO_JSON json_t *j =
		json_of("plan pytorch-python311-cuda12_8-sm89-avx2 --release 2.9.1 --json");
	assert_true(json_int(json_object_get(j, "cost"), "disk_bytes") > INT64_C(20) << 30);
	assert_true(json_int(json_object_get(j, "cost"), "wheel_bytes") > 0);
}

static void test_plan_notes_of_others_need_explain(void **state)
{
	(void)state;
	static const char words[] = "plan pytorch-python311-cuda12_8-sm89-avx2 --release 2.9.1";
	static const char *const others[] = {"L40S is", "some recipes", "not sm_89", "vLLM"};
	char more[128];
	AUTO_FREE char *plain = text_of(words);
	snprintf(more, sizeof(more), "%s --explain", words);
	AUTO_FREE char *reasons = text_of(more);
	snprintf(more, sizeof(more), "%s --json", words);
	AUTO_FREE char *json = text_of(more);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		assert_not_contains(plain, others[i]);
		assert_contains(reasons, others[i]);
		assert_contains(json, others[i]);
	}

	assert_contains(plain, "without MAGMA"); /* what the wheel cannot do is shown */
	assert_contains(plain, "CVE-2025-3000");
	assert_contains(plain, "--explain");
}

static void test_plan_of_matrix_is_table_with_one_total(void **state)
{
	(void)state;
	AUTO_FREE char *text = text_of("plan --matrix build-pytorch/main --only *-avx2");
	AUTO_JSON json_t *j = json_of("plan --matrix build-pytorch/main --only *-avx2 --json");
	assert_in_range(json_array_size(j), 4, 60);
	size_t lines = 0;
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_in_range(lines, json_array_size(j) + 4, json_array_size(j) + 10);
	static const char *const order[] = {
		"variant ", "pytorch-python", "in common counted once\n",
		"  time ",  "  disk ",        "  downloads "};
	assert_in_order(text, order, ARRAY_LEN(order));
	assert_not_contains(text, "compile key");
	AUTO_FREE char *all = text_of("plan --matrix build-pytorch/main --only *-sm90-avx2 --all");
	assert_contains(all, "compile key");
}

static void settings_reach_the_plan(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of(
		"plan pytorch-python313-cpu-avx2 --release 2.8.0 --set USE_KINETO=0 --without "
		"fbgemm --blas mkl --json");
	assert_string_equal(string_of(json_object_get(j, "cmake"), "USE_KINETO"), "OFF");
	assert_string_equal(string_of(json_object_get(j, "cmake"), "USE_FBGEMM"), "OFF");
	assert_string_equal(string_of(json_object_get(j, "cmake"), "BLAS"), "MKL");
}

static void metadata_changes_only_the_output_key(void **state)
{
	(void)state;
	AUTO_JSON json_t *one = json_of("plan pytorch-python313-cpu-avx2 --release 2.8.0 --json");
	AUTO_JSON json_t *two =
		json_of("plan pytorch-python313-cpu-avx2 --release 2.8.0 --metadata-rev 2 --json");
	assert_int_equal(json_integer_value(json_object_get(two, "metadata_rev")), 2);
	assert_string_equal(string_of(one, "compile_key"), string_of(two, "compile_key"));
	assert_string_not_equal(string_of(one, "output_key"), string_of(two, "output_key"));
}

static void the_torch_of_the_root_needs_no_root_to_plan(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of(
		"plan torchvision-python313-cpu-avx2 --release 2.6.0-debian --torch root --json");
	assert_string_equal(string_of(j, "torch"), "root");
	assert_true(json_is_null(json_object_get(j, "torch_version")));
}

static void a_torch_wheel_that_is_not_there_is_refused(void **state)
{
	(void)state;
	refuse("plan torchvision-python313-cpu-avx2 --release 2.8.0 --torch /nowhere/torch.whl",
	       ERR_USAGE, "--torch: '/nowhere/torch.whl' does not exist");
}

static void what_cannot_be_has_the_exit_code_of_its_kind(void **state)
{
	(void)state;
	refuse("plan pytorch-python313-cuda12_8-sm103-avx512 --release 2.9.1", ERR_POLICY,
	       "cuda12_8 has no sm103");
	refuse("plan pytorch-python313-cpu-avx2 --release 2.8.0 --set USE_METAL=1", ERR_CONFIG,
	       "USE_METAL");
	refuse("plan pytorch-python313-cpu-avx2 --release 2.8.0 --set USE_KINETO", ERR_USAGE,
	       "USE_KINETO");
	refuse("plan --profile cpu-avx2 --cuda 12.8", ERR_USAGE, "--cuda 12.8");
	refuse("plan", ERR_USAGE, "no profile, matrix or variant to plan");
}

/* CUDA 13 has no Volta, so that the toolkit, and with
 * it world and Python, is not the release's first. */
static void python_goes_with_the_toolkit_however_that_is_said(void **state)
{
	(void)state;
	AUTO_JSON json_t *silent = json_of("plan --profile sm70-avx2 --release 2.11.0 --json");
	AUTO_JSON json_t *said =
		json_of("plan --profile sm70-avx2 --release 2.11.0 --cuda 12.8 --json");
	assert_string_equal(string_of(silent, "variant"), string_of(said, "variant"));
	assert_string_equal(string_of(silent, "compile_key"), string_of(said, "compile_key"));
}

static void a_patch_that_is_none_is_refused(void **state)
{
	char dir[] = "/tmp/ptbuild-plan-XXXXXX";
	AUTO_ARENA struct arena a = {0};

	(void)state;
	assert_non_null(mkdtemp(dir)); /* each command has the test's own directory anew */
	const char *patch = arena_printf(&a, "%s/patches/pytorch/2.9.1/own.patch", dir);
	assert_int_equal(system(arena_printf(&a, "cp -rL '%s' %s/profiles", PROFILES_DIR, dir)), 0);
	test_write(arena_printf(&a, "%s/patches/pytorch/2.9.1/series", dir), "own.patch\n");
	const char *command = arena_printf(
		&a, "plan --profiles %s/profiles pytorch-python313-cpu-avx2 --release 2.9.1", dir);
	test_write(patch, "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\n+b\n");
	refuse(command, ERR_INTEGRITY, "own.patch");
	test_write(patch, "--- a/../../x.py\n+++ b/../../x.py\n@@ -1 +1 @@\n-a\n+b\n");
	refuse(command, ERR_INTEGRITY, "own.patch");
	test_write(patch, "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n");
	AUTO_JSON json_t *j = json_of(arena_printf(&a, "%s --json", command));
	assert_int_equal(strncmp(string_of(j, "local_label"), "cpu.avx2.own", 12), 0);
	AUTO_FREE char *notes = json_dumps(json_object_get(j, "notes"), 0);
	assert_contains(notes, "whether patches apply is seen when the source is unpacked");
	assert_int_equal(system(arena_printf(&a, "rm -r %s", dir)), 0);
}

static void a_matrix_is_an_array(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of("plan --matrix build-pytorch/pytorch-2.10-python313 --json");
	assert_int_equal(json_array_size(j), 237);
	assert_string_equal(string_of(json_array_get(j, 0), "variant"),
			    "pytorch-python313-cpu-avx");
	assert_string_equal(string_of(json_array_get(j, 236), "variant"),
			    "pytorch-python313-darwin-mps");
	for (size_t i = 0; i < 237; i++)
		assert_string_equal(string_of(json_array_get(j, i), "release"), "2.10.0");
}

static void only_chooses_from_a_matrix(void **state)
{
	(void)state;
	AUTO_JSON json_t *j =
		json_of("plan --matrix build-pytorch/main --only *-sm90-avx2,*-mps --json");
	assert_int_equal(json_array_size(j), 2);
	assert_string_equal(string_of(json_array_get(j, 0), "variant"),
			    "pytorch-python313-cuda12_8-sm90-avx2");
	AUTO_JSON json_t *one = json_of("plan --matrix build-pytorch/main --only *-mps --json");
	assert_true(json_is_array(one));
	assert_int_equal(json_array_size(one), 1);
}

static void a_matrix_may_be_planned_for_another_release(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of(
		"plan --matrix build-pytorch/main --only *-cpu-avx2 --release 2.6.0-debian --json");
	assert_string_equal(string_of(json_array_get(j, 0), "release"), "2.6.0-debian");
}

static void what_a_matrix_cannot_have_is_in_its_place(void **state)
{
	(void)state;
	struct err e = {0};
	AUTO_FREE char *out = NULL;
	assert_int_equal(capture_run("plan --matrix build-torchaudio/main --json", &out, &e), -1);
	assert_int_equal(e.kind, ERR_POLICY);
	assert_contains(e.msg,
			"18 of 60 variants of matrix 'build-torchaudio/main' cannot be built");
	AUTO_JSON json_t *j = json_loads(out, 0, NULL);
	size_t refused = 0;
	for (size_t i = 0; i < json_array_size(j); i++) {
		const json_t *error = json_object_get(json_array_get(j, i), "error");
		if (!error)
			continue;
		refused++;
		assert_int_equal(json_integer_value(json_object_get(error, "exit_code")),
				 ERR_POLICY);
		assert_contains(string_of(error, "message"), "nvcc 12.8 knows no such target");
		assert_contains(string_of(error, "hint"), "use CUDA");
	}

	assert_int_equal(json_array_size(j), 60);
	assert_int_equal(refused, 18);
}

static void wrong_words_about_matrices(void **state)
{
	(void)state;
	refuse("plan --matrix build-pytorch/mian", ERR_CONFIG,
	       "unknown matrix 'build-pytorch/mian'");
	refuse("plan --matrix build-pytorch/main --only nothing", ERR_CONFIG,
	       "no variant of matrix 'build-pytorch/main' matches --only nothing");
	refuse("plan --matrix build-pytorch/main --profile cpu-avx2", ERR_USAGE,
	       "cannot be used together");
	refuse("plan --matrix build-pytorch/main pytorch-python313-cpu-avx2", ERR_USAGE,
	       "cannot be used together");
	refuse("plan --matrix build-pytorch/main --cuda 12.8", ERR_USAGE,
	       "a matrix already says packages, Pythons and toolkits");
	refuse("plan --profile cpu-avx2 --only x", ERR_USAGE, "--only without --matrix");
}

static void two_variants_are_compared(void **state)
{
	(void)state;
	AUTO_FREE char *text = text_of(
		"diff pytorch-python313-cpu-avx pytorch-python313-cpu-avx2 --release 2.8.0");
	assert_contains(
		text,
		"- pytorch-python313-cpu-avx (2.8.0)\n+ pytorch-python313-cpu-avx2 (2.8.0)\n");
	assert_contains(text, "    - OFF  [isa.yaml:");
	AUTO_JSON json_t *j = json_of(
		"diff pytorch-python313-cpu-avx2 pytorch-python313-cpu-avx2 --release 2.8.0 "
		"--right-release 2.9.1 --json");
	assert_string_equal(string_of(j, "left"), "pytorch-python313-cpu-avx2");
	assert_true(json_array_size(json_object_get(j, "differences")) > 5);
}

static void wrong_words_about_differences(void **state)
{
	(void)state;
	refuse("diff pytorch-python313-cpu-avx", ERR_USAGE, "diff needs two variants");
	refuse("diff", ERR_USAGE, "diff needs two variants");
	refuse("diff pytorch-python313-cpu-avx pytorch-python313-cpu-avx3", ERR_CONFIG,
	       "unknown instruction set 'avx3'");
	refuse("diff pytorch-python313-cpu-avx torchaudio-python313-cuda12_8-sm103-avx2 --release "
	       "2.8.0",
	       ERR_POLICY, "cuda12_8 has no sm103");
}

static void an_explained_plan_as_json(void **state)
{
	(void)state;
	AUTO_JSON json_t *j = json_of(
		"plan pytorch-python313-cuda12_8-sm61-avx2 --release 2.8.0 --explain --json");
	const json_t *row = json_object_get(json_object_get(j, "explain"), "USE_CUDNN");
	assert_string_equal(string_of(row, "value"), "OFF");
	assert_string_equal(string_of(row, "rule"), "cuDNN and sm61");
	assert_contains(string_of(row, "source"), "cuDNN support matrices");
	assert_int_equal(strncmp(string_of(row, "from"), "gpu.yaml:", 9), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_plan_is_an_object, test_teardown),
		cmocka_unit_test_teardown(two_variants_are_compared, test_teardown),
		cmocka_unit_test_teardown(wrong_words_about_differences, test_teardown),
		cmocka_unit_test_teardown(an_explained_plan_as_json, test_teardown),
		cmocka_unit_test_teardown(a_matrix_is_an_array, test_teardown),
		cmocka_unit_test_teardown(only_chooses_from_a_matrix, test_teardown),
		cmocka_unit_test_teardown(a_matrix_may_be_planned_for_another_release,
					  test_teardown),
		cmocka_unit_test_teardown(what_a_matrix_cannot_have_is_in_its_place, test_teardown),
		cmocka_unit_test_teardown(wrong_words_about_matrices, test_teardown),
		cmocka_unit_test_teardown(several_plans_are_an_array_with_torch_first,
					  test_teardown),
		cmocka_unit_test_teardown(the_default_release_is_upstreams_newest, test_teardown),
		cmocka_unit_test_teardown(the_toolkit_fits_the_target, test_teardown),
		cmocka_unit_test_teardown(explain_shows_the_line_of_each_value, test_teardown),
		cmocka_unit_test_teardown(a_plan_fits_a_screen, test_teardown),
		cmocka_unit_test_teardown(test_plan_answers_before_it_shows_settings,
					  test_teardown),
		cmocka_unit_test_teardown(test_plan_notes_of_others_need_explain, test_teardown),
		cmocka_unit_test_teardown(test_plan_of_matrix_is_table_with_one_total,
					  test_teardown),
		cmocka_unit_test_teardown(settings_reach_the_plan, test_teardown),
		cmocka_unit_test_teardown(metadata_changes_only_the_output_key, test_teardown),
		cmocka_unit_test_teardown(the_torch_of_the_root_needs_no_root_to_plan,
					  test_teardown),
		cmocka_unit_test_teardown(a_torch_wheel_that_is_not_there_is_refused,
					  test_teardown),
		cmocka_unit_test_teardown(what_cannot_be_has_the_exit_code_of_its_kind,
					  test_teardown),
		cmocka_unit_test_teardown(python_goes_with_the_toolkit_however_that_is_said,
					  test_teardown),
		cmocka_unit_test_teardown(a_patch_that_is_none_is_refused, test_teardown),
	};

	return cmocka_run_group_tests_name("cmd/plan", tests, NULL, NULL);
}
