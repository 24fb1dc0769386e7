#include "support.h"

#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "compile.h"
#include "core/plan/torch_fits.h"
#include "core/zip/zip.h"
#include "craft_fatbin.h"

#define NAME "torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl"

static const struct package_row row = {.name = "tiny"};

static struct plan plan_for(const char *cuda)
{
	return (struct plan){.platform = "x86_64-linux", .cuda = cuda, .package_row = &row};
}

/* A wheel of that name, with what it says of its CUDA and its ABI. */
static const char *make(const char *name, const char *version_py, const char *config)
{
	struct zip_writer *z;
	struct err e = {0};
	uint8_t digest[32];

	test_dir();
	const char *path = test_path("%s", name);
	assert_ok(zip_create(&(struct zip_new){.path = path, .epoch = 0, .threads = 1, .level = 6},
			     &z, &e),
		  &e);
	if (version_py)
		assert_ok(zip_add_data(z, "torch/version.py", version_py, strlen(version_py), &e),
			  &e);
	if (config)
		assert_ok(zip_add_data(z, "torch/share/cmake/Torch/TorchConfig.cmake", config,
				       strlen(config), &e),
			  &e);
	assert_ok(zip_add_data(z, "torch/__init__.py", "", 0, &e), &e);
	assert_ok(zip_finish(z, digest, &e), &e);
	return path;
}

static int ask(const char *wheel, const struct plan *p, const char *glibc, struct arena *a,
	       struct err *e)
{
	const struct torch_asked q = {.plan = p, .wheel = wheel, .glibc = glibc};
	return torch_fits(&q, TORCH_WHEEL, a, e);
}

static int ask_gpus(const char *wheel, const struct plan *p, struct arena *a, struct err *e)
{
	const struct torch_asked q = {.plan = p, .wheel = wheel};
	return torch_fits(&q, TORCH_GPUS, a, e);
}

static int ask_root(const char *unpacked, const struct plan *p, const struct root *root,
		    struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct torch_asked q = {.plan = p, .unpacked = unpacked, .root = root};
	return torch_fits(&q, TORCH_ROOT, &a, e);
}

static void fits(const char *wheel, const char *cuda, const char *glibc, const char *error)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct plan p = plan_for(cuda);

	if (error)
		assert_err(ask(wheel, &p, glibc, &a, &e), &e, ERR_POLICY, error);
	else
		assert_ok(ask(wheel, &p, glibc, &a, &e), &e);
	assert_true(!error || *e.hint);
}

/* Code for the CPU against a torch for CUDA: only of a
 * source that is known to have no other, or to leave it out. */
static void test_cpu_build_takes_cuda_torch_without_gpu_code(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct table_setting any[] = {{.name = "X", .gpu = ""}},
			     cpu[] = {{.name = "FORCE_ONLY_CPU", .gpu = "cpu"}};
	const struct {
		struct package_row row;
		bool fits;
	} cases[] = {
		{{.name = "tiny", .gpu_code = ""}, true},
		{{.name = "tiny", .gpu_code = "csrc/a.cu"}, false},
		{{.name = "tiny"}, false},
		{{.name = "tiny", .settings = any, .settings_count = 1}, false},
		{{.name = "tiny", .gpu_code = "csrc/a.cu", .settings = cpu, .settings_count = 1},
		 true},
	};
	const char *wheel = make(NAME, "cuda: Optional[str] = '13.0'\n", NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan p = plan_for(NULL);
		struct err e = {0};
		p.package = "tiny";
		p.package_row = &cases[i].row;
		if (cases[i].fits) {
			assert_ok(ask(wheel, &p, "2.41", &a, &e), &e);
			continue;
		}

		assert_err(ask(wheel, &p, "2.41", &a, &e), &e, ERR_POLICY,
			   "the build is for the CPU");
		assert_contains(e.hint, "--cuda 13.0");
		if (cases[i].row.gpu_code)
			assert_contains(e.hint, "csrc/a.cu");
		p.cuda = "12.8";
		assert_err(ask(wheel, &p, "2.41", &a, &e), &e, ERR_POLICY, "is for CUDA 12.8");
	}
}

static void its_cuda_is_the_builds(void **state)
{
	(void)state;
	const char *wheel = make(NAME, "cuda: Optional[str] = '13.0'\n", NULL);
	fits(wheel, "13.0", "2.41", NULL);
	fits(wheel, "13.1", "2.41", "'" NAME "' is for CUDA 13.0, but the build is for CUDA 13.1");
	fits(wheel, "12.8", "2.41", "is for CUDA 13.0, but the build is for CUDA 12.8");
	/* Its libraries want NVIDIA's, which a world without CUDA does not have. */
	fits(wheel, NULL, "2.41", "is for CUDA 13.0, but the build is for the CPU");
	test_teardown(state);
	wheel = make(NAME, "cuda: Optional[str] = None\n", NULL);
	fits(wheel, NULL, "2.41", NULL);
	fits(wheel, "13.0", "2.41", "is for the CPU, but the build is for CUDA 13.0");
	test_teardown(state);
	fits(make(NAME, NULL, NULL), "13.0", NULL, NULL);
}

/* As torch/version.py of one release or another writes it. */
static void its_cuda_is_read_as_it_is_written(void **state)
{
	static const struct {
		const char *says, *cuda, *error;
	} all[] = {
		{"__all__ = ['cuda']\n__version__ = '2.6.0+cu118'\ncuda: Optional[str] = "
		 "'11.8'\nhip = None\n",
		 "11.8", NULL},
		{"cuda = '11.8.1'\n", "11.8", NULL},
		{"cuda = \"11.80\"\n", "11.8", "is for CUDA 11.80, but the build is for CUDA 11.8"},
		{"cudart = '11.8'\ncuda: Optional[str]\ncuda = version()\n", "12.4", NULL},
		{"", "12.4", NULL}};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		fits(make(NAME, all[i].says, NULL), all[i].cuda, NULL, all[i].error);
		test_teardown(state);
	}
}

static void its_platform_and_glibc_are_the_roots(void **state)
{
	(void)state;
	fits(make("torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl", NULL, NULL), NULL, "2.41",
	     "is for another platform: 'manylinux_2_28_aarch64', but the build is for "
	     "x86_64-linux");
	test_teardown(state);
	const char *wheel = make("torch-2.6.0-cp312-cp312-manylinux_2_39_x86_64.whl", NULL, NULL);
	fits(wheel, NULL, "2.36", "needs a newer glibc than the 2.36 of the root");
	fits(wheel, NULL, "2.41", NULL);
	fits(wheel, NULL, NULL, NULL);
}

static void its_cxx_library_has_the_new_abi(void **state)
{
	(void)state;
	fits(make(NAME, NULL, "set(TORCH_CXX_FLAGS \"-D_GLIBCXX_USE_CXX11_ABI=0\")\n"), NULL, NULL,
	     "uses the old libstdc++ ABI");
	test_teardown(state);
	fits(make(NAME, NULL, "set(TORCH_CXX_FLAGS \"-D_GLIBCXX_USE_CXX11_ABI=1\")\n"), NULL, NULL,
	     NULL);
}

static void a_damaged_wheel_is_told(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct plan p = plan_for(NULL);
	test_dir();
	test_write(test_path(NAME), "PK no zip");
	assert_err(ask(test_path(NAME), &p, NULL, &a, &e), &e, ERR_INTEGRITY, NAME);
	const char *cuda = "untouched";
	assert_err(torch_cuda(test_path(NAME), &a, &cuda, &e), &e, ERR_INTEGRITY, NAME);
	assert_string_equal(cuda, "untouched");
}

static void packages_of_a_release_are_left_alone(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct package_row none = {.name = NULL};
	struct plan p = {.platform = "x86_64-linux", .package_row = &none};
	const char *wheel =
		make("torch-2.6.0-cp312-cp312-linux_aarch64.whl", "cuda = None\n", NULL);
	assert_ok(ask(wheel, &p, NULL, &a, &e), &e);
	assert_ok(ask_gpus("/nowhere/" NAME, &p, &a, &e), &e);
	/* but for what they are compiled for */
	p.cuda = "12.8";
	wheel = make("torch-2.6.0-cp312-cp312-linux_aarch64.whl", "cuda = '12.8'\n", NULL);
	assert_ok(ask(wheel, &p, NULL, &a, &e), &e);
	p.cuda = "13.0";
	assert_err(ask(wheel, &p, NULL, &a, &e), &e, ERR_POLICY,
		   "is for CUDA 12.8, but the build is for CUDA 13.0");
	assert_non_null(strstr(e.hint, "--torch"));
	/* torch imports CUDA's libraries, which a world for the CPU does not have */
	p.cuda = NULL;
	assert_err(ask(wheel, &p, NULL, &a, &e), &e, ERR_POLICY, "the build is for the CPU");
	assert_contains(e.hint, "--cuda 12.8");
}

static void gpu(const char *wheel, const char *target, const char *error)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct plan p = plan_for("13.0");

	strlist_ref(&p.gpu, &a, target);
	if (error)
		assert_err(ask_gpus(wheel, &p, &a, &e), &e, ERR_POLICY, error);
	else
		assert_ok(ask_gpus(wheel, &p, &a, &e), &e);
}

/* A wheel with a library that has this code. */
static const char *make_gpu(const struct buf *entries)
{
	AUTO_BUF struct buf file = {0};
	struct zip_writer *z;
	struct err e = {0};
	uint8_t digest[32];

	test_dir();
	const char *path = test_path(NAME);
	craft_container(&file, entries);
	assert_ok(zip_create(&(struct zip_new){.path = path, .epoch = 0, .threads = 1, .level = 6},
			     &z, &e),
		  &e);
	assert_ok(zip_add_data(z, "torch/lib/libtorch_cuda.so", file.data, file.len, &e), &e);
	assert_ok(zip_finish(z, digest, &e), &e);
	return path;
}

static void its_gpu_code_runs_on_the_targets(void **state)
{
	(void)state;
	AUTO_BUF struct buf entries = {0};
	gpu(make(NAME, NULL, NULL), "9.0", NULL); /* nothing is known without the library */
	test_teardown(state);
	craft_cubin_entry(&entries, 80, 0);
	craft_cubin_entry(&entries, 90, 0);
	const char *wheel = make_gpu(&entries);
	gpu(wheel, "9.0", NULL);
	gpu(wheel, "9.0a", NULL);
	gpu(wheel, "8.6", NULL);
	gpu(wheel, "7.5", "the torch has no code that runs on 7.5: it has sm80, sm90");
	gpu(wheel, "12.0", "the torch has no code that runs on 12.0");
	test_teardown(state);
	craft_ptx_entry(&entries, 90);
	gpu(make_gpu(&entries), "12.0+PTX", NULL);
}

/* Where the root's loader looks, or in the toolkit; what torch brings itself is not asked for. */
static void the_root_has_what_it_loads(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const char *pattern[] = {"libcudnn.so.*"}, *name[] = {"libcusparseLt.so.0"};
	struct cuda_library_row rows[] = {
		{.package = "nvidia-cudnn-cu13", .names = pattern, .names_count = 1},
		{.package = "nvidia-cusparselt-cu13", .names = name, .names_count = 1}};
	struct toolkit_row line = {.libraries = rows, .libraries_count = 2};
	struct toolkit kit = {.version = "13.0"};
	struct plan p = plan_for("13.0");
	test_dir();
	compile("lib/libcudnn.so.9", "int a(void) { return 1; }",
		"-shared -fPIC -Wl,-soname,libcudnn.so.9");
	compile("lib/libcusparseLt.so.0", "int b(void) { return 1; }",
		"-shared -fPIC -Wl,-soname,libcusparseLt.so.0");
	compile("lib/libown.so", "int c(void) { return 1; }",
		"-shared -fPIC -Wl,-soname,libown.so");
	compile("torch/lib/libtorch_cuda.so",
		"int a(void), b(void), c(void); int d(void) { return a() + b() + c(); }",
		"-shared -fPIC lib/libcudnn.so.9 lib/libcusparseLt.so.0 lib/libown.so");
	const char *top = arena_strdup(&a, test_path("."));
	struct root root = {.dir = path_join(&a, top, "root"), .id = "debian 13"};
	must("mkdir -p root/usr/lib root/kit/lib64 && mv lib/libcudnn.so.9 root/usr/lib");
	assert_ok(ask_root(top, &p, &root, &e), &e); /* not for CUDA */
	p.torch_toolkit = &kit;
	p.torch_toolkit_row = &line;
	assert_err(ask_root(top, &p, &root, &e), &e, ERR_SYSTEM,
		   "which lacks libcusparseLt.so.0 (nvidia-cusparselt-cu13)");
	assert_non_null(strstr(e.hint, "without --root"));
	assert_null(strstr(e.msg, "cudnn"));
	must("mv lib/libcusparseLt.so.0 root/kit/lib64");
	strlist_ref(&kit.library_dirs, &a, "/kit/lib64");
	assert_ok(ask_root(top, &p, &root, &e), &e);
	/* of a build for the CPU also without a toolkit in the root */
	p.cuda = NULL;
	p.torch_toolkit = NULL;
	assert_err(ask_root(top, &p, &root, &e), &e, ERR_SYSTEM, "which lacks libcusparseLt.so.0");
	assert_ok(ask_root(NULL, &p, &root, &e), &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_cpu_build_takes_cuda_torch_without_gpu_code,
					  test_teardown),
		cmocka_unit_test_teardown(its_cuda_is_the_builds, test_teardown),
		cmocka_unit_test(its_cuda_is_read_as_it_is_written),
		cmocka_unit_test_teardown(its_platform_and_glibc_are_the_roots, test_teardown),
		cmocka_unit_test_teardown(its_cxx_library_has_the_new_abi, test_teardown),
		cmocka_unit_test_teardown(a_damaged_wheel_is_told, test_teardown),
		cmocka_unit_test_teardown(packages_of_a_release_are_left_alone, test_teardown),
		cmocka_unit_test_teardown(the_root_has_what_it_loads, test_teardown),
		cmocka_unit_test_teardown(its_gpu_code_runs_on_the_targets, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
