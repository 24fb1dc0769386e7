#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/zip/zip.h"
#include "step/pipeline/make.h"

#define WHEEL "torch-2.6.0+cpu.avx2-cp313-cp313-manylinux_2_28_x86_64.whl"

/* A wheel that holds one real shared library as torch/lib/libtorch_toy.so. */
static const char *a_torch_wheel(void)
{
	struct zip_writer *z;
	struct err e = {0};
	uint8_t digest[32];
	uint64_t size;

	test_dir();
	test_write(test_path("toy.c"), "int toy(void) { return 1; }\n");
	const char *command = test_path("toy.c");
	char line[8192];
	snprintf(line, sizeof(line),
		 "gcc -shared -fPIC -Wl,-soname,libtorch_toy.so.2.6 -o %s/libtorch_toy.so %s",
		 test_path("."), command);
	assert_int_equal(system(line), 0);
	const char *path = test_path(WHEEL);
	assert_ok(zip_create(&(struct zip_new){.path = path, .epoch = 0, .threads = 1, .level = 6},
			     &z, &e),
		  &e);
	assert_ok(zip_add_parts(z, "torch/lib/libtorch_toy.so", test_path("libtorch_toy.so"), NULL,
				0, digest, &size, &e),
		  &e);
	assert_ok(zip_add_data(z, "torch/lib/readme.txt", "x", 1, &e), &e);
	assert_ok(zip_finish(z, digest, &e), &e);
	return path;
}

static void test_a_wheel_is_known_by_its_digest(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct torch_source t = {0};
	char digest[DIGEST_HEX_LEN + 1];
	const char *path = a_torch_wheel();
	assert_ok(digest_file(path, digest, &e), &e);
	assert_ok(torch_from_wheel(path, "3.13", &a, &t, &e), &e);
	assert_string_equal(t.version, "2.6.0+cpu.avx2");
	assert_string_equal(t.identity, arena_printf(&a, "sha256:%s", digest));
	assert_null(t.lib_dir);
}

static void test_wheels_that_cannot_be_meant(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct torch_source t = {0};
	const char *path = a_torch_wheel();
	assert_err(torch_from_wheel("/nowhere/torch.whl", "3.13", &a, &t, &e), &e, ERR_USAGE,
		   "no torch wheel '/nowhere/torch.whl'");
	assert_err(torch_from_wheel(path, "3.12", &a, &t, &e), &e, ERR_POLICY,
		   "is for cp313, but the build is for Python 3.12");
	const char *other = test_path("torchvision-0.21.0-cp313-cp313-linux_x86_64.whl");
	test_write(other, "x");
	assert_err(torch_from_wheel(other, "3.13", &a, &t, &e), &e, ERR_USAGE,
		   "is a wheel of torchvision, not of torch");
	assert_null(t.version);
}

static void test_unpacked_once_and_kept(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct torch_source t;
	const char *dir = NULL;
	assert_ok(torch_from_wheel(a_torch_wheel(), "3.13", &a, &t, &e), &e);
	assert_ok(torch_unpack(&t, test_path("build"), test_run(), &a, &dir, &e), &e);
	assert_true(fs_exists(TRUSTED, test_path("build/torch/torch/lib/libtorch_toy.so")));
	test_write(test_path("build/torch/mark"), "kept");
	assert_ok(torch_unpack(&t, test_path("build"), test_run(), &a, &dir, &e), &e);
	assert_true(fs_exists(TRUSTED, test_path("build/torch/mark")));
	assert_string_equal(dir, test_path("build/torch"));
}

static void test_a_half_unpacked_torch_is_made_anew(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct torch_source t;
	const char *dir;
	assert_ok(torch_from_wheel(a_torch_wheel(), "3.13", &a, &t, &e), &e);
	test_write(test_path("build/torch/torch/lib/half"), "left by a kill");
	assert_ok(torch_unpack(&t, test_path("build"), test_run(), &a, &dir, &e), &e);
	assert_false(fs_exists(TRUSTED, test_path("build/torch/torch/lib/half")));
}

static void test_provides_files_and_sonames(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct torch_source t;
	struct strlist names = {0}, files = {0};
	struct root root = {.dir = "/", .host = true};
	const char *dir;
	assert_ok(torch_from_wheel(a_torch_wheel(), "3.13", &a, &t, &e), &e);
	assert_ok(torch_unpack(&t, test_path("build"), test_run(), &a, &dir, &e), &e);
	assert_ok(torch_provides(&t, &root, dir, &a, &names, &files, &e), &e);
	assert_int_equal(names.count, 2);
	assert_true(strlist_contains(&names, "libtorch_toy.so"));
	assert_true(strlist_contains(&names, "libtorch_toy.so.2.6"));
	assert_int_equal(files.count, 1);
	assert_contains(files.items[0], "torch/lib/libtorch_toy.so");
}

static void test_a_torch_without_libraries_is_refused(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct torch_source t = {.wheel = "x.whl"};
	struct strlist names = {0}, files = {0};
	struct root root = {.dir = "/", .host = true};
	test_dir();
	test_write(test_path("torch/lib/readme.txt"), "no library");
	assert_err(torch_provides(&t, &root, test_path("."), &a, &names, &files, &e), &e,
		   ERR_POLICY, "no torch libraries");
}

/* A root whose Python is a program that says `answer`:
 * what the Python of this machine has does not count. */
static void make_root(const char *answer, struct arena *a, struct root *ret)
{
	char line[8192];
	struct err e = {0};

	test_dir();
	test_write(test_path("python3.c"),
		   arena_printf(a,
				"#include <stdio.h>\nint main(void) { return puts(\"%s\") < 0; }\n",
				answer));
	assert_ok(fs_mkdirs(TRUSTED, test_path("root/usr/bin"), &e), &e);
	snprintf(line, sizeof(line), "gcc -static -o %s/root/usr/bin/python3 %s/python3.c",
		 test_path("."), test_path("."));
	assert_int_equal(system(line), 0);
	assert_ok(root_open(test_path("root"), a, ret, &e), &e);
}

static void test_a_root_without_torch(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct torch_source t = {0};
	struct root root;
	make_root("\\n", &a, &root);
	assert_err(torch_from_root(&root, SANDBOX_BWRAP, NULL, test_run(), &a, &t, &e), &e,
		   ERR_POLICY, "has no torch");
	assert_contains(e.hint, "name a wheel of torch");
	assert_null(t.version);
}

static void test_the_torch_of_a_root(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct torch_source t = {0};
	struct root root;
	make_root("2.6.0+debian\\n/usr/lib/python3/dist-packages/torch", &a, &root);
	assert_ok(torch_from_root(&root, SANDBOX_BWRAP, NULL, test_run(), &a, &t, &e), &e);
	assert_string_equal(t.version, "2.6.0+debian");
	assert_string_equal(t.identity, "root");
	assert_string_equal(t.lib_dir, "/usr/lib/python3/dist-packages/torch/lib");
	assert_null(t.wheel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_wheel_is_known_by_its_digest, test_teardown),
		cmocka_unit_test_teardown(test_wheels_that_cannot_be_meant, test_teardown),
		cmocka_unit_test_teardown(test_unpacked_once_and_kept, test_teardown),
		cmocka_unit_test_teardown(test_a_half_unpacked_torch_is_made_anew, test_teardown),
		cmocka_unit_test_teardown(test_provides_files_and_sonames, test_teardown),
		cmocka_unit_test_teardown(test_a_torch_without_libraries_is_refused, test_teardown),
		cmocka_unit_test_teardown(test_a_root_without_torch, test_teardown),
		cmocka_unit_test_teardown(test_the_torch_of_a_root, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
