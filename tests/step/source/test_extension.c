#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "step/source/source.h"

static int read_at(const char *path, struct arena *a, struct package_row *ret, struct err *e)
{
	return extension_read(&(struct extension_asked){.path = path}, test_run(), a, ret, e);
}

static const char *requires_of(const struct package_row *row, struct arena *a)
{
	const struct strlist l = {.items = row->python_requires,
				  .count = row->python_requires_count};
	return strlist_join(&l, a, " ");
}

static void a_folder_with_setup_py(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct package_row row;
	test_dir();
	test_write(test_path("setup.py"),
		   "package_name = 'no'\nsetup(name=\"My-Tiny.Ext\", version = '1.2+git',\n"
		   "  ext_modules=[CUDAExtension('x', ['a.cu'])])\n");
	assert_ok(read_at(test_path("."), &a, &row, &e), &e);
	assert_string_equal(row.name, "my_tiny_ext");
	assert_string_equal(row.version, "1.2");
	assert_string_equal(row.backend, TABLES_EXTENSION_BACKEND);
	assert_string_equal(requires_of(&row, &a), "");
	assert_string_equal(row.torch, "");
	assert_true(row.cuda_only);
	test_write(test_path("setup.py"), "__version__ = '2.0'\nif cuda: e = "
					  "CUDAExtension(...)\nelse: e = CppExtension(...)\n"
					  "setup(name='tiny', version=__version__)\n");
	assert_ok(read_at(test_path("."), &a, &row, &e), &e);
	assert_string_equal(row.version, "2.0");
	assert_false(row.cuda_only);
}

static const char *gpu_code_of(const char *path, struct arena *a)
{
	struct err e = {0};
	struct package_row row;

	assert_ok(read_at(path, a, &row, &e), &e);
	return row.gpu_code;
}

static void test_gpu_code_is_found_in_folder_and_sdist(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	static const char *const no_source[] = {
		"t-1/build/old.cu", "t-1/dist/old.cu",
		"t-1/.git/x.cu",    "t-1/env/lib/python3.13/site-packages/torch/a.cuh",
		"t-1/a.cu.txt",     "t-1/cu"};
	const char *dir, *sdist;
	test_dir();
	dir = arena_strdup(&a, test_path("t-1"));
	sdist = arena_strdup(&a, test_path("t.tar.gz"));
	test_write(test_path("t-1/setup.py"),
		   "setup(name='t', version='1', ext_modules=[CppExtension('t', ['t.cpp'])])");
	for (size_t i = 0; i < ARRAY_LEN(no_source); i++)
		test_write(test_path("%s", no_source[i]), "");
	assert_string_equal(gpu_code_of(dir, &a), "");
	test_write(test_path("t-1/csrc/kernels.cuh"), "");
	assert_string_equal(gpu_code_of(dir, &a), "csrc/kernels.cuh");
	assert_int_equal(system(arena_printf(&a, "tar -C %s -czf %s t-1", test_path("."), sdist)),
			 0);
	assert_string_equal(gpu_code_of(sdist, &a), "csrc/kernels.cuh");
	assert_int_equal(remove(test_path("t-1/csrc/kernels.cuh")), 0);
	test_write(test_path("t-1/setup.py"),
		   "E = CUDAExtension if gpu else CppExtension\nsetup(name='t', version='1')");
	assert_string_equal(gpu_code_of(dir, &a), "setup.py");
}

static void a_folder_with_pyproject_toml(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct package_row row;
	test_dir();
	test_write(test_path("pyproject.toml"),
		   "[build-system]\nrequires = ['setuptools>=61', 'torch>=2.1', 'pybind11', 'x; "
		   "os_name == \"nt\"']\n"
		   "[project]\nname = 'tiny'\nversion = '1'\nrequires-python = "
		   "'>=3.9'\ndependencies = ['torch >=2.3, "
		   "<3']\n");
	assert_ok(read_at(test_path("."), &a, &row, &e), &e);
	assert_string_equal(row.python, ">=3.9");
	assert_string_equal(row.torch, ">=2.3,<3");
	assert_string_equal(requires_of(&row, &a), "setuptools>=61 pybind11");
}

static void an_sdist_says_it_in_pkg_info(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct package_row row;
	test_dir();
	test_write(test_path("t-3.0/PKG-INFO"),
		   "Metadata-Version: 2.1\nName: T\nVersion: 3.0\nRequires-Python: >=3.8\n"
		   "Requires-Dist: torch[x] (>=2.6) ; python_version > '3'\n"
		   "Requires-Dist: torch==1; extra == 'old'\n");
	test_write(test_path("t-3.0/setup.py"), "setup(name='other', version='9')\n");
	test_write(test_path("t-3.0/sub/pyproject.toml"), "not toml\n");
	assert_int_equal(system(arena_printf(&a, "tar -C %s -czf %s t-3.0", test_path("."),
					     test_path("t.tar.gz"))),
			 0);
	assert_ok(read_at(test_path("t.tar.gz"), &a, &row, &e), &e);
	assert_string_equal(row.name, "t");
	assert_string_equal(row.version, "3.0");
	assert_string_equal(row.python, ">=3.8");
	assert_string_equal(row.torch, ">=2.6");
}

static void what_cannot_be_meant_is_refused(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct package_row row = {0};
	test_dir();
	assert_err(read_at(test_path("none"), &a, &row, &e), &e, ERR_USAGE, "no folder or sdist");
	assert_err(read_at(test_path("."), &a, &row, &e), &e, ERR_USAGE,
		   "has neither setup.py nor pyproject.toml");
	test_write(test_path("setup.py"), "setup(name='x', version=get())\n");
	assert_err(read_at(test_path("setup.py"), &a, &row, &e), &e, ERR_USAGE,
		   "is a file of an extension");
	assert_err(read_at(test_path("."), &a, &row, &e), &e, ERR_USAGE,
		   "does not say its version without being run");
	assert_contains(e.hint, "--version 1.0");
	test_write(test_path("setup.py"), "setup(version='1')\n");
	assert_err(read_at(test_path("."), &a, &row, &e), &e, ERR_USAGE, "does not say its name");
	assert_contains(e.hint, "[project] of pyproject.toml");
	test_write(test_path("setup.py"), "setup(name='x', version='one')\n");
	assert_err(read_at(test_path("."), &a, &row, &e), &e, ERR_INTEGRITY,
		   "has no version: 'one'");
	test_write(test_path("pyproject.toml"), "[project\n");
	assert_err(read_at(test_path("."), &a, &row, &e), &e, ERR_INTEGRITY,
		   "'pyproject.toml':1: ']' was expected");
	test_write(test_path("pyproject.toml"),
		   "[project]\nname='x'\nversion='1'\ndependencies=['torch>=new']\n");
	assert_err(read_at(test_path("."), &a, &row, &e), &e, ERR_INTEGRITY,
		   "what it requires of torch");
	test_write(test_path("broken.tar.gz"), "no archive");
	assert_err(read_at(test_path("broken.tar.gz"), &a, &row, &e), &e, ERR_INTEGRITY,
		   "broken.tar.gz");
	assert_null(row.name);
}

/* What is warned of a source, "" nothing. */
static const char *warned(const char *path, struct arena *a)
{
	struct err e = {0};
	struct package_row row;
	const char *file = test_path("log");
	struct log log = {.level = LOG_NORMAL,
			  .fd = open(file, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644)};
	const struct run run = {.log = &log, .cancel_fd = -1};

	assert_ok(extension_read(&(struct extension_asked){.path = path}, &run, a, &row, &e), &e);
	close(log.fd);
	char *text = test_read(test_path("log"));
	const char *ret = arena_strdup(a, text);
	free(text);
	return ret;
}

static void test_empty_submodules_are_warned_of(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const char *dir = arena_strdup(&a, test_path("t-1")),
		   *sdist = arena_strdup(&a, test_path("t.tar.gz"));
	const char *pack = arena_printf(&a, "tar -C %s -czf %s t-1", test_path("."), sdist);
	test_write(test_path("t-1/setup.py"), "setup(name='t', version='1')\n");
	test_write(test_path("t-1/.gitmodules"),
		   "[submodule \"a\"]\n\tpath = third_party/cutlass\n\turl = u\n"
		   "[submodule \"b\"]\n path=here\n[submodule \"c\"]\n\tpath = /etc\n");
	test_write(test_path("t-1/here/x.h"), "");
	assert_contains(warned(dir, &a),
			"third_party/cutlass; use the project's sdist, or a clone");
	assert_int_equal(mkdir(test_path("t-1/third_party"), 0755), 0);
	assert_int_equal(mkdir(test_path("t-1/third_party/cutlass"), 0755), 0);
	assert_int_equal(system(pack), 0);
	assert_contains(warned(sdist, &a),
			"third_party/cutlass; use the project's sdist, or a clone");
	assert_int_equal(mkdir(test_path("t-1/.git"), 0755), 0);
	const char *text = warned(dir, &a);
	assert_contains(text,
			arena_printf(&a, "git -C %s submodule update --init --recursive", dir));
	assert_null(strstr(text, "here"));
	assert_null(strstr(text, "/etc"));
	test_write(test_path("t-1/third_party/cutlass/x.h"), "");
	assert_int_equal(system(pack), 0);
	assert_string_equal(warned(dir, &a), "");
	assert_string_equal(warned(sdist, &a), "");
}

static void a_requirement_is_a_name_and_a_range(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(extension_requirement(" Torch[x,y] (>= 2.1, <3) ; os_name == 'a'", &a),
			    "Torch>=2.1,<3");
	assert_string_equal(extension_requirement("numpy", &a), "numpy");
	assert_string_equal(extension_requirement("", &a), "");
	assert_string_equal(extension_requirement("a[b", &a), "a");
	assert_null(extension_requirement("torch; extra == 'dev'", &a));
}

static void test_source_that_needs_cuda_is_for_cuda_alone(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct package_row row;
	test_dir();
	const char *dir = arena_strdup(&a, test_path("."));
	test_write(test_path("setup.py"),
		   "from x import CppExtension, CUDAExtension\n"
		   "e = CppExtension\nif cuda: e = CUDAExtension\nsetup(name='t', version='1')\n");
	/* In a header of its own, behind a guard. */
	test_write(test_path("src/a.cpp"), "#include \"k.h\"\n");
	test_write(test_path("src/k.h"),
		   "#ifndef K_H\n#define K_H\n#include <cuda_runtime.h>\n#endif");
	assert_ok(read_at(dir, &a, &row, &e), &e);
	assert_true(row.cuda_only);
	/* Where an #if decides, and where another file does without. */
	test_write(test_path("src/k.h"), "#ifdef WITH_CUDA\n# include <cuda_runtime.h>\n#endif\n");
	assert_ok(read_at(dir, &a, &row, &e), &e);
	assert_false(row.cuda_only);
	test_write(test_path("src/k.h"), "#pragma once\n#include <ATen/cuda/CUDAContext.h>\n");
	assert_ok(read_at(dir, &a, &row, &e), &e);
	assert_true(row.cuda_only);
	test_write(test_path("src/b.cpp"), "#include <vector>");
	assert_ok(read_at(dir, &a, &row, &e), &e);
	assert_false(row.cuda_only);
	/* What is imported need not be used. */
	test_write(test_path("setup.py"),
		   "from x import (\n  CppExtension,\n  CUDAExtension,\n)\n"
		   "setup(name='t', version='1', ext_modules=[CUDAExtension('t', [])])\n");
	assert_ok(read_at(dir, &a, &row, &e), &e);
	assert_true(row.cuda_only);
}

static void test_given_version_is_used_and_set(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct package_row row;
	test_dir();
	test_write(test_path("setup.py"), "setup(name='tiny', version=find())\n");
	const char *dir = arena_strdup(&a, test_path("."));
	const struct extension_asked silent = {.path = dir}, given = {dir, "1.5"};
	assert_err(extension_read(&silent, test_run(), &a, &row, &e), &e, ERR_USAGE,
		   "does not say its version");
	assert_contains(e.hint, "--version 1.0");
	err_clear(&e);
	assert_ok(extension_read(&given, test_run(), &a, &row, &e), &e);
	assert_string_equal(row.version, "1.5");
	assert_string_equal(row.settings[0].name, "SETUPTOOLS_SCM_PRETEND_VERSION");
	assert_string_equal(row.settings[0].value, "1.5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_folder_with_setup_py, test_teardown),
		cmocka_unit_test_teardown(test_gpu_code_is_found_in_folder_and_sdist,
					  test_teardown),
		cmocka_unit_test_teardown(a_folder_with_pyproject_toml, test_teardown),
		cmocka_unit_test_teardown(an_sdist_says_it_in_pkg_info, test_teardown),
		cmocka_unit_test_teardown(what_cannot_be_meant_is_refused, test_teardown),
		cmocka_unit_test_teardown(test_source_that_needs_cuda_is_for_cuda_alone,
					  test_teardown),
		cmocka_unit_test_teardown(test_given_version_is_used_and_set, test_teardown),
		cmocka_unit_test_teardown(test_empty_submodules_are_warned_of, test_teardown),
		cmocka_unit_test_teardown(a_requirement_is_a_name_and_a_range, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
