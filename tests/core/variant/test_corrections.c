/* What the recipes and their instructions got wrong is done right,
 * and the plan says so: a test for each correction, named after it. */
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/plan/plan.h"

static int resolve(const char *name, const char *release, struct arena *a, const struct plan **ret,
		   struct err *e)
{
	struct variant v;

	assert_ok(variant_parse(tables, name, a, &v, e), e);
	struct plan_request q = {.variant = &v, .release = release};
	return plan_resolve(tables, &q, a, ret, e);
}

static const struct plan *plan_of(const char *name, const char *release, struct arena *a)
{
	struct err e = {0};
	const struct plan *p = NULL;

	assert_ok(resolve(name, release, a, &p, &e), &e);
	return p;
}

static bool has_note(const struct plan *p, const char *text)
{
	for (size_t i = 0; i < p->notes.count; i++)
		if (strstr(p->notes.items[i], text))
			return true;
	return false;
}

static const char *note_of(const char *correction)
{
	for (unsigned i = 0; i < tables->corrections_count; i++)
		if (strcmp(tables->corrections[i].name, correction) == 0)
			return tables->corrections[i].note;
	fail_msg("no correction '%s'", correction);
	return NULL;
}

/* Rows of corrections.yaml: who gets the note, and who does not. */
#define CORRECTIONS(X)                                                                             \
	X(l40s_is_ada, "l40s-is-ada", "pytorch-python313-cuda12_8-sm90-avx512", "2.8.0",           \
	  "the L40S is Ada (sm89)", "pytorch-python313-cuda12_8-sm80-avx512")                      \
	X(orin_and_thor, "orin-and-thor", "pytorch-python313-cuda13_0-sm110-armv9", "2.9.1",       \
	  "Orin is sm87; Thor is sm110", "pytorch-python313-cuda13_0-sm120-avx2")                  \
	X(gb10_from_12_9, "gb10-from-12.9", "pytorch-python313-cuda12_9-sm121-armv9", "2.9.1",     \
	  "nvcc has sm121 from CUDA 12.9 on", "pytorch-python313-cuda12_9-sm120-armv9")            \
	X(alder_lake_has_no_avx512, "alder-lake-has-no-avx512", "pytorch-python313-cpu-avx512",    \
	  "2.8.0", "12th to 14th generation have no usable AVX-512", "pytorch-python313-cpu-avx2") \
	X(vnni_from_cascade_lake, "vnni-from-cascade-lake", "pytorch-python313-cpu-avx512vnni",    \
	  "2.8.0", "came with Cascade Lake in 2019", "pytorch-python313-cpu-avx512")               \
	X(bf16_by_flag, "bf16-by-flag", "torchvision-python313-cpu-avx512bf16", "2.8.0",           \
	  "not in the later Ice Lake", "pytorch-python313-cpu-avx512vnni")                         \
	X(avx2_has_f16c, "avx2-has-f16c", "pytorch-python313-cpu-avx2", "2.8.0",                   \
	  "some recipes left F16C out", "pytorch-python313-cpu-avx")                               \
	X(graviton3_is_no_armv9, "graviton3-is-no-armv9",                                          \
	  "torchaudio-python313-cuda12_8-sm90-armv9", "2.8.0", "armv9 is not for Graviton3",       \
	  "torchaudio-python313-cuda12_8-sm90-neoverse_v1")                                        \
	X(sve2_includes_sve, "sve2-includes-sve", "pytorch-python313-cpu-armv9", "2.8.0",          \
	  "SVE2 includes SVE", "pytorch-python313-cpu-armv8_2")                                    \
	X(no_use_cublas, "no-use-cublas", "pytorch-python313-cpu-avx2", "2.8.0",                   \
	  "USE_CUBLAS is not set", "torchvision-python313-cpu-avx2")                               \
	X(no_use_metal, "no-use-metal", "pytorch-python311-darwin-mps", "2.8.0",                   \
	  "USE_METAL is not set", "pytorch-python311-cpu-avx2")                                    \
	X(blas_for_cpu_avx, "blas-for-cpu-avx", "pytorch-python313-cpu-avx", "2.9.1",              \
	  "the BLAS is set for cpu-avx", "pytorch-python313-cuda12_8-sm61-avx")                    \
	X(probes_reach_cmake, "probes-reach-cmake", "pytorch-python313-cuda12_8-sm61-avx",         \
	  "2.8.0", "CXX_AVX2_FOUND and its like", "pytorch-python313-cuda12_8-sm61-avx2")          \
	X(torch_is_a_wheel_of_its_own, "torch-is-a-wheel-of-its-own",                              \
	  "torchvision-python313-cpu-avx2", "2.8.0", "torch is the wheel of the same variant",     \
	  "pytorch-python313-cpu-avx2")                                                            \
	X(torchvision_with_cuda, "torchvision-with-cuda",                                          \
	  "torchvision-python313-cuda12_8-sm90-avx2", "2.8.0",                                     \
	  "FORCE_CUDA=1 and the arch list are set", "torchvision-python313-cpu-avx2")              \
	X(torchaudio_with_cuda, "torchaudio-with-cuda", "torchaudio-python313-cuda12_8-sm90-avx2", \
	  "2.8.0", "USE_CUDA is set", "torchaudio-python313-cpu-avx2")                             \
	X(magma_for_eig, "magma-for-eig", "pytorch-python313-cuda12_8-sm90-avx2", "2.9.1",         \
	  "torch.linalg.eig and eigvals of more than 2,048 rows raise",                            \
	  "pytorch-python313-cpu-avx2")                                                            \
	X(eig_on_the_cpu, "eig-on-the-cpu", "pytorch-python313-cuda12_4-sm90-avx2",                \
	  "2.6.0-debian", "are computed by the CPU", "pytorch-python313-cpu-avx2")                 \
	X(magma_for_eig_before_12_8, "magma-for-eig-before-12.8",                                  \
	  "pytorch-python313-cuda12_6-sm90-avx2", "2.10.0",                                        \
	  "with CUDA 12.8 and newer cuSOLVER has them", "pytorch-python313-cuda12_8-sm90-avx2")    \
	X(vllm, "vllm-0.14-to-0.16", "pytorch-python313-cuda12_8-sm90-avx2", "2.9.1",              \
	  "fits vLLM 0.14.0, 0.15.1", "pytorch-python314-cuda12_8-sm90-avx2")                      \
	X(vllm_of_another_cuda, "vllm-0.14-to-0.16-other-cuda",                                    \
	  "pytorch-python313-cuda13_0-sm90-avx2", "2.9.1", "their wheels are for CUDA 12",         \
	  "pytorch-python313-cuda12_8-sm90-avx2")

#define CORRECTION(test, name, variant, release, text, other)                                      \
	static void test(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		AUTO_ARENA struct arena a = {0};                                                   \
		const char *note = note_of(name);                                                  \
		assert_contains(note, text);                                                       \
		assert_true(has_note(plan_of(variant, release, &a), note));                        \
		assert_false(has_note(plan_of(other, release, &a), note));                         \
	}
CORRECTIONS(CORRECTION)

static void every_correction_of_the_table_has_a_test(void **state)
{
#define NAME(test, name, variant, release, text, other) name,
	static const char *const tested[] = {CORRECTIONS(NAME)};
	(void)state;
	assert_int_equal(tables->corrections_count, ARRAY_LEN(tested));
	for (size_t i = 0; i < ARRAY_LEN(tested); i++)
		assert_non_null(note_of(tested[i]));
}

static void arch_list_notation(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct plan *p = plan_of("torchaudio-python313-cuda12_8-sm90-avx2", "2.8.0", &a);
	assert_string_equal(settings_value(&p->env, "TORCH_CUDA_ARCH_LIST"), "9.0");
	assert_true(has_note(p, "TORCH_CUDA_ARCH_LIST is 9.0, not sm_90"));
}

/* 390 for sm61 to 525 for sm90, and 550 for CUDA 12.8, were wrong alike. */
static void driver_floors_by_toolkit(void **state)
{
	static const char *const names[] = {"pytorch-python313-cuda12_8-sm61-avx2",
					    "pytorch-python313-cuda12_8-sm90-avx2"};

	(void)state;
	AUTO_ARENA struct arena a = {0};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_true(has_note(plan_of(names[i], "2.8.0", &a),
				     "needs an NVIDIA driver >= 525.60.13 at run time: the floor "
				     "follows CUDA 12.8, not the GPU"));
	assert_true(has_note(plan_of("pytorch-python313-cuda13_0-sm90-avx2", "2.9.1", &a),
			     "driver >= 580 at run time"));
	assert_true(has_note(plan_of("pytorch-python313-cuda12_8-sm120-avx2", "2.8.0", &a),
			     "sm120 machines need a driver >= 570.26"));
}

static void code_for_sm86_runs_on_later_minors_not_majors(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_true(has_note(plan_of("pytorch-python313-cuda12_8-sm86-avx2", "2.8.0", &a),
			     "code for sm86 also runs on later GPUs of the same major version"));
	assert_false(has_note(plan_of("pytorch-python313-cuda12_8-sm86+ptx-avx2", "2.8.0", &a),
			      "of the same major version"));
	assert_true(has_note(plan_of("pytorch-python313-cuda12_8-sm90a-avx2", "2.8.0", &a),
			     "sm90a runs on exactly that GPU"));
	assert_true(has_note(plan_of("pytorch-python313-cuda12_9-sm120f-avx2", "2.9.1", &a),
			     "sm120f runs on its family only"));
	assert_false(has_note(plan_of("pytorch-python313-cuda13_0-sm110-armv9", "2.9.1", &a),
			      "of the same major version"));
}

static void cudnn_dropped_old_gpus(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct plan *p = plan_of("pytorch-python313-cuda12_8-sm61-avx2", "2.8.0", &a);
	assert_string_equal(settings_value(&p->env, "USE_CUDNN"), "OFF");
	assert_true(has_note(p, "USE_CUDNN=OFF: cuDNN 9.10.2.21 is the last that supports sm61"));
	p = plan_of("pytorch-python313-cuda12_8-sm75-avx", "2.8.0", &a);
	assert_string_equal(settings_value(&p->env, "USE_CUDNN"), "ON");
}

static void cublas_is_no_blas(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct plan *p = plan_of("pytorch-python313-cuda12_8-sm90-avx2", "2.8.0", &a);
	assert_null(settings_value(&p->env, "USE_CUBLAS"));
	assert_string_equal(settings_value(&p->env, "BLAS"), "OpenBLAS");
	assert_true(has_note(p, "on the GPU PyTorch uses cuBLAS"));
	p = plan_of("pytorch-python313-darwin-mps", "2.8.0", &a);
	assert_null(settings_value(&p->env, "USE_METAL"));
	assert_string_equal(settings_value(&p->env, "USE_MPS"), "ON");
	assert_string_equal(settings_value(&p->env, "BLAS"), "vecLib");
}

static void cpu_avx_has_a_blas_and_no_avx2_kernels(void **state)
{
	static const char *const entries[] = {"CXX_AVX2_FOUND", "C_AVX2_FOUND", "CXX_AVX512_FOUND",
					      "C_AVX512_FOUND"};

	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct plan *p = plan_of("pytorch-python313-cpu-avx", "2.9.1", &a);
	assert_string_equal(settings_value(&p->env, "BLAS"), "OpenBLAS");
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		assert_string_equal(settings_value(&p->cache, entries[i]), "FALSE");
		/* and so compared with what CMake made of it */
		assert_string_equal(settings_value(&p->cmake, entries[i]), "FALSE");
		assert_null(settings_value(&p->env, entries[i]));
	}

	assert_string_equal(settings_value(&p->cmake, "CAFFE2_COMPILER_SUPPORTS_AVX512_EXTENSIONS"),
			    "OFF");
}

static void companions_are_built_with_cuda_without_a_gpu(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct plan *p = plan_of("torchaudio-python313-cuda12_8-sm90-avx2", "2.8.0", &a);
	assert_string_equal(settings_value(&p->env, "USE_CUDA"), "ON");
	p = plan_of("torchvision-python313-cuda12_8-sm61-avx", "2.8.0", &a);
	assert_string_equal(settings_value(&p->env, "FORCE_CUDA"), "1");
	assert_string_equal(settings_value(&p->env, "TORCH_CUDA_ARCH_LIST"), "6.1");
}

static void thor_and_gb10_are_arm_machines(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_true(has_note(plan_of("torchvision-python313-cuda13_0-sm110-avx2", "2.10.0", &a),
			     "sm110 GPUs come in Arm machines; building for x86_64"));
	assert_true(has_note(plan_of("torchvision-python313-cuda13_0-sm121-avx512", "2.10.0", &a),
			     "sm121 GPUs come in Arm machines; building for x86_64"));
	assert_false(has_note(plan_of("pytorch-python313-cuda13_0-sm121-armv9", "2.10.0", &a),
			      "GPUs come in Arm"));
}

static void refused(const char *name, const char *release, const char *message, const char *hint)
{
	AUTO_ARENA struct arena a = {0};
	const struct plan *p = NULL;
	struct err e = {0};

	assert_int_equal(resolve(name, release, &a, &p, &e), -1);
	assert_int_equal(e.kind, ERR_POLICY);
	assert_contains(e.msg, message);
	assert_contains(e.hint, hint);
	assert_null(p);
}

/* Ticked in the tables of the instructions, though nvcc has no such target. */
static void what_nvcc_does_not_have_is_refused_with_what_does(void **state)
{
	(void)state;
	refused("torchaudio-python313-cuda12_8-sm103-avx2", "2.8.0", "cuda12_8 has no sm103",
		"use CUDA 12.9: --cuda 12.9, or cuda12_9 in a variant's name");
	refused("torchaudio-python313-cuda12_8-sm110-armv9", "2.8.0", "cuda12_8 has no sm110",
		"use CUDA 13.0 with release 2.13.0: --cuda 13.0 --release 2.13.0");
	refused("torchaudio-python313-cuda12_8-sm121-armv9", "2.8.0", "cuda12_8 has no sm121",
		"use CUDA 12.9");
	refused("pytorch-python313-cuda12_6-sm120-avx2", "2.8.0", "cuda12_6 has no sm120",
		"use CUDA 12.8");
	refused("pytorch-python313-cuda13_0-sm61-avx2", "2.9.1", "cuda13_0 has no sm61",
		"use CUDA 12.");
	refused("pytorch-python313-cuda13_0-sm70-avx2", "2.9.1", "cuda13_0 has no sm70",
		"use CUDA 12.");
	refused("pytorch-python313-cuda13_0-sm72-armv8_2", "2.9.1", "cuda13_0 has no sm72",
		"choose another GPU target");
	refused("pytorch-python313-cuda13_0-sm101-armv9", "2.9.1", "cuda13_0 has no sm101",
		"it is sm110");
	refused("pytorch-python313-cuda12_8-sm100f-avx2", "2.8.0", "cuda12_8 has no sm100f",
		"use CUDA 12.9 with release 2.13.0"); /* of the CUDA line that was asked for */
	refused("pytorch-python313-cuda12_9-sm103f-avx2", "2.8.0", "does not know sm103f",
		"with release 2.13.0");
}

static void what_the_extension_builder_does_not_know_is_refused(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	refused("torchvision-python313-cuda13_0-sm88-avx2", "2.9.1",
		"torch's extension builder does not know 8.8", "use sm86");
	refused("torchvision-python313-cuda12_9-sm120f-avx2", "2.9.1", "knows no family targets",
		"use sm120");
	assert_string_equal(
		plan_of("pytorch-python313-cuda13_0-sm88-avx2", "2.9.1", &a)->gpu.items[0], "8.8");
}

#define ROW(test, name, variant, release, text, other) cmocka_unit_test(test),

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORRECTIONS(ROW) cmocka_unit_test(every_correction_of_the_table_has_a_test),
		cmocka_unit_test(arch_list_notation),
		cmocka_unit_test(driver_floors_by_toolkit),
		cmocka_unit_test(code_for_sm86_runs_on_later_minors_not_majors),
		cmocka_unit_test(cudnn_dropped_old_gpus),
		cmocka_unit_test(cublas_is_no_blas),
		cmocka_unit_test(cpu_avx_has_a_blas_and_no_avx2_kernels),
		cmocka_unit_test(companions_are_built_with_cuda_without_a_gpu),
		cmocka_unit_test(thor_and_gb10_are_arm_machines),
		cmocka_unit_test(what_nvcc_does_not_have_is_refused_with_what_does),
		cmocka_unit_test(what_the_extension_builder_does_not_know_is_refused),
	};

	return cmocka_run_group_tests_name("corrections", tests, load, unload);
}
