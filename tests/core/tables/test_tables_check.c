#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/fs.h"
#include "core/tables/tables.h"

static const struct tables *shipped(struct arena *a)
{
	const struct tables *t = NULL;
	struct err e = {0};

	assert_ok(tables_load(PROFILES_DIR, a, &t, &e), &e);
	return t;
}

/* A copy of the shipped tables with the first `from` of a file replaced; its directory. */
static const char *altered(const char *file, const char *from, const char *to)
{
	struct err e = {0};

	test_dir();
	const char *dir = test_path("%s", "profiles");
	assert_ok(fs_copy_tree(PROFILES_DIR, dir, &e), &e);
	char *path = strdup(test_path("profiles/%s", file));
	char *text = test_read(path);
	assert_non_null(text);
	char *at = strstr(text, from);
	if (!at)
		fail_msg("'%s' is not in %s", from, file);
	size_t size = strlen(text) + strlen(to) + 1;
	char *changed = malloc(size);
	assert_non_null(changed);
	snprintf(changed, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	test_write(path, changed);
	free(changed);
	free(text);
	free(path);
	return dir;
}

/* Loading must fail with the text, and say file and line. */
static void refused(const char *file, const char *from, const char *to, const char *text)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = NULL;
	struct err e = {0};
	const char *dir = altered(file, from, to);

	assert_err(tables_load(dir, &a, &t, &e), &e, ERR_CONFIG, text);
	assert_null(t);
	char place[128];
	snprintf(place, sizeof(place), "%s:", file);
	const char *at = strstr(e.msg, place);
	if (!at)
		fail_msg("no place '%s' in: %s", place, e.msg);
	assert_true(strtoul(at + strlen(place), NULL, 10) > 0);
}

#define REFUSED(test, file, from, to, text)                                                        \
	static void test(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		refused(file, from, to, text);                                                     \
	}

/* clang-format off */
REFUSED(unknown_key, "isa.yaml", "gcc_min:", "gcc_mni:", "gcc_mni")
REFUSED(missing_key, "isa.yaml", "    clang_min: \"3.5\"\n", "", "clang_min")
REFUSED(wrong_type, "isa.yaml", "flags: [-mavx, -mno-fma, -mno-bmi, -mno-bmi2, -mno-avx2]", "flags: -mavx", "flags")
REFUSED(no_yaml, "gpu.yaml", "gpus:", "gpus: [", "")
REFUSED(two_instruction_sets, "isa.yaml", "name: avx512vnni", "name: avx2", "'avx2' is listed twice")
REFUSED(alias_of_another, "isa.yaml", "aliases: [armv8.2]", "aliases: [avx2]", "'avx2' is listed twice")
REFUSED(alias_of_another_gpu, "gpu.yaml", "aliases: [\"107\"]", "aliases: [\"103\"]", "sm '103' is listed twice")
REFUSED(instruction_set_name, "isa.yaml", "name: avx512vnni", "name: avx512-vnni",
	"not a name for an instruction set: 'avx512-vnni'")
REFUSED(instruction_set_platform, "isa.yaml", "platform: aarch64-linux", "platform: arm-linux",
	"'platform' cannot be 'arm-linux'")
REFUSED(instruction_set_flag, "isa.yaml", "flags: [-mavx2, -mfma, -mf16c]", "flags: [\"-mavx2 -mfma\"]",
	"not a compiler flag")
REFUSED(instruction_set_flag_shell, "isa.yaml", "-mf16c", "-m$HOME", "not a compiler flag")
REFUSED(compiler_minimum, "isa.yaml", "gcc_min: \"4.6\"", "gcc_min: new", "'gcc_min': not a version: 'new'")
REFUSED(setting_twice, "isa.yaml", "[CXX_AVX2_FOUND, C_AVX2_FOUND]", "[CXX_AVX2_FOUND, CXX_AVX2_FOUND]",
	"'CXX_AVX2_FOUND' is set twice")
REFUSED(setting_name, "isa.yaml", "[CXX_AVX2_FOUND, C_AVX2_FOUND]", "[CXX_AVX2_FOUND, C-AVX2]",
	"not a name of a setting: 'C-AVX2'")
REFUSED(setting_value, "isa.yaml", "name: USE_MKLDNN, value: \"OFF\"", "name: USE_MKLDNN, value: maybe",
	"'USE_MKLDNN' cannot be 'maybe'")
REFUSED(setting_spelling, "isa.yaml", "name: USE_MKLDNN, value: \"OFF\"", "name: USE_MKLDNN, value: \"0\"",
	"write 'OFF' for 'USE_MKLDNN', not '0'")
REFUSED(truth_word, "isa.yaml", "value: \"FALSE\", cache: true", "value: \"FALSE\", cache: perhaps", "cache")
REFUSED(toggle_without_a_name, "toggles.yaml", "{name: BUILD_FUNCTORCH, value", "{value", "neither 'name' nor 'names'")
REFUSED(toggle_with_both_names, "toggles.yaml", "{name: BUILD_FUNCTORCH, value",
	"{name: BUILD_FUNCTORCH, names: [BUILD_A], value", "'BUILD_FUNCTORCH' together with 'names'")
REFUSED(toggle_value_twice, "toggles.yaml", "{name: BUILD_FUNCTORCH, value",
	"{name: BUILD_FUNCTORCH, cpu: \"ON\", value", "'value' is for cpu, cuda and mps alike")
REFUSED(toggle_needs_nothing_there_is, "toggles.yaml", "needs: USE_MPI", "needs: USE_MPY",
	"needs 'USE_MPY', which is not another option")
REFUSED(toggle_needs_itself, "toggles.yaml", "needs: USE_DISTRIBUTED, why: \"collectives",
	"needs: USE_GLOO, why: \"collectives", "'USE_GLOO' needs 'USE_GLOO'")
REFUSED(a_name_of_names_twice, "toggles.yaml", "[USE_CPP_CODE_COVERAGE, USE_PROF]", "[USE_PROF, USE_PROF]",
	"'USE_PROF' of pytorch is listed twice")
REFUSED(setting_without_a_name, "isa.yaml", "{name: USE_MKLDNN, value", "{value", "neither 'name' nor 'names'")
REFUSED(setting_with_both_names, "isa.yaml", "{name: USE_MKLDNN, value", "{name: USE_MKLDNN, names: [A], value",
	"'USE_MKLDNN' together with 'names'")
REFUSED(correction_twice, "corrections.yaml", "name: orin-and-thor", "name: l40s-is-ada",
	"'l40s-is-ada' is listed twice")
REFUSED(correction_gpu, "corrections.yaml", "gpus: [\"121\"]", "gpus: [\"122\"]", "unknown GPU target '122'")
REFUSED(correction_isa, "corrections.yaml", "isas: [avx512vnni]", "isas: [avx512vni]",
	"unknown instruction set 'avx512vni'")
REFUSED(correction_kind, "corrections.yaml", "kinds: [mps]", "kinds: [metal]", "'kinds' cannot be 'metal'")
REFUSED(correction_package, "corrections.yaml", "packages: [torchaudio]", "packages: [audio]",
	"'packages' cannot be 'audio'")
REFUSED(two_gpus, "gpu.yaml", "sm: \"52\", capability: \"5.2\"", "sm: \"50\", capability: \"5.0\"",
	"'50' is listed twice, first in line")
REFUSED(capability, "gpu.yaml", "sm: \"120\", capability: \"12.0\"", "sm: \"120\", capability: \"1.20\"", "do not fit")
REFUSED(sm_letters, "gpu.yaml", "sm: \"120\"", "sm: sm_120", "do not fit")
REFUSED(gpu_ends_before_it_begins, "gpu.yaml", "cuda_min: \"6.0\", cuda_max: \"12.9\"",
	"cuda_min: \"6.0\", cuda_max: \"5.0\"", "is before cuda_min")
REFUSED(gpu_tegra_without_sbsa, "gpu.yaml", "tegra: true, sbsa: \"13.0\"", "tegra: true", "'tegra' and 'sbsa'")
REFUSED(release_label, "releases/2.6.0-debian.yaml", "label: debian", "label: De_bian", "not lower-case letters")
REFUSED(gpu_suffix, "gpu.yaml", "{suffix: a,", "{suffix: b,", "'suffix' cannot be 'b'")
REFUSED(gpu_suffix_twice, "gpu.yaml", "{suffix: f, cuda_min: \"12.9\"", "{suffix: a, cuda_min: \"12.9\"",
	"suffix 'a' is listed twice")
REFUSED(gpu_suffix_too_old, "gpu.yaml", "{suffix: a, cuda_min: \"12.0\"}", "{suffix: a, cuda_min: \"11.0\"}",
	"cannot be older")
REFUSED(gpu_platform, "gpu.yaml", "platforms: [aarch64-linux]", "platforms: [jetson]", "'platforms' cannot be 'jetson'")
REFUSED(two_toolkits, "cuda.yaml", "version: \"12.9\"", "version: \"12.8\"", "'12.8' is listed twice, first in line")
REFUSED(toolkit_version, "cuda.yaml", "version: \"12.9\"", "version: \"12_9\"", "'version': not a version: '12_9'")
REFUSED(toolkit_layout, "cuda.yaml", "layout: cu13", "layout: cu14", "no layout 'cu14'")
REFUSED(library_older_dir, "cuda.yaml", "older: cusparselt/lib", "older: ../cusparselt/lib",
	"not a directory below site-packages: '../cusparselt/lib'")
REFUSED(library_below, "cuda.yaml", "below: \"12.9\"", "below: none", "'below': not a version: 'none'")
REFUSED(library_dir, "cuda.yaml", "dir: cublas/lib", "dir: /cublas/lib",
	"not a directory below site-packages/nvidia: '/cublas/lib'")
REFUSED(library_part, "cuda.yaml", "part: cublas", "part: cublass", "no part 'cublass'")
REFUSED(library_needs, "cuda.yaml", "needs: [nvidia-nvjitlink-cu12]", "needs: [nvidia-none]",
	"no package 'nvidia-none' in layout 'cu12'")
REFUSED(library_twice, "cuda.yaml", "package: nvidia-cublas-cu12", "package: nvidia-cuda-runtime-cu12",
	"'nvidia-cuda-runtime-cu12' is listed twice, first in line")
REFUSED(part_toggle, "cuda.yaml", "toggle: USE_CUDNN", "toggle: USE_CUDN", "no toggle 'USE_CUDN' of pytorch")
REFUSED(part_header, "cuda.yaml", "header: cudnn_version.h", "header: /cudnn_version.h", "not a name of a header")
REFUSED(part_twice, "cuda.yaml", "name: cudnn,", "name: cublas,", "'cublas' is listed twice, first in line")
REFUSED(gpu_extra, "gpu.yaml", "extra: 90a", "extra: 99a", "no GPU target '99a'")
REFUSED(gpu_extra_letter, "gpu.yaml", "extra: 90a", "extra: 90x", "no GPU target '90x'")
REFUSED(two_layouts, "cuda.yaml", "name: cu13", "name: cu12", "'cu12' is listed twice, first in line")
REFUSED(need_of_two_things, "needs.yaml", "{tool: gcc, ", "{tool: gcc, program: gcc, ",
	"a need is one of 'tool', 'program', 'header', 'module' and 'library'")
REFUSED(need_of_the_host, "needs.yaml", "{tool: gcc, ", "{tool: gcc, host: true, ", "'host' is for a 'program'")
REFUSED(need_of_a_package, "needs.yaml", "{tool: gcc, ", "{tool: gcc, package: torch, ", "'package' cannot be 'torch'")
REFUSED(taken_of_two_things, "captured.yaml", "requirement: \"", "check: dot, requirement: \"",
	"either 'requirement' or 'check'")
REFUSED(taken_of_nothing, "captured.yaml", "check: dot, ", "", "either 'requirement' or 'check'")
REFUSED(two_pools, "threads.yaml", "name: LLVM or Intel OpenMP", "name: GNU OpenMP", "'GNU OpenMP' is listed twice")
REFUSED(pool_of_nothing, "threads.yaml", "libraries: [libmkl_tbb_thread*.so*], ", "",
	"'MKL over TBB' has neither 'libraries' nor 'defines'")
REFUSED(pool_that_only_wants, "threads.yaml", "libraries: [libmkl_tbb_thread*.so*]",
	"libraries: [libmkl_tbb_thread*.so*], wants: [a]", "'MKL over TBB' has 'wants' or 'without', but no 'defines'")
REFUSED(two_blas, "blas.yaml", "name: mkl", "name: openblas", "'openblas' is listed twice")
REFUSED(setting_kind, "releases/2.6.0-debian.yaml", "name: USE_CUFILE,", "name: USE_CUFILE, gpu: rocm,",
	"'gpu' cannot be 'rocm'")
REFUSED(blas_setting, "blas.yaml", "name: BLAS_USE_CBLAS_DOT", "name: BLAS-DOT", "not a name of a setting: 'BLAS-DOT'")
REFUSED(blas_platform, "blas.yaml", "platforms: [aarch64-darwin]", "platforms: [darwin]",
	"'platforms' cannot be 'darwin'")
REFUSED(toggle_twice, "toggles.yaml", "name: BUILD_TEST", "name: BUILD_BINARY",
	"'BUILD_BINARY' of pytorch is listed twice")
REFUSED(toggle_overlap, "toggles.yaml", "until: 2.11.0, cpu: \"OFF\", cuda: \"ON\"",
	"until: 2.12.0, cpu: \"OFF\", cuda: \"ON\"", "listed twice for the same version")
REFUSED(toggle_range, "toggles.yaml", "since: 2.9.0, until: 2.11.0", "since: 2.11.0, until: 2.9.0", "before it begins")
REFUSED(toggle_value, "toggles.yaml", "cpu: OMP", "cpu: TBB", "'ATEN_THREADING' cannot be 'TBB'")
REFUSED(toggle_value_spelling, "toggles.yaml", "name: FORCE_CUDA, package: torchvision, cpu: \"0\"",
	"name: FORCE_CUDA, package: torchvision, cpu: \"OFF\"", "write '0' for 'FORCE_CUDA'")
REFUSED(toggle_package, "toggles.yaml", "package: torchvision", "package: vision", "'package' cannot be 'vision'")
REFUSED(retired_but_alive, "toggles.yaml", "name: USE_CUBLAS", "name: USE_CUDA", "'USE_CUDA' cannot be retired")
REFUSED(digest_short, "releases/2.9.1.yaml", "sha256: e17504700ebc", "sha256: e17504700eb", "not a sha256")
REFUSED(digest_missing, "releases/2.9.1.yaml",
	"      sha256: e17504700ebc4c87f9b57059df1c4d790b769458c04db144c7a92aea90f2c92b\n", "",
	"'pytorch-v2.9.1.tar.gz' needs a 'sha256', or 'unproven'")
REFUSED(digest_of_unproven, "releases/2.9.1.yaml", "      sha256: e17504700ebc",
	"      unproven: no\n      sha256: e17504700ebc", "needs a 'sha256', or 'unproven'")
REFUSED(digest_capitals, "releases/2.9.1.yaml", "sha256: e17504700ebc", "sha256: E17504700EBC", "not a sha256")
REFUSED(toolkit_without_row, "releases/2.9.1.yaml", "\"12.6\"", "\"12.5\"", "no toolkit '12.5' in cuda.yaml")
REFUSED(release_toolkit_twice, "releases/2.9.1.yaml", "\"12.6\"", "\"12.8\"", "toolkit '12.8' is listed twice")
REFUSED(python_spelling, "releases/2.9.1.yaml", "\"3.10\"", "\"310\"", "'pythons': not like")
REFUSED(python_twice, "releases/2.9.1.yaml", "\"3.10\"", "\"3.11\"", "Python '3.11' is listed twice")
REFUSED(release_name, "releases/2.9.1.yaml", "name: 2.9.1\n", "name: 2.9.2\n", "must be its base")
REFUSED(release_file, "releases/2.9.1.yaml", "name: 2.9.1\nbase: 2.9.1", "name: 2.9.2\nbase: 2.9.2",
	"must be in a file '2.9.2.yaml'")
REFUSED(version_range, "releases/2.9.1.yaml", "cmake: \">=3.27\"", "cmake: \"=>3.27\"", "'cmake'")
REFUSED(backend, "releases/2.9.1.yaml", "backend: setup-py-env", "backend: setup.py", "'backend' cannot be 'setup.py'")
REFUSED(source_name, "releases/2.9.1.yaml", "name: pytorch-v2.9.1.tar.gz", "name: ../pytorch.tar.gz",
	"not a safe file name: '../pytorch.tar.gz'")
REFUSED(source_name_option, "releases/2.9.1.yaml", "name: pytorch-v2.9.1.tar.gz", "name: -rf",
	"not a safe file name: '-rf'")
REFUSED(source_name_hidden, "releases/2.9.1.yaml", "name: pytorch-v2.9.1.tar.gz", "name: .hidden",
	"not a safe file name: '.hidden'")
REFUSED(gpu_beside_unknown, "gpu.yaml", "not_with: [\"100\"]", "not_with: [\"99\"]", "no sm '99'")
REFUSED(gpu_gone, "gpu.yaml", "extensions_until: \"2.9.0\"", "extensions_until: soon", "extensions_until")
REFUSED(gpu_suffix_torch, "gpu.yaml", "{suffix: f, cuda_min: \"12.9\", torch_min: \"2.9.0\"}",
	"{suffix: f, cuda_min: \"12.9\", torch_min: new}", "torch_min")
REFUSED(source_twice, "releases/2.6.0-debian.yaml", "name: pytorch_2.6.0+dfsg-7.debian.tar.xz",
	"name: pytorch_2.6.0+dfsg.orig.tar.xz", "is listed twice")
REFUSED(source_scheme, "releases/2.9.1.yaml", "https://github.com/pytorch/pytorch/",
	"ftp://github.com/pytorch/pytorch/", "not a URL to fetch it from")
REFUSED(source_deb, "releases/2.6.0-debian.yaml", "deb:debian/pool/main/p/pytorch/pytorch_2.6.0+dfsg.orig.tar.xz",
	"deb:debian/../pytorch_2.6.0+dfsg.orig.tar.xz", "not a URL to fetch it from")
REFUSED(source_deb_archive, "releases/2.6.0-debian.yaml",
	"deb:debian/pool/main/p/pytorch/pytorch_2.6.0+dfsg.orig.tar.xz", "deb:Debian=x/pytorch_2.6.0+dfsg.orig.tar.xz",
	"not a URL to fetch it from")
REFUSED(source_apt, "releases/2.6.0-debian.yaml", "deb:debian/pool/main/p/pytorch/pytorch_2.6.0+dfsg.orig.tar.xz",
	"apt:trixie/main/pytorch=2.6.0+dfsg-7", "not a URL to fetch it from")
REFUSED(source_into, "releases/2.6.0-debian.yaml", "keep_top: true", "into: ../else",
	"'../else' leaves the source tree")
REFUSED(series_outside, "releases/2.6.0-debian.yaml", "series: debian/patches/series", "series: /etc/series",
	"leaves the source tree")
REFUSED(skip_without_series, "releases/2.6.0-debian.yaml", "  series: debian/patches/series\n", "",
	"'skip_patches' without a 'series'")
REFUSED(prepare_outside, "releases/2.6.0-debian.yaml", "dir: torch/csrc/jit/serialization", "dir: ../..",
	"leaves the source tree")
REFUSED(prepare_without_command, "releases/2.6.0-debian.yaml",
	"argv: [flatc, --cpp, --gen-mutable, --scoped-enums, mobile_bytecode.fbs]", "argv: []", "argv")
REFUSED(python_requirement, "releases/2.9.1.yaml", "setuptools>=70.1.0,<80.0", "setuptools 70", "python_requires")
REFUSED(install_requirement, "releases/2.6.0-debian.yaml", "sympy>=1.13.1", "@sympy", "install_requires")
REFUSED(toolkit_compress, "cuda.yaml", "compress: size", "compress: small", "small")
REFUSED(cuda_requirement, "releases/2.10.0.yaml", "triton==3.6.0", "@triton", "not a requirement: '@triton'")
REFUSED(cuda_requirement_range, "releases/2.10.0.yaml", "cuda: \"<13\"", "cuda: \"13\"", "cuda")
REFUSED(cuda_requirement_platform, "releases/2.10.0.yaml", "platforms: [x86_64-linux]", "platforms: [x86]", "x86")
REFUSED(requirements_file, "releases/2.9.1.yaml", "requirements: shared.txt", "requirements: other.txt",
	"no file 'other.txt'")
REFUSED(requirements_outside, "releases/2.9.1.yaml", "requirements: shared.txt", "requirements: ../isa.yaml",
	"not a safe file name")
REFUSED(retired_setting, "releases/2.6.0-debian.yaml", "name: ONNX_NAMESPACE", "name: USE_CUBLAS",
	"has no 'USE_CUBLAS'")
REFUSED(setting_of_another_package, "releases/2.6.0-debian.yaml", "{name: ONNX_NAMESPACE,",
	"{name: ONNX_NAMESPACE, package: torchaudio,", "is a setting of torchaudio inside pytorch")
REFUSED(extra_flag, "releases/2.6.0-debian.yaml", "flags: [-Wno-dangling-reference]", "flags: [Wno]",
	"not a compiler flag")
REFUSED(epoch_too_old, "releases/2.9.1.yaml", "source_date_epoch: 1762905600", "source_date_epoch: 12", "before 1980")
REFUSED(epoch_no_number, "releases/2.9.1.yaml", "source_date_epoch: 1762905600", "source_date_epoch: today",
	"source_date_epoch")
REFUSED(memory_size, "releases/2.6.0-debian.yaml", "compile: 1500M", "compile: much",
	"'compile': not a size: 'much'")
REFUSED(memory_too_small, "releases/2.6.0-debian.yaml", "link: 2300M", "link: 2300",
	"'2300' of 'link' is less than 1M")
REFUSED(memory_of_a_unit, "releases/2.6.0-debian.yaml", "bytes: 1800M", "bytes: -1",
	"'bytes': not a size: '-1'")
REFUSED(memory_of_every_unit, "releases/2.6.0-debian.yaml", "units: \"*/RegisterCPU.cpp*\"", "units: \"*\"",
	"'*' of 'units' fits every unit")
REFUSED(memory_key, "releases/2.6.0-debian.yaml", "    compile: 1500M", "    compiler: 1100M", "compiler")
REFUSED(disk_size, "releases/2.9.1.yaml", "disk: 20G", "disk: twenty", "'disk': not a size: 'twenty'")
/* clang-format on */

static void digests(const char *file, const char *from, const char *to, bool equal)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *before = shipped(&a), *after = NULL;
	struct err e = {0};

	assert_ok(tables_load(altered(file, from, to), &a, &after, &e), &e);
	assert_int_equal(
		strcmp(before->dispatch_digest, after->dispatch_digest) == 0 &&
			strcmp(before->extensions_digest, after->extensions_digest) == 0 &&
			strcmp(before->manylinux_digest, after->manylinux_digest) == 0 &&
			strcmp(before->threads_digest, after->threads_digest) == 0 &&
			strcmp(before->cuda_libraries_digest, after->cuda_libraries_digest) == 0,
		equal);
}

static void a_changed_rule_changes_the_digest(void **state)
{
	(void)state;
	digests("dispatch.yaml", "[avx2, fma, f16c]", "[avx2, fma]", false);
	digests("dispatch.yaml", "carries: true", "carries: false", false);
	digests("extensions.yaml", "sets: [F16C]", "sets: []", false);
	digests("manylinux.yaml", "  - {name: libGL.so.1}\n", "", false);
	digests("threads.yaml", "wants: [pthread_create]", "wants: [thrd_create]", false);
	digests("cuda.yaml", "libcuda.so.1", "libcuda.so.2", false);
	digests("cuda.yaml", "dir: cublas/lib", "dir: cublas/lib64", false);
}

static void what_is_for_people_does_not(void **state)
{
	(void)state;
	digests("dispatch.yaml", "families:", "families: # all of them", true);
	digests("dispatch.yaml", "ATen's AVX2 kernels", "the AVX2 kernels of ATen", true);
	digests("threads.yaml", "instead: \"take its", "instead: \"use its", true);
	digests("cuda.yaml", "gcc_max: ", "gcc_max:  ", true);
	digests("isa.yaml", "Haswell (2013) and newer", "Haswell and later", true);
}

static void a_missing_table_is_named(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = NULL;
	struct err e = {0};

	(void)state;
	const char *dir = altered("isa.yaml", "isas", "isas");
	assert_ok(fs_remove(TRUSTED, test_path("profiles/blas.yaml"), &e), &e);
	assert_err(tables_load(dir, &a, &t, &e), &e, ERR_CONFIG, "blas.yaml");
	assert_contains(e.hint, "--profiles");
}

static void no_release_is_an_error(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = NULL;
	struct err e = {0};

	(void)state;
	const char *dir = altered("isa.yaml", "isas", "isas");
	assert_ok(fs_remove(TRUSTED, test_path("profiles/releases"), &e), &e);
	assert_ok(fs_mkdirs(TRUSTED, test_path("profiles/releases"), &e), &e);
	assert_err(tables_load(dir, &a, &t, &e), &e, ERR_CONFIG, "no release in");
}

static void other_files_are_no_releases(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = NULL;
	struct err e = {0};

	(void)state;
	const char *dir = altered("isa.yaml", "isas", "isas");
	test_write(test_path("profiles/releases/2.9.1.yaml~"), "not yaml: [");
	test_write(test_path("profiles/releases/.2.9.1.yaml"), "not yaml: [");
	assert_ok(tables_load(dir, &a, &t, &e), &e);
	assert_int_equal(t->releases_count, 11);
}

static void the_line_of_the_row_is_named(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = NULL;
	struct err e = {0};

	(void)state;
	const char *dir = altered("releases/2.9.1.yaml", "sha256: 590492c9", "sha256: 59049");
	char *text = test_read(test_path("profiles/releases/2.9.1.yaml"));
	unsigned line = 1;
	for (const char *c = text; c < strstr(text, "audio-2.9.1.tar.gz"); c++)
		line += *c == '\n';
	char place[64];
	snprintf(place, sizeof(place), "2.9.1.yaml:%u: ", line);
	assert_err(tables_load(dir, &a, &t, &e), &e, ERR_CONFIG, place);
	free(text);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_teardown(unknown_key, test_teardown),
	cmocka_unit_test_teardown(missing_key, test_teardown),
	cmocka_unit_test_teardown(wrong_type, test_teardown),
	cmocka_unit_test_teardown(no_yaml, test_teardown),
	cmocka_unit_test_teardown(two_instruction_sets, test_teardown),
	cmocka_unit_test_teardown(alias_of_another, test_teardown),
	cmocka_unit_test_teardown(alias_of_another_gpu, test_teardown),
	cmocka_unit_test_teardown(instruction_set_name, test_teardown),
	cmocka_unit_test_teardown(instruction_set_platform, test_teardown),
	cmocka_unit_test_teardown(instruction_set_flag, test_teardown),
	cmocka_unit_test_teardown(instruction_set_flag_shell, test_teardown),
	cmocka_unit_test_teardown(compiler_minimum, test_teardown),
	cmocka_unit_test_teardown(setting_twice, test_teardown),
	cmocka_unit_test_teardown(setting_name, test_teardown),
	cmocka_unit_test_teardown(setting_value, test_teardown),
	cmocka_unit_test_teardown(setting_spelling, test_teardown),
	cmocka_unit_test_teardown(truth_word, test_teardown),
	cmocka_unit_test_teardown(toggle_without_a_name, test_teardown),
	cmocka_unit_test_teardown(toggle_with_both_names, test_teardown),
	cmocka_unit_test_teardown(toggle_value_twice, test_teardown),
	cmocka_unit_test_teardown(toggle_needs_nothing_there_is, test_teardown),
	cmocka_unit_test_teardown(toggle_needs_itself, test_teardown),
	cmocka_unit_test_teardown(a_name_of_names_twice, test_teardown),
	cmocka_unit_test_teardown(setting_without_a_name, test_teardown),
	cmocka_unit_test_teardown(setting_with_both_names, test_teardown),
	cmocka_unit_test_teardown(correction_twice, test_teardown),
	cmocka_unit_test_teardown(correction_gpu, test_teardown),
	cmocka_unit_test_teardown(correction_isa, test_teardown),
	cmocka_unit_test_teardown(correction_kind, test_teardown),
	cmocka_unit_test_teardown(correction_package, test_teardown),
	cmocka_unit_test_teardown(two_gpus, test_teardown),
	cmocka_unit_test_teardown(capability, test_teardown),
	cmocka_unit_test_teardown(sm_letters, test_teardown),
	cmocka_unit_test_teardown(gpu_ends_before_it_begins, test_teardown),
	cmocka_unit_test_teardown(gpu_tegra_without_sbsa, test_teardown),
	cmocka_unit_test_teardown(release_label, test_teardown),
	cmocka_unit_test_teardown(gpu_suffix, test_teardown),
	cmocka_unit_test_teardown(gpu_suffix_twice, test_teardown),
	cmocka_unit_test_teardown(gpu_suffix_too_old, test_teardown),
	cmocka_unit_test_teardown(gpu_platform, test_teardown),
	cmocka_unit_test_teardown(two_toolkits, test_teardown),
	cmocka_unit_test_teardown(toolkit_version, test_teardown),
	cmocka_unit_test_teardown(toolkit_layout, test_teardown),
	cmocka_unit_test_teardown(library_older_dir, test_teardown),
	cmocka_unit_test_teardown(library_below, test_teardown),
	cmocka_unit_test_teardown(library_dir, test_teardown),
	cmocka_unit_test_teardown(library_part, test_teardown),
	cmocka_unit_test_teardown(library_needs, test_teardown),
	cmocka_unit_test_teardown(library_twice, test_teardown),
	cmocka_unit_test_teardown(part_toggle, test_teardown),
	cmocka_unit_test_teardown(part_header, test_teardown),
	cmocka_unit_test_teardown(part_twice, test_teardown),
	cmocka_unit_test_teardown(gpu_extra, test_teardown),
	cmocka_unit_test_teardown(gpu_extra_letter, test_teardown),
	cmocka_unit_test_teardown(two_layouts, test_teardown),
	cmocka_unit_test_teardown(need_of_two_things, test_teardown),
	cmocka_unit_test_teardown(need_of_the_host, test_teardown),
	cmocka_unit_test_teardown(need_of_a_package, test_teardown),
	cmocka_unit_test_teardown(two_pools, test_teardown),
	cmocka_unit_test_teardown(pool_of_nothing, test_teardown),
	cmocka_unit_test_teardown(pool_that_only_wants, test_teardown),
	cmocka_unit_test_teardown(two_blas, test_teardown),
	cmocka_unit_test_teardown(taken_of_nothing, test_teardown),
	cmocka_unit_test_teardown(taken_of_two_things, test_teardown),
	cmocka_unit_test_teardown(setting_kind, test_teardown),
	cmocka_unit_test_teardown(blas_setting, test_teardown),
	cmocka_unit_test_teardown(blas_platform, test_teardown),
	cmocka_unit_test_teardown(toggle_twice, test_teardown),
	cmocka_unit_test_teardown(toggle_overlap, test_teardown),
	cmocka_unit_test_teardown(toggle_range, test_teardown),
	cmocka_unit_test_teardown(toggle_value, test_teardown),
	cmocka_unit_test_teardown(toggle_value_spelling, test_teardown),
	cmocka_unit_test_teardown(toggle_package, test_teardown),
	cmocka_unit_test_teardown(retired_but_alive, test_teardown),
	cmocka_unit_test_teardown(digest_short, test_teardown),
	cmocka_unit_test_teardown(digest_missing, test_teardown),
	cmocka_unit_test_teardown(digest_of_unproven, test_teardown),
	cmocka_unit_test_teardown(digest_capitals, test_teardown),
	cmocka_unit_test_teardown(toolkit_without_row, test_teardown),
	cmocka_unit_test_teardown(release_toolkit_twice, test_teardown),
	cmocka_unit_test_teardown(python_spelling, test_teardown),
	cmocka_unit_test_teardown(python_twice, test_teardown),
	cmocka_unit_test_teardown(release_name, test_teardown),
	cmocka_unit_test_teardown(release_file, test_teardown),
	cmocka_unit_test_teardown(version_range, test_teardown),
	cmocka_unit_test_teardown(backend, test_teardown),
	cmocka_unit_test_teardown(source_name, test_teardown),
	cmocka_unit_test_teardown(source_name_option, test_teardown),
	cmocka_unit_test_teardown(source_name_hidden, test_teardown),
	cmocka_unit_test_teardown(gpu_beside_unknown, test_teardown),
	cmocka_unit_test_teardown(gpu_gone, test_teardown),
	cmocka_unit_test_teardown(gpu_suffix_torch, test_teardown),
	cmocka_unit_test_teardown(source_twice, test_teardown),
	cmocka_unit_test_teardown(source_scheme, test_teardown),
	cmocka_unit_test_teardown(source_deb, test_teardown),
	cmocka_unit_test_teardown(source_deb_archive, test_teardown),
	cmocka_unit_test_teardown(source_apt, test_teardown),
	cmocka_unit_test_teardown(source_into, test_teardown),
	cmocka_unit_test_teardown(series_outside, test_teardown),
	cmocka_unit_test_teardown(skip_without_series, test_teardown),
	cmocka_unit_test_teardown(prepare_outside, test_teardown),
	cmocka_unit_test_teardown(prepare_without_command, test_teardown),
	cmocka_unit_test_teardown(python_requirement, test_teardown),
	cmocka_unit_test_teardown(install_requirement, test_teardown),
	cmocka_unit_test_teardown(toolkit_compress, test_teardown),
	cmocka_unit_test_teardown(cuda_requirement, test_teardown),
	cmocka_unit_test_teardown(cuda_requirement_range, test_teardown),
	cmocka_unit_test_teardown(cuda_requirement_platform, test_teardown),
	cmocka_unit_test_teardown(requirements_file, test_teardown),
	cmocka_unit_test_teardown(requirements_outside, test_teardown),
	cmocka_unit_test_teardown(retired_setting, test_teardown),
	cmocka_unit_test_teardown(setting_of_another_package, test_teardown),
	cmocka_unit_test_teardown(extra_flag, test_teardown),
	cmocka_unit_test_teardown(epoch_too_old, test_teardown),
	cmocka_unit_test_teardown(epoch_no_number, test_teardown),
	cmocka_unit_test_teardown(memory_size, test_teardown),
	cmocka_unit_test_teardown(memory_too_small, test_teardown),
	cmocka_unit_test_teardown(memory_of_a_unit, test_teardown),
	cmocka_unit_test_teardown(memory_of_every_unit, test_teardown),
	cmocka_unit_test_teardown(memory_key, test_teardown),
	cmocka_unit_test_teardown(disk_size, test_teardown),
	cmocka_unit_test_teardown(a_changed_rule_changes_the_digest, test_teardown),
	cmocka_unit_test_teardown(what_is_for_people_does_not, test_teardown),
	cmocka_unit_test_teardown(a_missing_table_is_named, test_teardown),
	cmocka_unit_test_teardown(no_release_is_an_error, test_teardown),
	cmocka_unit_test_teardown(other_files_are_no_releases, test_teardown),
	cmocka_unit_test_teardown(the_line_of_the_row_is_named, test_teardown),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
