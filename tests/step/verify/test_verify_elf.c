/* The rules for the libraries in a wheel. */
#include "verify_fixture.h"

/* The fixture with another library, or one more: text and linker flags. */
static struct verify_report with_library(const char *path, const char *text, const char *flags)
{
	make_tree();
	compile(path, text, flags);
	return verify(packed());
}

#define ANSWER "int answer(void) { return 42; }\n"

static void test_absolute_rpath(void **state)
{
	(void)state;
	struct verify_report r =
		with_library(LIBRARY, ANSWER,
			     "-nostdlib -Wl,--disable-new-dtags -Wl,-rpath,/usr/local/cuda/lib64");
	assert_only_error(&r, "rpath", "tiny/libtiny.so",
			  "'/usr/local/cuda/lib64' in its DT_RPATH");
}

static void test_empty_rpath_entry(void **state)
{
	(void)state;
	struct verify_report r = with_library(
		LIBRARY, ANSWER, "-nostdlib -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN:'");
	assert_only_error(&r, "rpath", "tiny/libtiny.so", "has '' in its DT_RPATH");
}

static void test_rpath_that_only_looks_like_origin(void **state)
{
	(void)state;
	struct verify_report r = with_library(
		LIBRARY, ANSWER, "-nostdlib -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGINAL/lib'");
	assert_only_error(&r, "rpath", "tiny/libtiny.so", "does not begin with $ORIGIN");
}

static void test_rpath_out_of_site_packages(void **state)
{
	(void)state;
	struct verify_report r =
		with_library(LIBRARY, ANSWER,
			     "-nostdlib -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN/../../../lib'");
	assert_only_error(&r, "rpath", "tiny/libtiny.so", "leaves site-packages");
}

static void test_rpath_to_a_neighbour_package(void **state)
{
	(void)state;
	struct verify_report r =
		with_library(LIBRARY, ANSWER,
			     "-nostdlib -Wl,--disable-new-dtags "
			     "'-Wl,-rpath,$ORIGIN/../nvidia/cublas/lib:$ORIGIN:${ORIGIN}/lib'");
	assert_clean(&r);
}

static void test_runpath(void **state)
{
	(void)state;
	struct verify_report r = with_library(
		LIBRARY, ANSWER, "-nostdlib -Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN'");
	assert_only_error(&r, "rpath", "tiny/libtiny.so", "has a DT_RUNPATH ('$ORIGIN')");
}

/* A second library "libb.so" that needs "liba.so", linked with these flags. */
static void make_pair(const char *flags)
{
	make_tree();
	compile("tree/tiny/lib/liba.so", "int a(void) { return 1; }\n",
		"-nostdlib -Wl,-soname,liba.so");
	compile("tree/tiny/libb.so", "int a(void); int b(void) { return a(); }\n",
		arena_printf(&arena, "-nostdlib -L'%s' -la %s", test_path("tree/tiny/lib"), flags));
}

static void test_needed_inside(void **state)
{
	(void)state;
	make_pair("-Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN/lib'");
	struct verify_report r = verify(packed());
	assert_clean(&r);
}

static void test_needed_inside_but_not_on_the_path(void **state)
{
	(void)state;
	make_pair("");
	struct verify_report r = verify(packed());
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "needed", "tiny/libb.so",
		     "needs 'liba.so', which is in the wheel but not on its search path");
}

static void test_needed_nowhere(void **state)
{
	(void)state;
	make_pair("");
	assert_int_equal(unlink(test_path("tree/tiny/lib/liba.so")), 0);
	const char *wheel = packed();
	struct verify_report r = verify(wheel);
	assert_only_error(&r, "needed", "tiny/libb.so",
			  "needs 'liba.so', which is neither in the wheel");
	struct verify_request q = {.wheel = wheel};
	strlist_add(&q.provided, &arena, "liba.so");
	r = verify_with(q);
	assert_int_equal(r.errors + r.warnings, 0);
	q.provided.items[0] = "liba*.so*";
	r = verify_with(q);
	assert_int_equal(r.errors + r.warnings, 0);
	q.provided.items[0] = "lib?.so.*";
	r = verify_with(q);
	assert_only_error(&r, "needed", "tiny/libb.so",
			  "needs 'liba.so', which is neither in the wheel");
}

static void test_needed_allowed_by_manylinux(void **state)
{
	(void)state;
	struct verify_report r = with_library(LIBRARY, ANSWER, "-Wl,--no-as-needed -lm -lpthread");
	assert_clean(&r);
	/* without a policy nothing is allowed */
	struct verify_report none;
	struct verify_request q = {.run = test_run(), .wheel = test_path("out/%s", r.file)};
	assert_ok(verify_wheel(&q, &arena, &none, &err), &err);
	assert_found(&none, FINDING_ERROR, "needed", "tiny/libtiny.so", "needs 'libm.so.6'");
	assert_string_equal(none.tag, "");
}

static void test_executable_stack(void **state)
{
	(void)state;
	struct verify_report r = with_library(LIBRARY, ANSWER, "-nostdlib -Wl,-z,execstack");
	assert_only_error(&r, "exec-stack", "tiny/libtiny.so", "executable stack");
}

static void test_text_relocations(void **state)
{
	(void)state;
	struct verify_report r = with_library(
		LIBRARY, "__asm__(\".text\\n.globl answer\\nanswer: .quad answer\\n\");\n",
		"-nostdlib -Wl,-z,notext 2>/dev/null");
	assert_only_error(&r, "textrel", "tiny/libtiny.so", "text relocations");
}

static void test_tag_too_low(void **state)
{
	(void)state;
	/* arc4random came with glibc 2.36 */
	struct verify_report r = with_library(
		LIBRARY, "#include <stdlib.h>\nint answer(void) { return (int)arc4random(); }\n",
		"");
	assert_only_error(
		&r, "tag", "",
		"has the platform 'manylinux_2_17_x86_64', but needs 'manylinux_2_36_x86_64'");
	assert_string_equal(r.tag, "manylinux_2_36_x86_64");
	assert_contains(r.tag_why, "GLIBC_2.36");
}

static struct verify_report with_tree(const char *platform)
{
	struct pack_request q = request();
	q.platform = platform;
	return verify(pack_ok(&q).path);
}

static struct verify_report with_platform(const char *platform)
{
	make_tree();
	return with_tree(platform);
}

static void test_tag_between_and_below_the_policies(void **state)
{
	(void)state;
	make_tree();
	compile(LIBRARY, "#include <stdlib.h>\nint answer(void) { return (int)arc4random(); }\n",
		"");
	struct pack_request q = request();
	q.platform = "manylinux_2_27_x86_64";
	struct verify_report r = verify(pack_ok(&q).path);
	assert_only_error(&r, "tag", "", "'tiny/libtiny.so' needs GLIBC_2.36");
	test_dir();
	r = with_platform("manylinux_2_5_x86_64.manylinux1_x86_64");
	assert_clean(&r);
}

static void test_tag_higher_than_needed_is_a_note(void **state)
{
	(void)state;
	struct verify_report r = with_platform("manylinux_2_34_x86_64");
	assert_int_equal(r.errors + r.warnings, 0);
	assert_found(&r, FINDING_NOTE, "tag", "", "'manylinux_2_17_x86_64' is enough");
	test_dir(); /* but not beside a platform that is honest */
	r = with_platform("manylinux_2_17_x86_64.manylinux_2_34_x86_64");
	assert_clean(&r);
}

static void test_tag_of_another_machine(void **state)
{
	(void)state;
	struct verify_report r = with_platform("manylinux_2_17_aarch64");
	assert_only_error(&r, "tag", "", "is for x86_64");
}

static void test_library_in_a_wheel_for_any_platform(void **state)
{
	(void)state;
	struct verify_report r = with_platform("any");
	assert_only_error(&r, "tag", "",
			  "has the platform 'any', but 'tiny/libtiny.so' is a library");
}

static void test_linux_tag_promises_nothing(void **state)
{
	(void)state;
	struct verify_report r = with_platform("linux_x86_64");
	assert_clean(&r);
}

/* The fixture's library with other bytes or a shorter one, changed by a shell command on "$L". */
static struct verify_report with_bytes(const char *command, const char *platform)
{
	test_dir();
	make_tree();
	shell("L='%s'; %s", test_path(LIBRARY), command);
	return with_tree(platform);
}

static void test_broken_library(void **state)
{
	static const char *const commands[][2] = {
		{"truncate -s 0 \"$L\"", "is not a library: it is empty"},
		{"truncate -s 100 \"$L\"", ""},
		{"truncate -s 1000 \"$L\"", ""},
		{"printf 'GROUP ( libc.so.6 )' > \"$L\"",
		 "is not a library: it is not an ELF file"},
		{"printf '\\001' | dd of=\"$L\" bs=1 seek=4 conv=notrunc status=none",
		 "not a 64-bit little-endian"},
		{"printf 'int a;' | cc -xc -c -o \"$L\" -", "an ELF file that cannot be loaded"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct verify_report r = with_bytes(commands[i][0], "manylinux_2_17_x86_64");
		assert_only_error(&r, "elf", "tiny/libtiny.so", commands[i][1]);
		for (size_t k = 0; k < r.count; k++)
			assert_not_contains(r.findings[k].text, "ptbuild-verify");
	}
}

/* The libraries of other systems and of other machines are no ELF files of 64 bits. */
static void test_libraries_of_other_systems(void **state)
{
	(void)state;
	struct verify_report r =
		with_bytes("printf '\\317\\372\\355\\376 Mach-O' > \"$L\"", "macosx_11_0_arm64");
	assert_clean(&r);
	r = with_bytes("printf '\\001' | dd of=\"$L\" bs=1 seek=4 conv=notrunc status=none",
		       "manylinux_2_17_i686");
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_NOTE, "elf", "tiny/libtiny.so", "not a 64-bit little-endian");
}

static void test_names_of_libraries(void **state)
{
	static const char *const names[] = {"x.so", "x.so.1", "x.so.1.0.2k", "x.sox.so.6",
					    "x.cpython-313-x86_64-linux-gnu.so"};
	static const char *const others[] = {"x.so.debug", "x.so.1.debug", "x.so.py",
					     "x.sox",      "so",           "x.so.1.x"};
	struct verify_report r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		r = with_bytes(arena_printf(&arena, "echo x > \"$(dirname \"$L\")/%s\"", names[i]),
			       "linux_x86_64");
		assert_only_error(&r, "elf", names[i], "it is not an ELF file");
	}

	r = with_bytes(
		"echo 'void _start(void) {}' | cc -pie -nostdlib -Wl,-z,noexecstack -o \"$(dirname "
		"\"$L\")/x.so\" -xc -",
		"linux_x86_64");
	assert_only_error(&r, "elf", "x.so", "it is a program (a PIE)");
	/* A library that can be started, too, as libcap.so.2 and libc.so.6: dlopen takes it. */
	r = with_bytes("echo 'const char loader[] __attribute__((section(\".interp\"))) = "
		       "\"/lib64/ld-linux-x86-64.so.2\"; void _start(void) {}' | cc -shared -fPIC "
		       "-nostdlib "
		       "-Wl,-z,noexecstack -o \"$(dirname \"$L\")/x.so\" -xc -",
		       "linux_x86_64");
	for (size_t i = 0; i < r.count; i++)
		assert_null(strstr(r.findings[i].text, "dlopen refuses"));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		r = with_bytes(arena_printf(&arena, "echo x > \"$(dirname \"$L\")/%s\"", others[i]),
			       "linux_x86_64");
		assert_clean(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_absolute_rpath),
		TEST(test_empty_rpath_entry),
		TEST(test_rpath_that_only_looks_like_origin),
		TEST(test_rpath_out_of_site_packages),
		TEST(test_rpath_to_a_neighbour_package),
		TEST(test_runpath),
		TEST(test_needed_inside),
		TEST(test_needed_inside_but_not_on_the_path),
		TEST(test_needed_nowhere),
		TEST(test_needed_allowed_by_manylinux),
		TEST(test_executable_stack),
		TEST(test_text_relocations),
		TEST(test_tag_too_low),
		TEST(test_tag_between_and_below_the_policies),
		TEST(test_tag_higher_than_needed_is_a_note),
		TEST(test_tag_of_another_machine),
		TEST(test_library_in_a_wheel_for_any_platform),
		TEST(test_linux_tag_promises_nothing),
		TEST(test_broken_library),
		TEST(test_libraries_of_other_systems),
		TEST(test_names_of_libraries),
	};

	return cmocka_run_group_tests(tests, load_policy, NULL);
}
