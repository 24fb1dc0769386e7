#include "support.h"

#include "core/root/toolkit.h"
#include "plan_fixture.h"

static struct toolkit kit;
static struct toolkits list;
static struct toolkit_part kit_parts[2];
static struct part_row rows[2];

/* A toolkit 12.8 that has all that the fixture's variant asks for. */
static void probed(struct fixture *f)
{
	rows[0] = (struct part_row){.name = "cudnn",
				    .header = "cudnn_version.h",
				    .toggle = "USE_CUDNN",
				    .package = "pytorch",
				    .debian = ""};
	rows[1] = (struct part_row){.name = "cufft",
				    .header = "cufft.h",
				    .toggle = "USE_CUDA",
				    .package = "pytorch",
				    .debian = "nvidia-cuda-dev"};
	for (unsigned i = 0; i < 2; i++)
		kit_parts[i] = (struct toolkit_part){
			.row = &rows[i], .header = rows[i].header, .version = "9.1.0"};
	kit = (struct toolkit){.layout = TOOLKIT_NVIDIA,
			       .where = "/usr/local/cuda-12.8",
			       .home = "/usr/local/cuda-12.8",
			       .nvcc = "/usr/local/cuda-12.8/bin/nvcc",
			       .version = "12.8",
			       .release = "12.8.93",
			       .build = "b",
			       .gcc_max = 14,
			       .cc = "gcc-14",
			       .cxx = "g++-14",
			       .cxx_path = "/usr/bin/g++-14",
			       .cc_id = "g++ 14.2.0",
			       .gcc = "15.1.0",
			       .parts = kit_parts,
			       .parts_count = 2,
			       .text = "nvcc 12.8.93 b\nhost compiler g++ 14.2.0\n"};
	static const char *const targets[] = {"61", "80", "90", "90a"};
	static const char *const options[] = {"--objdir-as-tempdir", "--compress-mode"};
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		strlist_ref(&kit.targets, &f->a, targets[i]);
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		strlist_ref(&kit.options, &f->a, options[i]);
	list = (struct toolkits){.items = &kit, .count = 1};
	f->q.toolkits = &list;
}

static const char *env(const struct plan *p, const char *name)
{
	const char *value = settings_value(&p->env, name);
	return value ? value : "(unset)";
}

/* A Jetson runs code of a toolkit for Arm servers
 * from CUDA 13 on; JetPack's own makes it before. */
static void test_jetson_takes_toolkit_of_its_own(void **state)
{
	struct fixture *f = *state;

	use_arm(f);
	f->s.gpus[2].sbsa = "13.0";
	refuse(f, ERR_POLICY, "cuda12_8 has no code for sm90");
	assert_string_equal(f->e.hint,
			    "use CUDA 13.0 with release 2.9.1: --cuda 13.0 --release 2.9.1");
	f->q.own_root = true; /* which was not asked yet */
	(void)resolve(f);
	probed(f);
	refuse(f, ERR_POLICY, "cuda12_8 has no code for sm90");
	kit.tegra = true;
	const struct plan *p = resolve(f);
	assert_string_equal(p->local_label, "cu128.sm90.armv9.tegra");
	assert_string_equal(p->cuda_libraries, "system");
	f->q.options.cuda_libraries = "system";
	assert_string_equal(resolve(f)->local_label, "cu128.sm90.armv9.tegra");
	f->q.options.cuda_libraries = "packages";
	assert_string_equal(resolve(f)->local_label, "cu128.sm90.armv9.packagescuda.tegra");
}

static void test_cuda_libraries_of_the_system_are_in_the_label(void **state)
{
	struct fixture *f = *state;

	probed(f);
	const char *usual = resolve(f)->local_label;
	f->q.options.cuda_libraries = "packages";
	assert_string_equal(resolve(f)->local_label, usual);
	f->q.options.cuda_libraries = "system";
	assert_string_equal(resolve(f)->local_label, arena_printf(&f->a, "%s.systemcuda", usual));
}

static void test_environment(void **state)
{
	struct fixture *f = *state;

	probed(f);
	const struct plan *p = resolve(f);
	assert_ptr_equal(p->toolkit, &kit);
	assert_string_equal(env(p, "CC"), "gcc-14");
	assert_string_equal(env(p, "CXX"), "g++-14");
	assert_string_equal(env(p, "CUDAHOSTCXX"), "/usr/bin/g++-14");
	assert_string_equal(env(p, "CUDA_HOME"), "/usr/local/cuda-12.8");
	assert_string_equal(env(p, "CUDACXX"), "/usr/local/cuda-12.8/bin/nvcc");
	assert_string_equal(env(p, "PATH"), "/usr/local/cuda-12.8/bin:/usr/bin:/bin");
	assert_string_equal(env(p, "TORCH_NVCC_FLAGS"), "-objtemp");
	char key[65];
	memcpy(key, p->compile_key, sizeof(key));
	f->q.python = "/usr/bin/python3";
	assert_string_equal(resolve(f)->compile_key, key);
	f->q.python = "/usr/local/bin/python3";
	p = resolve(f);
	assert_string_equal(env(p, "PATH"),
			    "/usr/local/cuda-12.8/bin:/usr/local/bin:/usr/bin:/bin");
	assert_string_not_equal(p->compile_key, key);
	f->q.python = NULL;
	p = resolve(f);
	assert_contains(p->compile_text, "toolkit: nvcc 12.8.93 b\n");
	assert_contains(p->compile_text, "toolkit: host compiler g++ 14.2.0\n");
}

static void test_distribution_toolkit_is_in_the_path_already(void **state)
{
	struct fixture *f = *state;

	probed(f);
	kit.layout = TOOLKIT_DISTRIBUTION;
	kit.home = "/usr";
	kit.nvcc = "/usr/bin/nvcc";
	const struct plan *p = resolve(f);
	assert_string_equal(env(p, "PATH"), "/usr/bin:/bin");
	assert_string_equal(env(p, "CUDA_PATH"), "(unset)");
}

static void test_companions_have_their_own_variables(void **state)
{
	struct fixture *f = *state;

	probed(f);
	f->v.package = "torchvision";
	assert_string_equal(env(resolve(f), "NVCC_FLAGS"), "-Xfatbin -compress-all -objtemp");
	assert_string_equal(env(f->p, "TORCH_NVCC_FLAGS"), "(unset)");
	f->v.package = "torchaudio";
	assert_string_equal(env(resolve(f), "CUDAFLAGS"), "-Xfatbin -compress-all -objtemp");
	f->s.packages[2].backend = "setuptools";
	assert_string_equal(env(resolve(f), "NVCC_APPEND_FLAGS"),
			    "-Xfatbin -compress-all -objtemp");
	assert_string_equal(env(f->p, "NVCC_FLAGS"), "(unset)");
}

/* Drivers before CUDA 12.4 read no code that is
 * compressed for its size, and 12.x promises older ones. */
static void test_code_is_compressed_for_drivers_that_can_read_it(void **state)
{
	struct fixture *f = *state;

	probed(f);
	assert_not_contains(env(resolve(f), "TORCH_NVCC_FLAGS"), "compress-mode");
	assert_string_equal(f->p->runs_on.driver, "525.60.13");
	f->v.cuda = kit.version = "13.0";
	f->q.release = "2.9.1";
	assert_contains(env(resolve(f), "TORCH_NVCC_FLAGS"), "-compress-mode=size");
	assert_string_equal(f->p->runs_on.driver, "580.65.06");
}

static void test_cpu_builds_know_nothing_of_it(void **state)
{
	struct fixture *f = *state;

	probed(f);
	use_cpu(f);
	const struct plan *p = resolve(f);
	assert_null(p->toolkit);
	assert_string_equal(env(p, "CC"), "gcc");
	assert_string_equal(env(p, "CUDA_HOME"), "(unset)");
	assert_not_contains(p->compile_text, "toolkit:");
}

static void test_other_facts_other_keys(void **state)
{
	struct fixture *f = *state;
	char first[65];

	probed(f);
	strcpy(first, resolve(f)->compile_key);
	kit.text = "nvcc 12.8.94 b\n";
	assert_string_not_equal(resolve(f)->compile_key, first);
}

static void test_no_toolkit_at_all(void **state)
{
	struct fixture *f = *state;

	probed(f);
	list.count = 0;
	refuse(f, ERR_SYSTEM, "no CUDA 12.8 in the root; there is: none");
	assert_contains(f->e.hint, "--cuda-home");
}

static void test_another_toolkit(void **state)
{
	struct fixture *f = *state;

	probed(f);
	kit.version = "13.0";
	refuse(f, ERR_POLICY, "no CUDA 12.8 in the root; there is: 13.0 (/usr/local/cuda-12.8)");
	assert_contains(f->e.hint, "--cuda-home");
}

static void test_target_that_this_nvcc_lacks(void **state)
{
	struct fixture *f = *state;

	probed(f);
	kit.targets.count = 2;
	refuse(f, ERR_POLICY, "does not compile for sm90");
	assert_contains(f->e.hint, "61 80");
}

static void test_host_compiler_too_new(void **state)
{
	struct fixture *f = *state;

	probed(f);
	kit.cc = NULL;
	refuse(f, ERR_POLICY, "nvcc 12.8 accepts GCC up to 14, and the root has GCC 15.1.0");
	assert_contains(f->e.hint, "gcc-14 and g++-14");
	kit.gcc = "";
	refuse(f, ERR_POLICY, "the root has no GCC");
}

static void test_cudnn_that_is_not_there(void **state)
{
	struct fixture *f = *state;

	probed(f);
	kit_parts[0].header = NULL;
	refuse(f, ERR_POLICY,
	       "USE_CUDNN=ON (toggles.yaml:2), but CUDA 12.8 in '/usr/local/cuda-12.8' comes "
	       "without cudnn");
	assert_contains(f->e.hint, "--without cudnn");
	strlist_ref(&f->q.options.without, &f->a, "cudnn");
	const struct plan *p = resolve(f);
	assert_string_equal(env(p, "USE_CUDNN"), "OFF");
	assert_string_equal(p->local_label, "cu128.sm90.avx512.nocudnn");
	assert_string_equal(env(p, "PYTORCH_BUILD_VERSION"), "2.8.0+cu128.sm90.avx512.nocudnn");
}

static void test_what_was_given_up_is_in_the_label_of_all_three(void **state)
{
	struct fixture *f = *state;

	f->v.package = "torchvision";
	strlist_ref(&f->q.options.without, &f->a, "cudnn");
	strlist_ref(&f->q.options.without, &f->a, "cudnn");
	const struct plan *p = resolve(f);
	assert_string_equal(p->local_label, "cu128.sm90.avx512.nocudnn");
	assert_string_equal(p->torch_version, "2.8.0+cu128.sm90.avx512.nocudnn");
}

/* Two wheels of one name would be taken for one another, and MKL is under another licence. */
static void test_another_blas_is_in_the_label_of_all_three(void **state)
{
	static const char *const packages[] = {"pytorch", "torchvision"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(packages); i++) {
		f->v.package = packages[i];
		f->q.options.blas = "openblas";
		assert_string_equal(resolve(f)->local_label, "cu128.sm90.avx512");
		f->q.options.blas = "mkl";
		assert_string_equal(resolve(f)->local_label, "cu128.sm90.avx512.mkl");
	}

	assert_string_equal(f->p->torch_version, "2.8.0+cu128.sm90.avx512.mkl");
	strlist_ref(&f->q.options.without, &f->a, "cudnn");
	assert_string_equal(resolve(f)->local_label, "cu128.sm90.avx512.mkl.nocudnn");
}

static void test_parts_that_pytorch_cannot_do_without(void **state)
{
	struct fixture *f = *state;

	probed(f);
	kit_parts[1].header = NULL;
	refuse(f, ERR_POLICY, "comes without cufft");
	assert_contains(f->e.hint, "nvidia-cuda-dev");
	assert_not_contains(f->e.hint, "--without");
}

static void test_parts_of_another_package_do_not_matter(void **state)
{
	struct fixture *f = *state;

	probed(f);
	rows[0].package = "torchvision";
	kit_parts[0].header = NULL;
	resolve(f);
}

static void test_cudnn_without_code_for_the_gpu(void **state)
{
	struct fixture *f = *state;

	probed(f);
	use_gpu(f, 0, "");
	kit_parts[0].version = "9.13.0";
	kvlist_set(&f->q.options.toggles, &f->a, "USE_CUDNN", "ON");
	refuse(f, ERR_POLICY, "cuDNN 9.13.0 has no code for sm61");
	assert_contains(f->e.hint, "9.10");
	kit_parts[0].version = "9.10";
	resolve(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_jetson_takes_toolkit_of_its_own),
		TEST(test_cuda_libraries_of_the_system_are_in_the_label),
		TEST(test_environment),
		TEST(test_distribution_toolkit_is_in_the_path_already),
		TEST(test_companions_have_their_own_variables),
		TEST(test_code_is_compressed_for_drivers_that_can_read_it),
		TEST(test_cpu_builds_know_nothing_of_it),
		TEST(test_other_facts_other_keys),
		TEST(test_no_toolkit_at_all),
		TEST(test_another_toolkit),
		TEST(test_target_that_this_nvcc_lacks),
		TEST(test_host_compiler_too_new),
		TEST(test_cudnn_that_is_not_there),
		TEST(test_what_was_given_up_is_in_the_label_of_all_three),
		TEST(test_another_blas_is_in_the_label_of_all_three),
		TEST(test_parts_that_pytorch_cannot_do_without),
		TEST(test_parts_of_another_package_do_not_matter),
		TEST(test_cudnn_without_code_for_the_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
