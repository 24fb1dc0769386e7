#include "preflight_fixture.h"

static void test_all_there(void **state)
{
	(void)state;
	struct err e = {0};
	assert_ok(check(&e), &e);
}

static void test_each_missing_tool_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct err e = {0};
		struct tool old = t.tools[i];
		t.tools[i].path = NULL;
		t.tools[i].version = "";
		assert_err(check(&e), &e, ERR_SYSTEM,
			   arena_printf(&t.a, "%s: not in the root", t.tools[i].name));
		assert_contains(e.hint,
				arena_printf(&t.a, "apt-get install -y %s'", t.tools[i].name));
		t.tools[i] = old;
	}

	struct err e = {0};
	t.tools[5].path = NULL;
	assert_ok(check(&e), &e);
	assert_int_equal(t.d.lines[t.d.count - 3].level, PREFLIGHT_WARNING);
}

static void test_a_tool_that_prints_no_version(void **state)
{
	(void)state;
	struct err e = {0};
	t.tools[2].version = "";
	assert_err(check(&e), &e, ERR_SYSTEM, "prints no version");
}

static void test_a_program_where_no_build_looks(void **state)
{
	(void)state;
	struct err e = {0};
	const char *flatc = path_join(&t.a, t.root.dir, "usr/bin/flatc");
	assert_int_equal(remove(path_join(&t.a, t.root.dir, "usr/bin/cmake")), 0);
	t.tools[4].path = "/usr/local/bin/cmake";
	program("usr/local/bin/cmake");
	assert_err(check(&e), &e, ERR_SYSTEM,
		   "cmake: only as '/usr/local/bin/cmake', where a build does not look");
	program("usr/bin/cmake");
	assert_ok(check(&e), &e);
	assert_int_equal(remove(flatc), 0);
	program("usr/local/bin/flatc");
	assert_err(check(&e), &e, ERR_SYSTEM, "flatc: not in the root");
}

static void test_another_platform(void **state)
{
	(void)state;
	struct err e = {0};
	t.plan.platform = "aarch64-darwin";
	assert_err(check(&e), &e, ERR_POLICY, "v is for aarch64-darwin, and this machine is ");
	assert_contains(e.hint, "does not build it");
	t.plan.platform = "riscv64-linux";
	assert_err(check(&e), &e, ERR_POLICY, "v is for riscv64-linux");
	assert_contains(e.hint, "on such a machine");
}

static void test_no_toolkit(void **state)
{
	(void)state;
	struct err e = {0};
	const struct toolkits none = {0};
	t.plan.cuda = "12.8";
	t.q.toolkits = &none;
	assert_ok(preflight_check(&t.d, "cuda", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_SYSTEM, "no CUDA 12.8 in the root");
	assert_contains(e.hint, "--cuda-home");
}

/* The stub of the driver's library: sought where
 * CMake seeks it, and told before hours of compiling. */
static void test_a_toolkit_without_the_drivers_library(void **state)
{
	static const char *const places[] = {
		"usr/local/cuda-13.0/lib64/stubs", "usr/local/cuda-13.0/lib/stubs",
		"usr/local/cuda-13.0/targets/x86_64-linux/lib/stubs", "usr/lib/x86_64-linux-gnu",
		"usr/lib/x86_64-linux-gnu/nvidia/current"};
	struct toolkit kit = {.version = "13.0",
			      .release = "13.0.88",
			      .where = "/usr/local/cuda-13.0",
			      .nvcc = "/usr/local/cuda-13.0/bin/nvcc",
			      .cc = "gcc",
			      .cxx = "g++",
			      .cc_id = "g++ 14.2.0",
			      .gcc = ""};
	struct toolkits list = {&kit, 1};
	struct err e = {0};

	(void)state;
	const struct tables *shipped = NULL;
	assert_ok(tables_load(PROFILES_DIR, &t.a, &shipped, &e), &e);
	t.q.tables = shipped;
	t.settings[1].name = "USE_CUDA";
	t.plan.cuda = "13.0";
	t.q.toolkits = &list;
	t.q.tried = true;
	/* Another toolkit's, which the loader alone knows. */
	test_write(path_join(&t.a, t.root.dir, "etc/ld.so.conf"),
		   "/usr/local/cuda-12.4/lib\n/usr/lib/x86_64-linux-gnu\n");
	test_write(path_join(&t.a, t.root.dir, "usr/local/cuda-12.4/lib/stubs/libcuda.so"), "");
	assert_ok(preflight_check(&t.d, "cuda", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_SYSTEM,
		   "libcuda.so: neither in the toolkit '/usr/local/cuda-13.0' nor in the root");
	assert_contains(e.hint, "'/usr/local/cuda-13.0/lib64/stubs/libcuda.so'");
	kit.layout = TOOLKIT_DISTRIBUTION;
	t.d.count = 0;
	assert_ok(preflight_check(&t.d, "cuda", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_SYSTEM, "libcuda.so: neither");
	assert_contains(e.hint, "apt-get install -y libcuda1");
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const char *path = arena_printf(&t.a, "%s/%s/libcuda.so", t.root.dir, places[i]);
		test_write(path, "");
		t.d.count = 0;
		assert_ok(preflight_check(&t.d, "cuda", &e), &e);
		assert_ok(preflight_verdict(&t.d, &e), &e);
		assert_int_equal(remove(path), 0);
	}

	/* Who links nothing with it does not need it. */
	t.plan.package = "torchvision";
	t.d.count = 0;
	assert_ok(preflight_check(&t.d, "cuda", &e), &e);
	assert_ok(preflight_verdict(&t.d, &e), &e);
}

/* An nvcc that fails as those of CUDA 12 do with glibc 2.41, and one that fails otherwise. */
static void test_a_toolkit_that_does_not_fit_the_c_library(void **state)
{
	(void)state;
	static const struct {
		const char *says, *fix;
	} rows[] = {
		{"/usr/include/x86_64-linux-gnu/bits/mathcalls.h(79): error: exception\n  "
		 "specification is "
		 "incompatible "
		 "with that of previous function \\\"cospi\\\" (declared at line 5554 of "
		 "crt/math_functions.h)\n",
		 "a root of an older glibc"},
		{"nvcc fatal: nothing works\n", "read its message"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = {0};
		const struct tables *shipped = NULL;
		const char *nvcc = path_join(&t.a, t.root.dir, "nvcc");
		assert_ok(tables_load(PROFILES_DIR, &t.a, &shipped, &e), &e);
		test_write(nvcc, arena_printf(&t.a, "#!/bin/sh\nprintf '%%b' '%s' >&2\nexit 2\n",
					      rows[i].says));
		assert_int_equal(chmod(nvcc, 0755), 0);
		struct root host;
		assert_ok(root_open(NULL, &t.a, &host, &e), &e);
		struct toolkit kit = {.version = "12.8",
				      .release = "12.8.93",
				      .where = t.root.dir,
				      .nvcc = nvcc,
				      .cc = "gcc",
				      .cxx = "g++",
				      .cc_id = "g++ 14.2.0",
				      .gcc = ""};
		struct toolkits list = {&kit, 1};
		strlist_ref(&kit.targets, &t.a, "90");
		t.plan.cuda = "12.8";
		t.plan.gpu = (struct strlist){0};
		strlist_ref(&t.plan.gpu, &t.a, "9.0");
		t.q.tables = shipped;
		t.q.root = &host;
		t.q.kind = SANDBOX_NONE;
		t.q.toolkits = &list;
		t.d.count = 0;
		assert_ok(preflight_check(&t.d, "cuda", &e), &e);
		assert_err(preflight_verdict(&t.d, &e), &e, ERR_POLICY,
			   "does not compile a kernel for sm_90");
		assert_contains(e.hint, rows[i].fix);
	}
}

/* What is built against a torch imports it: a wheel
 * of PyTorch alone may be for another processor. */
static void test_a_torch_that_this_processor_cannot_run(void **state)
{
	(void)state;
	struct err e = {0};
	const struct tables *shipped = NULL;
	const bool x86 = strcmp(t.host, "x86_64-linux") == 0;
	assert_ok(tables_load(PROFILES_DIR, &t.a, &shipped, &e), &e);
	t.q.tables = shipped;
	t.plan.package = "torchaudio";
	t.plan.torch_version = x86 ? "2.6.0+cpu.armv9" : "2.6.0+cpu.avx512";
	assert_ok(preflight_check(&t.d, "torch-fits", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_POLICY,
		   "the build of torchaudio imports its torch");
	assert_contains(e.hint, "a profile that this one can run");
	t.d.count = 0;
	t.plan.torch_version = x86 ? "2.6.0+cpu.avx" : "2.6.0+cpu.armv8.2";
	t.plan.cuda = "12.4";
	assert_ok(preflight_check(&t.d, "torch-fits", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_POLICY,
		   "torchaudio is to have GPU code for CUDA 12.4, and its torch");
	t.plan.cuda = NULL;
	t.d.count = 0;
	t.plan.torch_version = "2.6.0+of.another";
	assert_ok(preflight_check(&t.d, "torch-fits", &e), &e);
	assert_ok(preflight_verdict(&t.d, &e), &e);
}

static void test_versions_out_of_range(void **state)
{
	(void)state;
	struct err e = {0};
	t.tools[4].version = "4.0.1";
	assert_err(check(&e), &e, ERR_POLICY, "cmake is 4.0.1");
	assert_contains(e.msg, ">=3.18,<4");
	assert_contains(e.hint, "--root");
	t.tools[0].version = "8.5.0";
	/* Something missing explains more than something that does not fit. */
	t.tools[2].path = NULL;
	assert_err(check(&e), &e, ERR_SYSTEM, "for 3 reasons");
	assert_contains(e.msg, "gcc is 8.5.0");
}

static void test_a_compiler_that_is_too_new_for_arm_alone(void **state)
{
	(void)state;
	struct err e = {0};
	t.release.gcc_arm = ">=9.3,!=12.2.*";
	t.plan.platform = "x86_64-linux";
	t.d.count = 0;
	assert_ok(preflight_check(&t.d, "tools", &e), &e);
	assert_ok(preflight_verdict(&t.d, &e), &e);
	t.plan.platform = "aarch64-linux";
	t.d.count = 0;
	assert_ok(preflight_check(&t.d, "tools", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_POLICY, "needs >=9.3,!=12.2.*");
}

static void test_cmake_matters_only_where_cmake_drives(void **state)
{
	(void)state;
	struct err e = {0};
	static const char *const without[] = {"setuptools", TABLES_EXTENSION_BACKEND};
	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		t.package.backend = without[i];
		t.tools[4].version = "4.0.1";
		t.tools[4].path = "/usr/bin/cmake";
		assert_ok(check(&e), &e);
		t.tools[4].path = NULL;
		assert_ok(check(&e), &e);
	}
}

static void test_another_python(void **state)
{
	(void)state;
	struct err e = {0};
	t.plan.python = "3.12";
	assert_err(check(&e), &e, ERR_POLICY, "is 3.13.5, the build is for Python 3.12");
	t.plan.python = "3.1";
	assert_err(check(&e), &e, ERR_POLICY, "for Python 3.1");
}

/* The compiler of this machine is asked for flags. */
static void ask_this_machine(struct root *host)
{
	struct err e = {0};

	assert_ok(root_open("/", &t.a, host, &e), &e);
	t.q.root = host;
	t.q.kind = SANDBOX_NONE;
	t.plan.isa = "isa";
}

static void test_a_flag_that_the_compiler_does_not_take(void **state)
{
	(void)state;
	struct err e = {0};
	struct root host;
	ask_this_machine(&host);
	strlist_ref(&t.plan.cpu_flags, &t.a, "-march=no-such-processor");
	assert_ok(preflight_check(&t.d, "flags", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_POLICY,
		   "does not compile with -march=no-such-processor");
	assert_contains(e.hint, "use a root with GCC");
}

/* Killed as for memory: that says nothing of the flags. */
static void test_a_compiler_that_is_killed(void **state)
{
	(void)state;
	struct err e = {0};
	struct root host;
	ask_this_machine(&host);
	test_write(test_path("tools/cc1"), "#!/bin/sh\nkill -9 $$\n");
	assert_int_equal(chmod(test_path("tools/cc1"), 0755), 0);
	strlist_addf(&t.plan.cpu_flags, &t.a, "-B%s", test_path("tools"));
	assert_ok(preflight_check(&t.d, "flags", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_SYSTEM,
		   "Killed signal terminated program cc1");
	assert_not_contains(e.hint, "use a root with GCC");
}

static const char *own_files[] = {"lib/own.a", "include/own.h"};
static struct blas_row own_blas(void)
{
	return (struct blas_row){.name = "own",
				 .pkgconf = "no-such-module",
				 .debian = "",
				 .world = "mkl2026_2",
				 .place = "OWN_DIR",
				 .files = own_files,
				 .files_count = ARRAY_LEN(own_files),
				 .linked = "own-static",
				 .licence = "its own"};
}

/* Debian has no package of it, so no command to install one is told. */
static void test_a_blas_that_only_a_world_has(void **state)
{
	struct blas_row row = own_blas();
	struct world_row worlds[] = {{.base = "debian13"}};

	(void)state;
	struct err e = {0};
	row.place = row.linked = "";
	t.plan.blas_row = &row;
	t.plan.python = "3.13";
	t.plan.platform = "x86_64-linux";
	t.release.worlds = worlds;
	t.release.worlds_count = ARRAY_LEN(worlds);
	t.tables.dir = PROFILES_DIR;
	assert_ok(preflight_check(&t.d, "blas", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_SYSTEM,
		   "pkg-config does not find 'no-such-module' in the root");
	assert_contains(e.hint, "the world 'debian13+mkl2026_2' has it: leave --root");
	assert_contains(e.hint, "'ptbuild world make debian13+mkl2026_2 --copy DIR'");
	assert_not_contains(e.hint, "install");
}

static void assert_blas(const char *says)
{
	struct err e = {0};

	t.d.count = 0;
	assert_ok(preflight_check(&t.d, "blas", &e), &e);
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_SYSTEM, says);
}

/* pkg-config may find one, and PyTorch's own search none, or another. */
static void test_files_of_a_blas_in_a_place_of_its_own(void **state)
{
	struct blas_row row = own_blas();
	struct setting place = {.name = "OWN_DIR", .value = "/opt/own"};
	struct err e = {0};

	(void)state;
	t.plan.blas_row = &row;
	t.plan.python = "3.13";
	t.plan.platform = "x86_64-linux";
	t.plan.cache = (struct settings){.items = &place, .count = 1};
	t.tables.dir = PROFILES_DIR;
	assert_blas("'/opt/own/lib/own.a' is not in the root");
	test_write(path_join(&t.a, t.root.dir, "opt/own/lib/own.a"), "");
	assert_blas("'/opt/own/include/own.h' is not in the root");
	test_write(path_join(&t.a, t.root.dir, "opt/own/include/own.h"), "");
	assert_blas("no file below '/usr/share/doc/own-static' in the root");
	const char *texts = path_join(&t.a, t.root.dir, "usr/share/doc/own-static");
	assert_ok(fs_mkdirs(TRUSTED, texts, &e), &e);
	assert_blas("no file below '/usr/share/doc/own-static' in the root");
	assert_int_equal(symlink("gone", path_join(&t.a, texts, "gone.txt")), 0);
	assert_blas("no file below '/usr/share/doc/own-static' in the root");
	test_write(path_join(&t.a, t.root.dir, "usr/share/doc/own-static/licence.txt"), "");
	assert_blas("pkg-config does not find 'no-such-module'");
	place.value = "opt/own";
	assert_blas("'opt/own/lib/own.a' is not in the root");
}

/* The module is looked for where the plan says. */
static void test_a_blas_in_a_place_of_its_own(void **state)
{
	struct blas_row row = {.name = "own",
			       .pkgconf = "ptbuild-own",
			       .debian = "",
			       .world = "",
			       .place = "",
			       .linked = ""};
	struct root host;

	(void)state;
	struct err e = {0};
	assert_ok(root_open("/", &t.a, &host, &e), &e);
	t.q.root = &host;
	t.q.kind = SANDBOX_NONE;
	t.plan.blas_row = &row;
	t.settings[1] = (struct setting){.name = "PKG_CONFIG_PATH",
					 .value = arena_strdup(&t.a, test_path("pkgconfig"))};
	test_write(test_path("pkgconfig/ptbuild-own.pc"),
		   "Name: own\nDescription: own\nVersion: 7.5\nLibs:\n");
	assert_ok(preflight_check(&t.d, "blas", &e), &e);
	/* it is found, and has no sgemm_ */
	assert_err(preflight_verdict(&t.d, &e), &e, ERR_SYSTEM,
		   "ptbuild-own is there, but a program does not link");
	/* an archive by its path, as MKL's module names it */
	test_write(test_path("pkgconfig/own.c"), "void sgemm_(void) {}\n");
	test_write(test_path("pkgconfig/ptbuild-own.pc"),
		   "Name: own\nDescription: own\nVersion: 7.5\nLibs: ${pcfiledir}/libown.a\n");
	const char *make = arena_printf(&t.a, "cd %s && gcc -c own.c && ar rc libown.a own.o",
					test_path("pkgconfig"));
	assert_int_equal(system(make), 0);
	t.d.count = 0;
	err_clear(&e);
	assert_ok(preflight_check(&t.d, "blas", &e), &e);
	assert_ok(preflight_verdict(&t.d, &e), &e);
}

/* A world of the store is read-only and shared; a copy of it is one's own. */
static void test_a_world_is_not_changed(void **state)
{
	static const char key[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

	(void)state;
	struct err e = {0};
	const char *own = t.root.dir;
	t.root.dir = arena_printf(&t.a, "%s/worlds/%s/root", own, key);
	test_write(path_join(&t.a, t.root.dir, "etc/ptbuild-world"),
		   arena_printf(&t.a, "debian11 x86_64-linux %s\n", key));
	assert_err(check(&e), &e, ERR_SYSTEM, "not in the root");
	assert_not_contains(e.hint, "apt-get");
	assert_not_contains(e.hint, "chroot");
	assert_contains(e.hint, "'ptbuild world make debian11 --copy DIR'");
	assert_null(strstr(strstr(e.hint, "--copy DIR") + 1, "--copy DIR")); /* told once */
	t.root.dir = own;
	test_write(path_join(&t.a, own, "etc/ptbuild-world"),
		   arena_printf(&t.a, "debian11 x86_64-linux %s\n", key));
	assert_int_equal(remove(path_join(&t.a, own, "usr/bin/flatc")), 0);
	assert_err(check(&e), &e, ERR_SYSTEM, "flatc: not in the root");
	assert_contains(e.hint, "apt-get install -y flatbuffers-compiler");
}

/* A hint can be pasted. */
static void test_a_root_whose_path_needs_quotes(void **state)
{
	(void)state;
	struct err e = {0};
	t.root.dir = "/srv/it's a root";
	assert_err(check(&e), &e, ERR_SYSTEM, "not in the root '/srv/it's a root'");
	assert_contains(
		e.hint,
		"sudo chroot '/srv/it'\\''s a root' sh -c 'apt-get update && apt-get install -y ");
}

static void test_without_a_sandbox_paths_are_plain(void **state)
{
	static const char *const bad[][2] = {{"/srv/a b", "spaces"},
					     {"/srv/gr\xc3\xbcn", "letters beyond ASCII"},
					     {"/srv/a;b", "';'"},
					     {"/srv/a\tb", "control characters"}};

	(void)state;
	t.d.count = 0;
	struct err e = {0};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		t.d.count = 0;
		t.q.store_dir = bad[i][0];
		t.q.kind = SANDBOX_NONE;
		assert_ok(preflight_check(&t.d, "sandbox", &e), &e);
		assert_err(preflight_verdict(&t.d, &e), &e, ERR_POLICY,
			   arena_printf(&t.a,
					"no build without a sandbox in '%s': build tools do not "
					"cope with %s",
					bad[i][0], bad[i][1]));
		assert_contains(e.hint, "leave --sandbox none out");
		assert_contains(e.hint, "--cache DIR");
	}

	t.d.count = 0;
	t.q.store_dir = "/home/a.b_c+d/.cache/pt-build@1";
	assert_ok(preflight_check(&t.d, "sandbox", &e), &e);
	assert_ok(preflight_verdict(&t.d, &e), &e);
}

static void test_a_need_of_others_does_not_count(void **state)
{
	(void)state;
	struct err e = {0};
	assert_int_equal(remove(path_join(&t.a, t.root.dir, "usr/bin/flatc")), 0);
	t.needs[6].package = "torchvision";
	assert_ok(check(&e), &e);
	t.needs[6].package = "pytorch";
	t.needs[6].release = "2.7.1";
	assert_ok(check(&e), &e);
	t.needs[6].release = "2.6.0";
	t.needs[6].toggle = "USE_X";
	assert_err(check(&e), &e, ERR_SYSTEM, "flatc");
	t.settings[1].value = "OFF";
	assert_ok(check(&e), &e);
	t.needs[6].toggle = "USE_Y";
	assert_ok(check(&e), &e);
}

static void test_a_full_disk(void **state)
{
	(void)state;
	struct err e = {0};
	t.release.disk = "900000G";
	assert_err(check(&e), &e, ERR_SYSTEM, "disk: ");
	assert_contains(e.msg, "output: ");
	assert_contains(e.hint, "--cache DIR");
	assert_contains(e.hint, "--out DIR");
	/* What an earlier run left there is not needed again; others than PyTorch need little. */
	t.plan.package = "torchvision";
	assert_ok(check(&e), &e);
}

/* What a kill left while it was tried whether there can be a file. */
static void test_places_are_as_they_were(void **state)
{
	(void)state;
	struct err e = {0};
	struct strlist left = {0};
	test_write(test_path("dist/.ptbuild-0123456789abcdef"), "");
	t.q.out_dir = arena_strdup(&t.a, test_path("dist"));
	assert_ok(check(&e), &e);
	assert_ok(fs_list(TRUSTED, t.q.out_dir, &t.a, &left, &e), &e);
	assert_int_equal(left.count, 0);
}

static void test_a_place_that_cannot_be_written(void **state)
{
	(void)state;
	struct err e = {0};
	t.q.out_dir = "/proc/1/dist";
	assert_err(check(&e), &e, ERR_SYSTEM, "output: cannot write into '/proc/1'");
	assert_contains(e.hint, "--out DIR");
	t.q.out_dir = arena_strdup(&t.a, test_path("nowhere/dist"));
	assert_int_equal(symlink("gone", test_path("nowhere")), 0);
	assert_err(check(&e), &e, ERR_SYSTEM, "output: cannot write into '");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_there),
		TEST(test_each_missing_tool_is_named),
		TEST(test_a_tool_that_prints_no_version),
		TEST(test_a_program_where_no_build_looks),
		TEST(test_another_platform),
		TEST(test_no_toolkit),
		TEST(test_a_toolkit_without_the_drivers_library),
		TEST(test_a_toolkit_that_does_not_fit_the_c_library),
		TEST(test_a_torch_that_this_processor_cannot_run),
		TEST(test_versions_out_of_range),
		TEST(test_a_compiler_that_is_too_new_for_arm_alone),
		TEST(test_cmake_matters_only_where_cmake_drives),
		TEST(test_another_python),
		TEST(test_a_blas_that_only_a_world_has),
		TEST(test_files_of_a_blas_in_a_place_of_its_own),
		TEST(test_a_blas_in_a_place_of_its_own),
		TEST(test_a_world_is_not_changed),
		TEST(test_a_flag_that_the_compiler_does_not_take),
		TEST(test_a_compiler_that_is_killed),
		TEST(test_a_root_whose_path_needs_quotes),
		TEST(test_without_a_sandbox_paths_are_plain),
		TEST(test_a_need_of_others_does_not_count),
		TEST(test_a_full_disk),
		TEST(test_a_place_that_cannot_be_written),
		TEST(test_places_are_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
