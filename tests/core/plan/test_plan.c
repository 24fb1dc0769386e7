#include "support.h"

#include "base/sys/digest.h"
#include "base/term.h"
#include "core/root/toolkit.h"
#include "plan_fixture.h"
#include "plan_text.h"

static void a_plan_describes_its_variant(void **state)
{
	struct fixture *f = *state;
	const struct plan *p = resolve(f);

	assert_string_equal(p->variant, "pytorch-python313-cuda12_8-sm90-avx512");
	assert_string_equal(p->distribution, "torch");
	assert_string_equal(p->release, "2.8.0");
	assert_string_equal(p->version, "2.8.0");
	assert_string_equal(p->local_label, "cu128.sm90.avx512");
	assert_string_equal(p->platform, "x86_64-linux");
	assert_string_equal(p->cuda, "12.8");
	assert_string_equal(p->isa, "avx512");
	assert_string_equal(p->blas, "openblas");
	assert_ptr_equal(p->isa_row, &f->s.isas[2]);
	assert_ptr_equal(p->blas_row, &f->s.blas[0]);
	assert_int_equal(p->metadata_rev, 1);
	assert_string_equal(strlist_join(&p->gpu, &f->a, " "), "9.0");
	assert_string_equal(strlist_join(&p->cpu_flags, &f->a, " "), "-mavx512f -mfma");
	assert_int_equal(p->depends.count, 0);
	assert_string_equal(plan_full_version(p, &f->a), "2.8.0+cu128.sm90.avx512");
}

static void a_plan_of_the_cpu_has_no_cuda(void **state)
{
	struct fixture *f = *state;

	use_cpu(f);
	const struct plan *p = resolve(f);
	assert_null(p->cuda);
	assert_int_equal(p->gpu.count, 0);
	assert_string_equal(p->local_label, "cpu.avx512");
	assert_null(settings_get(&p->env, "TORCH_CUDA_ARCH_LIST"));
}

static void a_plan_of_mps_has_no_isa(void **state)
{
	struct fixture *f = *state;

	use_cpu(f);
	f->v.profile.name = "darwin-mps";
	f->v.profile.gpu = GPU_MPS;
	f->v.profile.isa = NULL;
	f->v.profile.platform = "aarch64-darwin";
	const struct plan *p = resolve(f);
	assert_null(p->isa);
	assert_string_equal(p->blas, "veclib");
	assert_string_equal(p->local_label, "mps");
}

static void the_default_toolkit_is_the_first_of_the_release(void **state)
{
	struct fixture *f = *state;

	f->v.cuda = NULL;
	const struct plan *p = resolve(f);
	assert_string_equal(p->cuda, "12.8");
	assert_string_equal(p->variant, "pytorch-python313-cuda12_8-sm90-avx512");
	assert_false(has_note(p, "instead of the release's default"));
}

static void the_default_toolkit_has_the_target(void **state)
{
	struct fixture *f = *state;

	f->v.cuda = NULL;
	f->q.release = "2.9.1";
	use_gpu(f, 3, "");
	const struct plan *p = resolve(f);
	assert_string_equal(p->cuda, "12.9");
	assert_true(has_note(p, "CUDA 12.9 is taken instead of the release's default 12.8, whose "
				"nvcc has no sm103"));
}

static void torchvision_depends_on_torch_of_the_same_variant(void **state)
{
	struct fixture *f = *state;

	f->v.package = "torchvision";
	const struct plan *p = resolve(f);
	assert_string_equal(p->distribution, "torchvision");
	assert_string_equal(p->version, "0.23.0");
	assert_int_equal(p->depends.count, 1);
	assert_string_equal(p->depends.items[0], "pytorch-python313-cuda12_8-sm90-avx512");
	assert_string_equal(p->torch_version, "2.8.0+cu128.sm90.avx512");
	assert_string_equal(settings_value(&p->env, "PYTORCH_VERSION"), "2.8.0+cu128.sm90.avx512");
	assert_null(p->blas);
}

static void the_roots_torch_has_a_version_of_its_own(void **state)
{
	struct fixture *f = *state;

	f->v.package = "torchaudio";
	f->q.torch = "root";
	assert_string_equal(resolve(f)->torch_version, "");
	assert_null(settings_get(&f->p->env, "PYTORCH_VERSION"));
	f->q.torch_version = "2.8.0+distro";
	assert_string_equal(resolve(f)->torch_version, "2.8.0+distro");
	assert_string_equal(settings_value(&f->p->env, "PYTORCH_VERSION"), "2.8.0+distro");
}

static void patches_are_read_in_the_order_of_the_series(void **state)
{
	struct fixture *f = *state;

	test_dir();
	test_write(test_path("patches/pytorch/2.8.0/series"),
		   "# why\n\nb.patch # first\na.patch -p1\n  sub/c.patch\n");
	test_write(test_path("patches/pytorch/2.8.0/a.patch"), "a");
	test_write(test_path("patches/pytorch/2.8.0/b.patch"), "b");
	test_write(test_path("patches/pytorch/2.8.0/sub/c.patch"), "c");
	f->q.patches_dir = test_path("patches");
	const struct plan *p = resolve(f);
	char digest[65];
	digest_data("b", 1, digest);
	assert_int_equal(p->patches_count, 3);
	assert_string_equal(p->patches[0].name, "b.patch");
	assert_string_equal(p->patches[0].sha256, digest);
	assert_string_equal(p->patches[0].path, test_path("patches/pytorch/2.8.0/b.patch"));
	assert_string_equal(p->patches[1].name, "a.patch");
	assert_string_equal(p->patches[2].name, "sub/c.patch");
}

static void a_patch_of_ones_own_is_in_the_label(void **state)
{
	struct fixture *f = *state;

	test_dir();
	f->q.patches_dir = test_path("patches");
	test_write(test_path("patches/pytorch/2.8.0/series"), "a.patch\n");
	test_write(test_path("patches/pytorch/2.8.0/a.patch"), "a");
	const char *label = resolve(f)->local_label;
	assert_int_equal(strncmp(label, "cu128.sm90.avx512.own", 21), 0);
	assert_int_equal(strlen(label), 21 + 8);
	assert_true(has_note(f->p, label + 18) && has_note(f->p, "pytorch: patches "));
	/* Its companions require it by the label, and have it, too. */
	f->v.package = "torchvision";
	assert_string_equal(resolve(f)->local_label, label);
	assert_contains(f->p->torch_version, label);
	f->v.package = "pytorch";
	test_write(test_path("patches/pytorch/2.8.0/a.patch"), "b");
	assert_string_not_equal(resolve(f)->local_label, label);
	test_write(test_path("patches/pytorch/2.8.0/a.patch"), "a");
	assert_string_equal(resolve(f)->local_label, label);
	/* What the row pins is the release's own: all of it, and nothing else. */
	char hex[65];
	digest_data("a", 1, hex);
	const char *list = arena_printf(&f->a, "%s  a.patch\n", hex);
	digest_data(list, strlen(list), hex);
	f->s.packages[0].patches = hex;
	assert_string_equal(resolve(f)->local_label, "cu128.sm90.avx512");
	test_write(test_path("patches/pytorch/2.8.0/series"), "# none\n");
	assert_contains(resolve(f)->local_label, ".own");
}

static void what_is_set_is_in_the_label(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->q.options.toggles, &f->a, "USE_MPI", "off"); /* it is */
	assert_string_equal(resolve(f)->local_label, "cu128.sm90.avx512");
	f->q.options.toggles.count = 0;
	kvlist_set(&f->q.options.toggles, &f->a, "USE_MPI", "1");
	const char *label = resolve(f)->local_label;
	assert_contains(label, "cu128.sm90.avx512.own");
	assert_true(has_note(f->p, "the release: pytorch: USE_MPI=ON"));
	f->v.package = "torchvision";
	assert_string_equal(resolve(f)->local_label, label);
	/* Another spelling of the same is the same, another option is another. */
	f->q.options.toggles.count = 0;
	kvlist_set(&f->q.options.toggles, &f->a, "USE_MPI", "ON");
	assert_string_equal(resolve(f)->local_label, label);
	kvlist_set(&f->q.options.toggles, &f->a, "BUILD_SOX", "ON");
	assert_contains(resolve(f)->local_label, ".own");
	assert_string_not_equal(f->p->local_label, label);
	f->v.package = "pytorch";
	assert_string_not_equal(resolve(f)->local_label, label);
	f->q.drift = true;
	strlist_add(&f->q.options.without, &f->a, "cudnn");
	assert_contains(resolve(f)->local_label, "avx512.nocudnn.own");
	assert_contains(f->p->local_label, ".drift");
}

static void a_release_without_patches_is_fine(void **state)
{
	struct fixture *f = *state;

	test_dir();
	test_write(test_path("patches/pytorch/2.9.1/series"), "x.patch\n");
	f->q.patches_dir = test_path("patches");
	assert_int_equal(resolve(f)->patches_count, 0);
}

static void a_patch_that_is_not_there_is_an_error(void **state)
{
	struct fixture *f = *state;

	test_dir();
	test_write(test_path("patches/pytorch/2.8.0/series"), "gone.patch\n");
	f->q.patches_dir = test_path("patches");
	refuse(f, ERR_SYSTEM, "gone.patch");
}

static void an_unsafe_series_is_refused(void **state)
{
	struct fixture *f = *state;

	test_dir();
	f->q.patches_dir = arena_strdup(&f->a, test_path("patches"));
	test_write(test_path("patches/pytorch/2.8.0/a.patch"), "a");
	const char *bad[] = {"../out.patch\n", "/etc/passwd\n", "a.patch -p0\n",
			     "a.patch\na.patch\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_write(test_path("patches/pytorch/2.8.0/series"), bad[i]);
		refuse(f, ERR_CONFIG, "series");
	}
}

/* ---- what cannot be */

static void an_unknown_release_is_refused(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.8.1";
	refuse(f, ERR_CONFIG, "2.8.1");
	assert_contains(f->e.hint, "2.8.0");
}

static void a_package_the_release_lacks_is_refused(void **state)
{
	struct fixture *f = *state;

	f->v.package = "torchaudio";
	f->q.release = "2.9.1";
	refuse(f, ERR_POLICY, "release '2.9.1' has no torchaudio");
	assert_string_equal(f->e.hint, "releases that have it: 2.8.0");
}

static void a_python_the_release_lacks_is_refused(void **state)
{
	struct fixture *f = *state;

	f->v.python = "3.14";
	refuse(f, ERR_POLICY, "release '2.8.0' does not build for Python 3.14");
	assert_string_equal(f->e.hint,
			    "it builds for 3.11 3.12 3.13; Python 3.14 is in release 2.9.1");
	f->v.python = "3.8";
	refuse(f, ERR_POLICY, "Python 3.8");
	assert_string_equal(f->e.hint, "it builds for 3.11 3.12 3.13");
}

static void a_target_that_nvcc_lacks_is_refused(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	use_gpu(f, 3, "");
	refuse(f, ERR_POLICY, "cuda12_8 has no sm103: nvcc 12.8 knows no such target");
	assert_string_equal(f->e.hint,
			    "use CUDA 12.9: --cuda 12.9, or cuda12_9 in a variant's name");
}

static void the_hint_names_another_release_where_this_has_no_way(void **state)
{
	struct fixture *f = *state;

	use_arm(f);
	use_gpu(f, 4, "");
	refuse(f, ERR_POLICY, "cuda12_8 has no sm110");
	assert_string_equal(f->e.hint,
			    "use CUDA 13.0 with release 2.9.1: --cuda 13.0 --release 2.9.1");
}

static void the_hint_says_when_no_release_builds_it(void **state)
{
	struct fixture *f = *state;

	f->v.python = "3.11";
	use_arm(f);
	use_gpu(f, 4, "");
	refuse(f, ERR_POLICY, "cuda12_8 has no sm110");
	assert_string_equal(f->e.hint, "only cuda13_0 has it, and no release with pytorch for "
				       "Python 3.11 builds with that");
}

static void a_target_that_nvcc_dropped_is_refused(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	f->v.cuda = "13.0";
	use_gpu(f, 0, "");
	refuse(f, ERR_POLICY, "cuda13_0 has no sm61: nvcc 13.0 knows no such target");
	assert_string_equal(f->e.hint,
			    "use CUDA 12.8: --cuda 12.8, or cuda12_8 in a variant's name");
}

static void test_gpu_newer_than_every_toolkit_hints_older_code_with_ptx(void **state)
{
	struct fixture *f = *state;

	f->s.gpus[4].cuda_min = "13.9";
	use_gpu(f, 4, "");
	refuse(f, ERR_POLICY, "cuda12_8 has no sm110");
	assert_contains(f->e.hint, "use sm90+ptx");
	assert_null(strstr(f->e.hint, "variant"));
	f->targets[0] = small_target(&f->s, 2, "", true);
	resolve(f);
}

static void test_gpu_older_than_every_toolkit_is_left_out(void **state)
{
	struct fixture *f = *state;

	f->s.gpus[0].cuda_max = "11.8";
	use_gpu(f, 0, "");
	refuse(f, ERR_POLICY, "cuda12_8 has no sm61");
	assert_contains(f->e.hint, "leave sm61 out");
}

static void test_hint_of_a_toolkit_keeps_apart_what_cannot_be_built_together(void **state)
{
	static const char *others[] = {"80"};
	struct fixture *f = *state;

	f->s.gpus[3].not_with = others, f->s.gpus[3].not_with_count = 1;
	f->q.release = "2.9.1";
	f->targets[0] = small_target(&f->s, 1, "", false);
	f->targets[1] = small_target(&f->s, 3, "", false);
	f->v.profile.targets_count = 2;
	refuse(f, ERR_POLICY, "cuda12_8 has no sm103");
	assert_contains(f->e.hint, "build several variants");
}

static void a_suffix_has_a_first_toolkit_of_its_own(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	f->v.cuda = "12.9";
	use_gpu(f, 3, "f");
	refuse(f, ERR_POLICY, "cuda12_9 has no sm103f");
	assert_string_equal(f->e.hint,
			    "use CUDA 13.0: --cuda 13.0, or cuda13_0 in a variant's name");
	use_gpu(f, 3, "a");
	assert_string_equal(resolve(f)->gpu.items[0], "10.3a");
}

static void targets_that_share_no_toolkit_are_two_variants(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	f->targets[0] = small_target(&f->s, 0, "", false);
	f->targets[1] = small_target(&f->s, 4, "", false);
	f->v.profile.targets_count = 2;
	f->v.profile.name = "sm61+sm110-avx512";
	refuse(f, ERR_POLICY, "cuda12_8 has no sm110");
	assert_contains(f->e.hint, "build several variants");
}

static void an_unknown_toolkit_is_refused(void **state)
{
	struct fixture *f = *state;

	f->v.cuda = "12.88";
	refuse(f, ERR_CONFIG, "unknown CUDA toolkit '12.88'");
	assert_contains(f->e.hint, "did you mean '12.8'?");
}

static void a_toolkit_the_release_lacks_is_refused(void **state)
{
	struct fixture *f = *state;

	f->v.cuda = "13.0";
	refuse(f, ERR_POLICY, "release '2.8.0' does not build with CUDA 13.0");
	assert_string_equal(f->e.hint, "it builds with 12.8 12.9; CUDA 13.0 is in release 2.9.1");
}

static void a_gpu_newer_than_the_release_is_refused(void **state)
{
	struct fixture *f = *state;

	f->v.cuda = "12.9";
	use_gpu(f, 3, "");
	refuse(f, ERR_POLICY, "release '2.8.0' does not know sm103: PyTorch has it from 2.9");
	assert_string_equal(f->e.hint,
			    "use CUDA 12.9 with release 2.9.1: --cuda 12.9 --release 2.9.1");
}

static void cuda_without_a_gpu_is_refused(void **state)
{
	struct fixture *f = *state;

	use_cpu(f);
	f->v.cuda = "12.8";
	refuse(f, ERR_CONFIG, "CUDA 12.8 for 'cpu-avx512'");
}

static void a_release_without_toolkits_builds_without_cuda(void **state)
{
	struct fixture *f = *state;

	f->s.releases[0].toolkits_count = 0;
	f->v.cuda = NULL;
	refuse(f, ERR_POLICY, "release '2.8.0' builds without CUDA only");
	assert_string_equal(f->e.hint,
			    "use CUDA 12.8 with release 2.9.1: --cuda 12.8 --release 2.9.1");
}

static void torchvision_has_no_family_targets(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	f->v.cuda = "13.0";
	use_gpu(f, 3, "f");
	assert_string_equal(resolve(f)->gpu.items[0], "10.3f");
	f->v.package = "torchvision";
	refuse(f, ERR_POLICY, "torchvision cannot be built for 'sm103f'");
	assert_contains(f->e.hint, "sm103a");
}

static void an_isa_of_another_platform_is_refused(void **state)
{
	struct fixture *f = *state;
	f->v.profile.platform = LINUX_ARM;
	refuse(f, ERR_POLICY, "isa 'avx512' is of x86_64-linux");
}

static void an_unknown_blas_is_refused(void **state)
{
	struct fixture *f = *state;

	f->q.options.blas = "openblass";
	refuse(f, ERR_CONFIG, "unknown BLAS 'openblass'");
	assert_contains(f->e.hint, "did you mean 'openblas'?");
	f->q.options.blas = "MKL";
	refuse(f, ERR_CONFIG, "unknown BLAS 'MKL'");
	assert_contains(f->e.hint, "did you mean 'mkl'?");
	f->q.options.blas = "cuBLAS";
	refuse(f, ERR_CONFIG, "unknown BLAS 'cuBLAS'");
	assert_contains(f->e.hint, "it comes with CUDA");
}

static void a_blas_of_another_platform_is_refused(void **state)
{
	struct fixture *f = *state;

	f->q.options.blas = "veclib";
	refuse(f, ERR_POLICY, "blas 'veclib' does not exist on x86_64-linux");
	assert_string_equal(f->e.hint, "use openblas");
}

static void the_blas_asked_for_goes_before_the_profiles(void **state)
{
	struct fixture *f = *state;

	f->v.profile.blas = &f->s.blas[1];
	assert_string_equal(resolve(f)->blas, "mkl");
	f->q.options.blas = "openblas";
	assert_string_equal(resolve(f)->blas, "openblas");
	assert_contains(settings_get(&f->p->env, "BLAS")->why, "command line");
}

/* The label, the toolkit and the proof follow the profile: the toggle alone would give neither. */
static void the_kind_of_gpu_is_the_profiles(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->q.options.toggles, &f->a, "USE_CUDA", "OFF");
	refuse(f, ERR_POLICY, "USE_CUDA=OFF (command line) contradicts profile sm90-avx512");
	kvlist_set(&f->q.options.toggles, &f->a, "USE_CUDA", "ON");
	assert_non_null(resolve(f));
	use_cpu(f);
	refuse(f, ERR_POLICY, "USE_CUDA=ON (command line) contradicts profile cpu-avx512");
}

static void a_refusal_leaves_the_result_alone(void **state)
{
	struct fixture *f = *state;

	kvlist_set(&f->q.options.toggles, &f->a, "USE_NOTHING_LIKE_IT", "1");
	refuse(f, ERR_CONFIG, "USE_NOTHING_LIKE_IT");
	assert_null(f->p);
}

/* ---- notes */

static void notes_correct_the_spelling_of_targets_and_the_driver(void **state)
{
	struct fixture *f = *state;
	const struct plan *p = resolve(f);

	assert_string_equal(p->notes.items[0], "TORCH_CUDA_ARCH_LIST is 9.0, not sm_90");
	assert_string_equal(p->notes.items[1], "needs an NVIDIA driver >= 525.60.13 at run time: "
					       "the floor follows CUDA 12.8, not the GPU");
	assert_true(has_note(p, "on the GPU PyTorch uses cuBLAS"));
	assert_false(has_note(p, "USE_CUDNN"));
}

static void notes_apply_to_the_variant_only(void **state)
{
	struct fixture *f = *state;

	use_cpu(f);
	assert_int_equal(resolve(f)->notes.count, 0);
	f->v.package = "torchvision";
	assert_true(has_note(resolve(f), "the keys change once the torch wheel"));
	f->q.torch = "sha256:" SHA_A;
	assert_int_equal(resolve(f)->notes.count, 0);
}

static void notes_tell_of_gpus_that_need_a_newer_driver(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	f->v.cuda = "12.9";
	use_gpu(f, 3, "");
	assert_true(has_note(resolve(f),
			     "sm103 machines need a driver >= 570.26 whatever the toolkit"));
}

static void notes_tell_of_ptx(void **state)
{
	struct fixture *f = *state;
	f->targets[0].ptx = true;
	assert_true(has_note(resolve(f), "newer GPUs need a driver >= 570.26 for it"));
}

static void notes_tell_of_machines_that_do_not_exist(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	f->v.cuda = "13.0";
	use_gpu(f, 4, "");
	assert_true(has_note(resolve(f), "sm110 GPUs come in Arm machines; building for x86_64"));
	assert_true(has_note(f->p, "sm110 is sm101 before CUDA 13"));
	use_arm(f);
	assert_false(has_note(resolve(f), "GPUs come in"));
	assert_true(has_note(f->p, "not for Graviton3"));
}

static void notes_tell_of_a_cudnn_that_is_off_or_must_stay_old(void **state)
{
	struct fixture *f = *state;

	use_gpu(f, 0, "");
	assert_true(has_note(resolve(f), "USE_CUDNN=OFF: cuDNN 9.10 is the last that supports "
					 "sm61, and a root may hold a newer one"));
	f->q.release = "2.9.1";
	assert_true(has_note(resolve(f), "USE_CUDNN=OFF: cuDNN 9.10 is the last that supports "
					 "sm61, and this release uses 9.13.0.50"));
	kvlist_set(&f->q.options.toggles, &f->a, "USE_CUDNN", "ON");
	assert_false(has_note(resolve(f), "USE_CUDNN=OFF"));
	assert_true(has_note(f->p, "sm61 needs cuDNN 9.10 or older"));
}

static void notes_come_in_the_same_order_each_time(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	use_gpu(f, 0, "");
	const char *first = strlist_join(&resolve(f)->notes, &f->a, "\n");
	assert_string_equal(strlist_join(&resolve(f)->notes, &f->a, "\n"), first);
}

/* ---- printing */

static void json_has_the_keys_of_the_contract_in_order(void **state)
{
	struct fixture *f = *state;
	static const char *const want[] = {
		"schema",      "variant",      "package", "distribution", "release",   "version",
		"local_label", "platform",     "python",  "cuda",         "gpu",       "isa",
		"blas",        "cpu_flags",    "env",     "cmake",        "sources",   "patches",
		"depends",     "metadata_rev", "notes",   "compile_key",  "output_key"};
	json_t *j = plan_json(resolve(f));
	const char *key = NULL;
	json_t *value = NULL;
	size_t i = 0;

	json_object_foreach(j, key, value)
	{
		if (i < ARRAY_LEN(want))
			assert_string_equal(key, want[i]);
		i++;
	}

	assert_true(i >= ARRAY_LEN(want));
	json_decref(j);
}

static void json_holds_the_plan(void **state)
{
	struct fixture *f = *state;
	json_t *j = plan_json(resolve(f));

	assert_int_equal(json_integer_value(json_object_get(j, "schema")), 1);
	assert_string_equal(json_string_value(json_object_get(j, "cuda")), "12.8");
	assert_string_equal(json_string_value(json_array_get(json_object_get(j, "gpu"), 0)), "9.0");
	assert_string_equal(json_string_value(json_object_get(json_object_get(j, "env"),
							      "TORCH_CUDA_ARCH_LIST")),
			    "9.0");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(j, "cmake"), "USE_CUDNN")), "ON");
	json_t *source = json_array_get(json_object_get(j, "sources"), 0);
	assert_string_equal(json_string_value(json_object_get(source, "name")), "torch.tar.gz");
	assert_string_equal(json_string_value(json_object_get(source, "sha256")), SHA_A);
	assert_int_equal(json_array_size(json_object_get(source, "urls")), 1);
	assert_string_equal(json_string_value(json_object_get(j, "compile_key")),
			    f->p->compile_key);
	json_decref(j);
}

static void json_has_null_where_nothing_applies(void **state)
{
	struct fixture *f = *state;

	use_cpu(f);
	f->v.package = "torchvision";
	json_t *j = plan_json(resolve(f));
	assert_true(json_is_null(json_object_get(j, "cuda")));
	assert_true(json_is_null(json_object_get(j, "blas")));
	assert_int_equal(json_array_size(json_object_get(j, "gpu")), 0);
	assert_int_equal(json_array_size(json_object_get(j, "depends")), 1);
	json_decref(j);
}

static void json_settings_are_sorted(void **state)
{
	struct fixture *f = *state;
	json_t *j = plan_json(resolve(f));
	const char *names[] = {"env", "cmake"};

	for (size_t k = 0; k < ARRAY_LEN(names); k++) {
		const char *before = "";
		const char *key = NULL;
		json_t *value = NULL;
		json_object_foreach(json_object_get(j, names[k]), key, value)
		{
			assert_true(strcmp(before, key) < 0);
			before = key;
		}

		assert_true(*before);
	}

	json_decref(j);
}

static void text_shows_each_value_with_its_place_and_reason(void **state)
{
	struct fixture *f = *state;

	f->q.release = "2.9.1";
	use_gpu(f, 0, "");
	const char *text = plan_text(resolve(f), PLAN_REASONS, &f->a);
	assert_contains(text, "pytorch-python313-cuda12_8-");
	assert_contains(text, "USE_CUDNN=OFF  ");
	assert_contains(text, "gpu.yaml:10  ");
	assert_contains(text, "(instead of 'ON' from toggles.yaml:2)");
	assert_contains(text, "notes\n  - TORCH_CUDA_ARCH_LIST is 6.1, not sm_61");
	assert_contains(text, f->p->output_key);
	assert_not_contains(plan_text(f->p, PLAN_ALL, &f->a), "gpu.yaml:10");
	for (size_t i = 0; i < f->p->env.count; i++) {
		assert_contains(text, f->p->env.items[i].name);
		assert_contains(text, f->p->env.items[i].why);
	}
}

static void a_root_whose_gcc_is_too_old_for_the_instruction_set(void **state)
{
	struct fixture *f = *state;
	struct tool gcc = {.name = "gcc", .path = "/usr/bin/gcc", .version = "8.3.0", .id = ""};
	const struct toolchain l = {.tools = &gcc, .count = 1, .text = "", .fingerprint = ""};
	struct isa_row isa = f->s.isas[2];

	isa.gcc_min = "10";
	f->v.profile.isa = &isa;
	f->q.toolchain = &l;
	assert_err(plan_resolve(&f->s.t, &f->q, &f->a, &f->p, &f->e), &f->e, ERR_POLICY,
		   "gcc 8.3.0 of the root does not know 'avx512', which needs GCC 10");
	gcc.version = "10.2.0";
	assert_ok(plan_resolve(&f->s.t, &f->q, &f->a, &f->p, &f->e), &f->e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_root_whose_gcc_is_too_old_for_the_instruction_set),
		TEST(a_plan_describes_its_variant),
		TEST(a_plan_of_the_cpu_has_no_cuda),
		TEST(a_plan_of_mps_has_no_isa),
		TEST(the_default_toolkit_is_the_first_of_the_release),
		TEST(the_default_toolkit_has_the_target),
		TEST(torchvision_depends_on_torch_of_the_same_variant),
		TEST(the_roots_torch_has_a_version_of_its_own),
		TEST(patches_are_read_in_the_order_of_the_series),
		TEST(a_patch_of_ones_own_is_in_the_label),
		TEST(what_is_set_is_in_the_label),
		TEST(a_release_without_patches_is_fine),
		TEST(a_patch_that_is_not_there_is_an_error),
		TEST(an_unsafe_series_is_refused),
		TEST(an_unknown_release_is_refused),
		TEST(a_package_the_release_lacks_is_refused),
		TEST(a_python_the_release_lacks_is_refused),
		TEST(a_target_that_nvcc_lacks_is_refused),
		TEST(the_hint_names_another_release_where_this_has_no_way),
		TEST(the_hint_says_when_no_release_builds_it),
		TEST(a_target_that_nvcc_dropped_is_refused),
		TEST(test_gpu_newer_than_every_toolkit_hints_older_code_with_ptx),
		TEST(test_gpu_older_than_every_toolkit_is_left_out),
		TEST(test_hint_of_a_toolkit_keeps_apart_what_cannot_be_built_together),
		TEST(a_suffix_has_a_first_toolkit_of_its_own),
		TEST(targets_that_share_no_toolkit_are_two_variants),
		TEST(an_unknown_toolkit_is_refused),
		TEST(a_toolkit_the_release_lacks_is_refused),
		TEST(a_gpu_newer_than_the_release_is_refused),
		TEST(cuda_without_a_gpu_is_refused),
		TEST(a_release_without_toolkits_builds_without_cuda),
		TEST(torchvision_has_no_family_targets),
		TEST(an_isa_of_another_platform_is_refused),
		TEST(an_unknown_blas_is_refused),
		TEST(a_blas_of_another_platform_is_refused),
		TEST(the_blas_asked_for_goes_before_the_profiles),
		TEST(the_kind_of_gpu_is_the_profiles),
		TEST(a_refusal_leaves_the_result_alone),
		TEST(notes_correct_the_spelling_of_targets_and_the_driver),
		TEST(notes_apply_to_the_variant_only),
		TEST(notes_tell_of_gpus_that_need_a_newer_driver),
		TEST(notes_tell_of_ptx),
		TEST(notes_tell_of_machines_that_do_not_exist),
		TEST(notes_tell_of_a_cudnn_that_is_off_or_must_stay_old),
		TEST(notes_come_in_the_same_order_each_time),
		TEST(json_has_the_keys_of_the_contract_in_order),
		TEST(json_holds_the_plan),
		TEST(json_has_null_where_nothing_applies),
		TEST(json_settings_are_sorted),
		TEST(text_shows_each_value_with_its_place_and_reason),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
