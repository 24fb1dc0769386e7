#include "support.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/elf/elf.h"
#include "craft_zip.h"
#include "step/world/toolkit_tree.h"

static struct arena arena;
static struct err err;
static const struct toolkit_rules *rules;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	assert_ok(toolkit_rules_load(PROFILES_DIR, &arena, &rules, &err), &err);
	assert_ok(fs_mkdirs(TRUSTED, test_path("tree"), &err), &err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static const char *here(const char *name)
{
	return arena_strdup(&arena, test_path("%s", name));
}

static struct toolkit_file wheel(const char *name, const char *version,
				 const struct craft_entry *entries, size_t count)
{
	struct craft_zip z = {0};
	const char *file = arena_printf(&arena, "%s-%s-py3-none-any.whl", name, version);

	craft_zip(&z, entries, count);
	test_write_bytes(here(file), z.bytes.data, z.bytes.len);
	buf_release(&z.bytes);
	return (struct toolkit_file){
		.path = here(file), .name = name, .version = version, .file = file};
}

static int make(const struct toolkit_file *files, size_t count)
{
	return toolkit_tree_make(rules, files, count, "x86_64-linux", here("tree"), test_run(),
				 &err);
}

static void has(const char *path, const char *text, mode_t mode)
{
	struct stat st;
	const char *full = here(arena_printf(&arena, "tree/%s", path));
	AUTO_FREE char *got = test_read(full);

	assert_int_equal(lstat(full, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_string_equal(got, text);
}

static void is_link(const char *path, const char *to)
{
	char got[256];
	ssize_t n = readlink(here(arena_printf(&arena, "tree/%s", path)), got, sizeof(got) - 1);

	assert_true(n > 0);
	got[n] = '\0';
	assert_string_equal(got, to);
}

static bool lacks(const char *path)
{
	struct stat st;
	return lstat(here(arena_printf(&arena, "tree/%s", path)), &st) < 0;
}

static const struct craft_entry nvcc[] = {
	{.name = "nvidia/cu13/bin/nvcc", .data = "#!", .mode = S_IFREG | 0744},
	{.name = "nvidia/cu13/bin/nvcc.profile", .data = "TOP", .mode = S_IFREG | 0664},
	{.name = "nvidia/cu13/include/crt/host_config.h", .data = "h", .mode = S_IFREG | 0600},
	{.name = "nvidia/__init__.py", .data = "", .mode = S_IFREG | 0644},
	{.name = "nvidia_cuda_nvcc-13.0.88.dist-info/licenses/License.txt", .data = "EULA"},
	{.name = "nvidia_cuda_nvcc-13.0.88.dist-info/RECORD", .data = "r"},
};

static const struct craft_entry runtime[] = {
	{.name = "nvidia/cu13/lib/libcudart.so.13", .data = "elf", .mode = S_IFREG | 04755},
	{.name = "nvidia/cu13/lib/libcudart_static.a", .data = "ar"},
	{.name = "nvidia/cu13/lib/libcheckpoint.so", .data = "so"},
	{.name = "nvidia/cu13/.metadata/.sizes.txt", .data = "1"},
	{.name = "nvidia/cu13/lib/libnvrtc-builtins.so.13.0", .data = "b"},
	{.name = "nvidia/cudnn/include/cudnn.h", .data = "d"},
	{.name = "nvidia/cusparselt/LICENSE.txt", .data = "L"},
};

static void wheels_become_one_toolkit(void **state)
{
	(void)state;
	const struct craft_entry none[] = {
		{.name = "cuda_toolkit-13.0.2.dist-info/METADATA", .data = "m"}};
	const struct toolkit_file files[] = {
		wheel("nvidia-cuda-nvcc", "13.0.88", nvcc, ARRAY_LEN(nvcc)),
		wheel("nvidia-cuda-runtime", "13.0.96", runtime, ARRAY_LEN(runtime)),
		wheel("cuda-toolkit", "13.0.2", none, 1),
	};
	umask(077);
	int status = make(files, ARRAY_LEN(files));
	umask(022);
	assert_ok(status, &err);
	has("bin/nvcc", "#!", 0755);
	has("bin/nvcc.profile", "TOP", 0644);
	has("targets/x86_64-linux/include/crt/host_config.h", "h", 0644);
	has("targets/x86_64-linux/lib/libcudart.so.13", "elf", 0755);
	has("include/cudnn.h", "d", 0644);
	has("lib64/libcudart_static.a", "ar", 0644);
	has("lib/libcudart.so.13", "elf", 0755);
	has("extras/CUPTI/lib64/libcheckpoint.so", "so", 0644);
	has("share/doc/nvidia-cuda-nvcc/License.txt", "EULA", 0644);
	has("share/doc/nvidia-cuda-runtime/LICENSE.txt", "L", 0644);
	is_link("include", "targets/x86_64-linux/include");
	is_link("targets/x86_64-linux/lib/libcudart.so", "libcudart.so.13");
	is_link("targets/x86_64-linux/lib/libnvrtc-builtins.so", "libnvrtc-builtins.so.13.0");
	assert_true(lacks(".metadata") && lacks("__init__.py") && lacks("share/doc/cuda-toolkit"));
	AUTO_FREE char *text = test_read(here("tree/version.json"));
	json_t *versions = json_loads(text, 0, NULL);
	const char *cuda = NULL, *part = NULL;
	assert_int_equal(json_unpack(versions, "{s:{s:s}, s:{s:s}}", "cuda", "version", &cuda,
				     "nvidia-cuda-nvcc", "version", &part),
			 0);
	assert_string_equal(cuda, "13.0.2");
	assert_string_equal(part, "13.0.88");
	json_decref(versions);
}

static void the_target_follows_the_platform(void **state)
{
	(void)state;
	struct toolkit_file f =
		wheel("nvidia-cuda-runtime", "13.0.96", runtime, ARRAY_LEN(runtime));
	assert_int_equal(
		toolkit_tree_make(rules, &f, 1, "s390x-linux", here("tree"), test_run(), &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_ok(toolkit_tree_make(rules, &f, 1, "aarch64-linux", here("tree"), test_run(), &err),
		  &err);
	has("targets/sbsa-linux/lib/libcudart.so.13", "elf", 0755);
	is_link("lib64", "targets/sbsa-linux/lib");
}

static void refuses(const struct toolkit_file *files, size_t count, const char *text)
{
	assert_int_equal(make(files, count), -1);
	assert_int_equal(err.kind, ERR_INTEGRITY);
	assert_contains(err.msg, text);
	assert_contains(err.msg, files[count - 1].file);
}

static void two_components_may_not_have_one_path(void **state)
{
	(void)state;
	const struct craft_entry again[] = {
		{.name = "nvidia/cudnn/lib/libcudart.so.13", .data = "other"}};
	const struct toolkit_file files[] = {
		wheel("nvidia-cuda-runtime", "13.0.96", runtime, ARRAY_LEN(runtime)),
		wheel("nvidia-cudnn-cu13", "9.19.0.56", again, 1)};
	refuses(files, 2,
		"'targets/x86_64-linux/lib/libcudart.so.13', which another component has as well");
}

/* The wheel of the runtime with headers of the driver's API; their text may be NULL: not there. */
static struct toolkit_file headers(const char *cuda, const char *gl)
{
	struct craft_entry all[3] = {{.name = "nvidia/cu13/lib/libcudart.so.13", .data = "elf"}};
	size_t n = 1;

	if (cuda)
		all[n++] = (struct craft_entry){.name = "nvidia/cu13/include/cuda.h", .data = cuda};
	if (gl)
		all[n++] = (struct craft_entry){.name = "nvidia/cu13/include/cudaGL.h", .data = gl};
	return wheel("nvidia-cuda-runtime", "13.0.96", all, n);
}

static void new_tree(void)
{
	assert_ok(fs_remove(TRUSTED, here("tree"), &err), &err);
	assert_ok(fs_mkdirs(TRUSTED, here("tree"), &err), &err);
}

static void the_drivers_stub_is_made_of_the_headers(void **state)
{
	static const struct {
		const char *platform, *path;
		unsigned machine;
	} all[] = {{"x86_64-linux", "tree/targets/x86_64-linux/lib/stubs/libcuda.so", 62},
		   {"aarch64-linux", "tree/targets/sbsa-linux/lib/stubs/libcuda.so", 183}};
	static const char *const names[] = {"cuGLInit", "cuInit", "cuMemFree", "cuMemFree_v2",
					    "cuMemFree_v2_ptsz"};
	const struct toolkit_file f =
		headers("#define cuMemFree __CUDA_API_PTSZ(cuMemFree_v2)\nCUresult CUDAAPI "
			"cuMemFree(CUdeviceptr p);\n"
			"CUresult CUDAAPI cuInit(unsigned int Flags);\n",
			"CUresult CUDAAPI cuGLInit(void);\nCUresult CUDAAPI "
			"cuWGLGetDevice(CUdevice *d, HGPUNV g);\n");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct elf_info info;
		struct stat st;
		new_tree();
		assert_ok(toolkit_tree_make(rules, &f, 1, all[i].platform, here("tree"), test_run(),
					    &err),
			  &err);
		assert_ok(elf_read_all(here(all[i].path), &arena, &info, &err), &err);
		assert_int_equal(info.machine, all[i].machine);
		assert_string_equal(info.soname, "libcuda.so.1");
		strlist_sort(&info.defined);
		assert_int_equal(info.defined.count, ARRAY_LEN(names));
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			assert_string_equal(info.defined.items[k], names[k]);
		assert_int_equal(stat(here("tree/lib64/stubs/libcuda.so"), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0644);
	}
}

/* CMake's own module looks for the stub, and a library that calls the driver is
 * linked with it: as little of PyTorch's libcaffe2_nvrtc.so as there can be. */
static void cmake_finds_the_stub_and_linkers_take_it(void **state)
{
	const struct craft_entry parts[] = {
		{.name = "nvidia/cu13/bin/nvcc",
		 .data = "#!/bin/sh\necho V13.0.88\n",
		 .mode = S_IFREG | 0755},
		{.name = "nvidia/cu13/include/cuda_runtime.h",
		 .data = "#define CUDART_VERSION 13000\n"},
		{.name = "nvidia/cu13/include/cuda.h",
		 .data = "#define CUDAAPI\ntypedef int CUresult;\n"
			 "#define cuMemFree __CUDA_API_PTSZ(cuMemFree_v2)\n#define "
			 "__CUDA_API_PTSZ(api) api ## _ptsz\n"
			 "CUresult CUDAAPI cuInit(unsigned int Flags);\nCUresult CUDAAPI "
			 "cuMemFree(void *p);\n"},
		{.name = "nvidia/cu13/lib/libcudart.so.13", .data = "not linked with"},
	};
	const char *const project =
		"cmake_minimum_required(VERSION 3.18)\nproject(proof C)\n"
		"find_package(CUDAToolkit REQUIRED)\nadd_library(nvrtc SHARED nvrtc.c)\n"
		"target_link_options(nvrtc PRIVATE -Wl,-z,defs)\n"
		"target_link_libraries(nvrtc PRIVATE CUDA::cuda_driver)\n";
	const struct toolkit_file f =
		wheel("nvidia-cuda-runtime", "13.0.96", parts, ARRAY_LEN(parts));
	struct elf_info info;

	(void)state;
#ifdef __aarch64__
	const char *platform = "aarch64-linux";
#else
	const char *platform = "x86_64-linux";
#endif
	assert_ok(toolkit_tree_make(rules, &f, 1, platform, here("tree"), test_run(), &err), &err);
	test_write(here("CMakeLists.txt"), project);
	test_write(here("nvrtc.c"), "#include <cuda.h>\nint f(void *p);\n"
				    "int f(void *p) { return cuInit(0) + cuMemFree(p); }\n");
	const char *command =
		arena_printf(&arena,
			     "cd %s && { cmake -G Ninja -S . -B b -DCUDAToolkit_ROOT=%s && "
			     "cmake --build b; } "
			     ">log 2>&1 || { cat log; exit 1; }",
			     test_path("."), here("tree"));
	assert_int_equal(system(command), 0);
	assert_ok(elf_read_all(here("b/libnvrtc.so"), &arena, &info, &err), &err);
	assert_true(strlist_contains(&info.needed, "libcuda.so.1"));
	assert_true(strlist_contains(&info.undefined, "cuMemFree_v2_ptsz"));
	void *stub = dlopen(here("tree/lib64/stubs/libcuda.so"), RTLD_NOW);
	assert_non_null(stub);
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(stub, "cuInit");
	assert_non_null(init);
	assert_int_equal(init(0), 34); /* CUDA_ERROR_STUB_LIBRARY */
	dlclose(stub);
}

static void every_header_of_the_table_counts(void **state)
{
	const char *const names[] = {"cuda.h", "cudaEGL.h", "cudaGL.h", "cudaProfiler.h",
				     "cudaVDPAU.h"};
	struct craft_entry all[ARRAY_LEN(names)];
	struct elf_info info;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		all[i] = (struct craft_entry){
			.name = arena_printf(&arena, "nvidia/cu13/include/%s", names[i]),
			.data = arena_printf(&arena, "CUresult CUDAAPI cuFrom%zu(void);", i)};
	const struct toolkit_file f = wheel("nvidia-cuda-runtime", "13.0.96", all, ARRAY_LEN(all));
	assert_ok(make(&f, 1), &err);
	assert_ok(elf_read_all(here("tree/lib64/stubs/libcuda.so"), &arena, &info, &err), &err);
	assert_int_equal(info.defined.count, ARRAY_LEN(names));
}

static void without_the_header_there_is_no_stub(void **state)
{
	const struct toolkit_file f = headers(NULL, "CUresult CUDAAPI cuGLInit(void);");

	(void)state;
	assert_ok(make(&f, 1), &err);
	assert_true(lacks("lib64/stubs"));
}

static void a_header_that_no_stub_can_be_made_of_is_named(void **state)
{
	AUTO_BUF struct buf text = {0};
	const struct toolkit_file empty = headers("int none;", NULL);

	(void)state;
	assert_err(make(&empty, 1), &err, ERR_INTEGRITY,
		   "the header 'targets/x86_64-linux/include/cuda.h' declares no function");
	new_tree();
	buf_addstr(&text, "CUresult CUDAAPI cuX");
	for (int i = 0; i < 300; i++)
		buf_addc(&text, 'x');
	const struct toolkit_file longer =
		headers("CUDAAPI cuInit(", arena_printf(&arena, "%s(", buf_cstr(&text)));
	assert_err(make(&longer, 1), &err, ERR_INTEGRITY,
		   "header 'targets/x86_64-linux/include/cudaGL.h'");
	assert_true(lacks("lib64/stubs/libcuda.so"));
}

static void files_of_no_known_place_are_refused(void **state)
{
	(void)state;
	const struct craft_entry odd[] = {{.name = "nvidia/cu14/lib/libx.so.1", .data = "x"}};
	const struct toolkit_file f = wheel("nvidia-x", "1", odd, 1);
	refuses(&f, 1,
		"'nvidia/cu14/lib/libx.so.1', for which toolkit_tree.yaml has no install path");
	const struct craft_entry escape[] = {{.name = "nvidia/cu13/../../../x", .data = "x"}};
	const struct toolkit_file g = wheel("nvidia-y", "1", escape, 1);
	refuses(&g, 1, "unsafe name");
}

/* A tar archive of the files that a script made below "in". */
static struct toolkit_file archive(const char *name, const char *script)
{
	const char *file = arena_printf(&arena, "%s-linux-x86_64-12.8.93-archive.tar.xz", name);
	const char *command =
		arena_printf(&arena, "rm -rf %s && mkdir %s && cd %s && %s && tar -cJf ../%s *",
			     here("in"), here("in"), here("in"), script, file);

	assert_int_equal(system(command), 0);
	return (struct toolkit_file){
		.path = here(file), .name = name, .version = "12.8.93", .file = file};
}

static void archives_become_one_toolkit(void **state)
{
	(void)state;
	const struct toolkit_file files[] = {
		archive("cuda_nvcc", "mkdir -p a/bin a/nvvm/lib64 && echo nvcc >a/bin/nvcc && "
				     "chmod 755 a/bin/nvcc && "
				     "echo lic >a/LICENSE && echo v >a/nvvm/lib64/libnvvm.so.4"),
		archive("cuda_cudart", "mkdir -p b/lib/stubs b/include b/pkg-config && echo x "
				       ">b/lib/libcudart.so.12.8.90 "
				       "&& ln -s libcudart.so.12.8.90 b/lib/libcudart.so.12 && ln "
				       "-s libcudart.so.12 "
				       "b/lib/libcudart.so && echo s >b/lib/stubs/libcuda.so && "
				       "echo 'CUDAAPI cuInit(' "
				       ">b/include/cuda.h "
				       "&& echo p >b/pkg-config/cudart.pc && echo lic >b/LICENSE"),
	};
	assert_ok(make(files, ARRAY_LEN(files)), &err);
	has("bin/nvcc", "nvcc\n", 0755);
	has("include/cuda.h", "CUDAAPI cuInit(\n", 0644);
	has("lib64/stubs/libcuda.so", "s\n", 0644);
	has("nvvm/lib64/libnvvm.so.4", "v\n", 0644);
	has("share/doc/cuda_nvcc/LICENSE", "lic\n", 0644);
	is_link("targets/x86_64-linux/lib/libcudart.so", "libcudart.so.12");
	assert_true(lacks("pkg-config") && lacks("share/doc/cuda-toolkit"));
}

static void hostile_archives_are_refused(void **state)
{
	static const struct {
		const char *script, *says;
	} bad[] = {
		{"mkdir -p a/lib && ln -s /etc/passwd a/lib/libx.so", "link to another directory"},
		{"mkdir -p a/lib && ln -s ../../x a/lib/libx.so", "link to another directory"},
		{"mkdir -p a/lib && ln -s .. a/lib/libx.so", "link to another directory"},
		{"mkdir -p a/lib && mkfifo a/lib/fifo", "special file"},
		{"mkdir -p a/lib && echo x >a/lib/x && ln a/lib/x a/lib/y", "hard link"},
		{"mkdir a b && echo x >a/x && echo y >b/y", "is not below 'a'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct toolkit_file f = archive("cuda_bad", bad[i].script);
		refuses(&f, 1, bad[i].says);
		assert_ok(fs_remove(TRUSTED, here("tree"), &err), &err);
		assert_ok(fs_mkdirs(TRUSTED, here("tree"), &err), &err);
	}

	/* Writing through a link that the archive brought itself. */
	test_write(here("py"), "import tarfile, io\n"
			       "t = tarfile.open('hostile.tar.xz', 'w:xz')\n"
			       "def add(name, **k):\n"
			       "    i = tarfile.TarInfo(name)\n"
			       "    for n, v in k.items(): setattr(i, n, v)\n"
			       "    t.addfile(i, io.BytesIO(b'x' * i.size))\n"
			       "add('a/lib/sub', type=tarfile.SYMTYPE, linkname='target')\n"
			       "add('a/lib/sub/file', size=1)\n"
			       "t.close()\n");
	assert_int_equal(
		system(arena_printf(&arena, "cd %s && mkdir -p target && /usr/bin/python3 py",
				    test_path("."))),
		0);
	const struct toolkit_file f = {here("hostile.tar.xz"), "cuda_bad", "1", "hostile.tar.xz"};
	refuses(&f, 1, "targets/x86_64-linux/lib/sub/file");
	test_write(here("cut.tar.xz"), "not an archive at all, but long enough to be looked at");
	const struct toolkit_file cut = {here("cut.tar.xz"), "cuda_bad", "1", "cut.tar.xz"};
	refuses(&cut, 1, "damaged");
}

static void the_table_is_checked(void **state)
{
	static const struct {
		const char *change, *says;
	} bad[] = {
		{"s/to: targets\\/@\\/include}/to: ..\\/x}/", "is not a path inside the toolkit"},
		{"s/path: lib64, to: targets/path: lib64, to: \\/usr/",
		 "is not a path inside the toolkit"},
		{"s/target: sbsa-linux/target: a\\/b/", "is not a path inside the toolkit"},
		{"s/^wheel_dirs: .nvidia.cu13,/wheel_dirs: [\\/nvidia,/",
		 "is not a path inside the toolkit"},
		{"s/^moves:/move:/", "move"},
		{"s/path: targets.@.lib.stubs/path: ..\\/x/", "is not a path inside the toolkit"},
		{"s/headers: .targets.@.include.cuda.h/headers: [\\/usr\\/include\\/cuda.h/",
		 "is not a path inside the toolkit"},
		{"s/answer: 34/answer: 70000/", "answer"},
	};

	(void)state;
	const struct toolkit_rules *r;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(system(arena_printf(&arena, "sed '%s' %s/toolkit_tree.yaml >%s",
						     bad[i].change, PROFILES_DIR,
						     here("toolkit_tree.yaml"))),
				 0);
		assert_int_equal(toolkit_rules_load(here("."), &arena, &r, &err), -1);
		assert_int_equal(err.kind, ERR_CONFIG);
		assert_contains(err.msg, "toolkit_tree.yaml:");
		assert_contains(err.msg, bad[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wheels_become_one_toolkit, setup, teardown),
		cmocka_unit_test_setup_teardown(the_target_follows_the_platform, setup, teardown),
		cmocka_unit_test_setup_teardown(the_drivers_stub_is_made_of_the_headers, setup,
						teardown),
		cmocka_unit_test_setup_teardown(cmake_finds_the_stub_and_linkers_take_it, setup,
						teardown),
		cmocka_unit_test_setup_teardown(every_header_of_the_table_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(without_the_header_there_is_no_stub, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_header_that_no_stub_can_be_made_of_is_named,
						setup, teardown),
		cmocka_unit_test_setup_teardown(two_components_may_not_have_one_path, setup,
						teardown),
		cmocka_unit_test_setup_teardown(files_of_no_known_place_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(archives_become_one_toolkit, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_archives_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(the_table_is_checked, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
