#include "support.h"

#include <elf.h>
#include <string.h>

#include "core/wheel/wheel.h"
#include "shipped.h"

static struct arena arena;
static const struct manylinux_policy *policy;

static int load_table(void **state)
{
	(void)state;
	policy = &shipped_tables(&arena)->manylinux;
	return 0;
}

static int release(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* An x86_64 library with these version needs, all of one file. */
static struct elf_info library(const char *const *versions, size_t count)
{
	struct elf_info i = {.machine = EM_X86_64, .dynamic = true, .soname = ""};

	i.versions = arena_array(&arena, count, sizeof(i.versions[0]));
	for (size_t k = 0; k < count; k++)
		i.versions[k] =
			(struct elf_version_need){.file = "libx.so.6", .version = versions[k]};
	i.versions_count = count;
	return i;
}

static void check_tag(const struct elf_info *infos, size_t count, const char *want,
		      const char *want_why)
{
	static const char *const names[] = {"torch/lib/one.so", "torch/lib/two.so",
					    "torch/lib/three.so"};
	struct err e = {0};
	char *tag, *why;

	assert_ok(manylinux_tag(policy, infos, names, count, &arena, &tag, &why, &e), &e);
	assert_string_equal(tag, want);
	assert_contains(why, want_why);
}

#define CHECK_VERSIONS(want, want_why, ...)                                                        \
	do {                                                                                       \
		const char *const versions[] = {__VA_ARGS__};                                      \
		struct elf_info info = library(versions, ARRAY_LEN(versions));                     \
		check_tag(&info, 1, want, want_why);                                               \
	} while (0)

static void lowest_policy(void **state)
{
	(void)state;
	CHECK_VERSIONS("manylinux_2_17_x86_64", "nothing needs more", "GLIBC_2.2.5", "GLIBC_2.17",
		       "GLIBCXX_3.4.19", "CXXABI_1.3.7", "GCC_4.8.0", "CXXABI_TM_1");
}

static void each_prefix_raises(void **state)
{
	(void)state;
	CHECK_VERSIONS("manylinux_2_24_x86_64", "GLIBC_2.18", "GLIBC_2.18");
	CHECK_VERSIONS("manylinux_2_24_x86_64", "GLIBCXX_3.4.20", "GLIBCXX_3.4.20");
	CHECK_VERSIONS("manylinux_2_24_x86_64", "CXXABI_1.3.8", "CXXABI_1.3.8");
	CHECK_VERSIONS("manylinux_2_27_x86_64", "GCC_7.0.0", "GCC_7.0.0");
	CHECK_VERSIONS("manylinux_2_24_x86_64", "LIBATOMIC_1.0", "LIBATOMIC_1.0");
	CHECK_VERSIONS("manylinux_2_27_x86_64", "ZLIB_1.2.9", "ZLIB_1.2.9");
	CHECK_VERSIONS("manylinux_2_37_x86_64", "ZLIB_1.2.12", "ZLIB_1.2.12");
}

static void numbers_compare_as_numbers(void **state)
{
	(void)state;
	CHECK_VERSIONS("manylinux_2_17_x86_64", "nothing", "GLIBC_2.9");
	CHECK_VERSIONS("manylinux_2_17_x86_64", "nothing", "GLIBC_2.3.4");
	CHECK_VERSIONS("manylinux_2_17_x86_64", "nothing", "GLIBCXX_3.4.9");
	CHECK_VERSIONS("manylinux_2_17_x86_64", "nothing", "GLIBCXX_3.4");
}

static void every_policy_can_be_reached(void **state)
{
	(void)state;
	static const unsigned minors[] = {24, 26, 27, 28, 31, 34, 35, 36, 38, 39, 40, 41};
	for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
		char *version = arena_printf(&arena, "GLIBC_2.%u", minors[i]);
		CHECK_VERSIONS(arena_printf(&arena, "manylinux_2_%u_x86_64", minors[i]), version,
			       version);
	}
}

static void gcc14_library(void **state)
{
	(void)state;
	CHECK_VERSIONS("manylinux_2_39_x86_64", "GLIBCXX_3.4.32", "GLIBC_2.38", "GLIBCXX_3.4.32",
		       "CXXABI_1.3.15");
}

static void the_decisive_need_is_named(void **state)
{
	(void)state;
	static const char *const low[] = {"GLIBC_2.14"}, *const high[] = {"GLIBC_2.34",
									  "GLIBCXX_3.4.21"};
	struct elf_info infos[] = {library(low, 1), library(high, 2), library(low, 1)};
	check_tag(infos, 3, "manylinux_2_34_x86_64",
		  "'torch/lib/two.so' needs GLIBC_2.34 of libx.so.6");
}

/* PEP 600 has a policy for every glibc; of the other libraries the newest row decides. */
static void a_newer_glibc_is_its_own_policy(void **state)
{
	(void)state;
	CHECK_VERSIONS("manylinux_2_99_x86_64", "GLIBC_2.99", "GLIBC_2.4", "GLIBC_2.99",
		       "GLIBC_2.28");
	CHECK_VERSIONS("manylinux_2_99_x86_64", "GLIBC_2.99", "GLIBC_2.99", "GLIBC_2.98",
		       "GLIBCXX_3.4.33");
	CHECK_VERSIONS("linux_x86_64", "GLIBCXX_3.4.99", "GLIBC_2.99", "GLIBCXX_3.4.99");
	CHECK_VERSIONS("linux_x86_64", "GLIBCXX_3.4.99", "GLIBCXX_3.4.99", "GLIBC_2.99");
}

static void private_symbols_are_plain_linux(void **state)
{
	(void)state;
	CHECK_VERSIONS("linux_x86_64", "GLIBC_PRIVATE", "GLIBC_PRIVATE");
	CHECK_VERSIONS("linux_x86_64", "CXXABI_LDBL_9", "CXXABI_LDBL_9");
}

static void relr_needs_2_36(void **state)
{
	(void)state;
	CHECK_VERSIONS("manylinux_2_36_x86_64", "GLIBC_ABI_DT_RELR", "GLIBC_2.28",
		       "GLIBC_ABI_DT_RELR");
	struct elf_info info = library(NULL, 0);
	info.relr = true;
	check_tag(&info, 1, "manylinux_2_36_x86_64", "DT_RELR");
}

static void float128_is_x86_only(void **state)
{
	(void)state;
	static const char *const versions[] = {"CXXABI_FLOAT128"};
	struct elf_info info = library(versions, 1);
	check_tag(&info, 1, "manylinux_2_24_x86_64", "CXXABI_FLOAT128");
	info.machine = EM_AARCH64;
	check_tag(&info, 1, "linux_aarch64", "CXXABI_FLOAT128");
}

static void aarch64_has_its_own_ceilings(void **state)
{
	(void)state;
	static const char *const old[] = {"GLIBC_2.18", "GCC_4.5.0", "LIBATOMIC_1.0"},
				 *const outline[] = {"GCC_11.0"};
	struct elf_info info = library(old, 3);
	info.machine = EM_AARCH64;
	check_tag(&info, 1, "manylinux_2_17_aarch64", "nothing");
	info = library(outline, 1);
	info.machine = EM_AARCH64;
	check_tag(&info, 1, "manylinux_2_34_aarch64", "GCC_11.0");
}

static void other_prefixes_do_not_count(void **state)
{
	(void)state;
	CHECK_VERSIONS("manylinux_2_17_x86_64", "nothing", "GOMP_5.0", "OPENSSL_3.0.0", "plain",
		       "libcudart.so.12", "GLIBCX_9");
}

static void libmvec_comes_later(void **state)
{
	(void)state;
	struct elf_info info = library(NULL, 0);
	strlist_add(&info.needed, &arena, "libm.so.6");
	check_tag(&info, 1, "manylinux_2_17_x86_64", "nothing");
	strlist_add(&info.needed, &arena, "libmvec.so.1");
	check_tag(&info, 1, "manylinux_2_24_x86_64", "'torch/lib/one.so' needs libmvec.so.1");
}

static void foreign_libraries_do_not_count(void **state)
{
	(void)state;
	struct elf_info info = library(NULL, 0);
	strlist_add(&info.needed, &arena, "libcudart.so.12");
	strlist_add(&info.needed, &arena, "libtorch_cpu.so");
	check_tag(&info, 1, "manylinux_2_17_x86_64", "nothing");
}

static void nothing_inside_is_any(void **state)
{
	(void)state;
	struct elf_info object = {.machine = 190};
	check_tag(NULL, 0, "any", "no dynamic ELF file");
	check_tag(&object, 1, "any", "no dynamic ELF file");
}

static void foreign_machine_is_an_error(void **state)
{
	(void)state;
	static const char *const names[] = {"a/x.so"};
	struct err e;
	char *tag = NULL, *why = NULL;
	struct elf_info info = library(NULL, 0);
	info.machine = EM_PPC64;
	assert_err(manylinux_tag(policy, &info, names, 1, &arena, &tag, &why, &e), &e,
		   ERR_INTEGRITY, "'a/x.so' is for a machine without a policy");
	assert_null(tag);
}

static void two_machines_are_an_error(void **state)
{
	(void)state;
	static const char *const names[] = {"a/x.so", "a/y.so"};
	struct err e;
	char *tag = NULL, *why = NULL;
	struct elf_info infos[] = {library(NULL, 0), library(NULL, 0)};
	infos[1].machine = EM_AARCH64;
	assert_err(manylinux_tag(policy, infos, names, 2, &arena, &tag, &why, &e), &e,
		   ERR_INTEGRITY, "'a/y.so' is for aarch64");
	assert_null(why);
}

static void allow_list(void **state)
{
	(void)state;
	static const char *const in[] = {
		"libc.so.6",      "libm.so.6",       "libmvec.so.1", "libgcc_s.so.1",
		"libstdc++.so.6", "libatomic.so.1",  "libz.so.1",    "ld-linux-x86-64.so.2",
		"libGL.so.1",     "libpthread.so.0", "libdl.so.2",   "libexpat.so.1"};
	static const char *const out[] = {"libgomp.so.1",
					  "libopenblas.so.0",
					  "libcuda.so.1",
					  "libc.so.7",
					  "libc.so",
					  "libstdc++.so.5",
					  ""};
	for (size_t i = 0; i < ARRAY_LEN(in); i++)
		assert_true(manylinux_allows(policy, in[i]));
	for (size_t i = 0; i < ARRAY_LEN(out); i++)
		assert_false(manylinux_allows(policy, out[i]));
}

/* Tables that do not fit. */

#define LIBRARIES "libraries:\n  - {name: libc.so.6}\n"

static void check_bad_table(const char *text, const char *want)
{
	struct err e;
	const struct tables *t = NULL;

	assert_err(load_changed("manylinux.yaml", text, &arena, &t, &e), &e, ERR_CONFIG, want);
	assert_contains(e.msg, "manylinux.yaml");
	assert_null(t);
}

static void bad_policy_name(void **state)
{
	(void)state;
	check_bad_table(LIBRARIES
			"policies:\n  - {policy: manylinux2014, machine: x86_64, glibc: 2.17}\n",
			"yaml:4: policy 'manylinux2014' is not of the form 2_N");
	check_bad_table(LIBRARIES "policies:\n  - {policy: 2_17x, machine: x86_64, glibc: 2.17}\n",
			"policy '2_17x' is not of the form 2_N");
}

static void bad_machine(void **state)
{
	(void)state;
	check_bad_table(LIBRARIES "policies:\n  - {policy: 2_17, machine: vax, glibc: 2.17}\n",
			"yaml:4: 'machine' cannot be 'vax'");
}

static void bad_ceiling(void **state)
{
	(void)state;
	check_bad_table(LIBRARIES
			"policies:\n  - {policy: 2_17, machine: x86_64, glibc: 2.17, gcc: four}\n",
			"yaml:4: 'gcc': not a version: 'four'");
	check_bad_table(LIBRARIES "policies:\n  - {policy: 2_17, machine: x86_64}\n",
			"yaml:4: policy '2_17' without a ceiling for glibc");
}

static void policies_out_of_order(void **state)
{
	(void)state;
	check_bad_table(LIBRARIES "policies:\n  - {policy: 2_28, machine: x86_64, glibc: 2.28}\n"
				  "  - {policy: 2_17, machine: aarch64, glibc: 2.17}\n  - {policy: "
				  "2_17, machine: x86_64, glibc: 2.17}\n",
			"yaml:6: policies of a machine must ascend");
}

static void bad_since(void **state)
{
	(void)state;
	check_bad_table("libraries:\n  - {name: libc.so.6, since: new}\npolicies:\n  - {policy: "
			"2_17, machine: x86_64, "
			"glibc: 2.17}\n",
			"yaml:2: 'since' of 'libc.so.6'");
}

static void unknown_and_missing_keys(void **state)
{
	(void)state;
	check_bad_table(LIBRARIES
			"policies:\n  - {policy: 2_17, machine: x86_64, glibc: 2.17, musl: 1.2}\n",
			"musl");
	check_bad_table("policies:\n  - {policy: 2_17, machine: x86_64, glibc: 2.17}\n",
			"libraries");
}

static void missing_table(void **state)
{
	(void)state;
	struct err e = {0};
	const struct tables *t = NULL;
	test_dir();
	assert_ok(fs_copy_tree(PROFILES_DIR, test_path("profiles"), &e), &e);
	assert_ok(fs_remove(TRUSTED, test_path("profiles/manylinux.yaml"), &e), &e);
	assert_int_equal(tables_load(test_path("profiles"), &arena, &t, &e), -1);
	assert_contains(e.msg, "manylinux.yaml");
	assert_null(t);
}

#define T(name) cmocka_unit_test_teardown(name, test_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(lowest_policy),
		T(each_prefix_raises),
		T(numbers_compare_as_numbers),
		T(every_policy_can_be_reached),
		T(gcc14_library),
		T(the_decisive_need_is_named),
		T(a_newer_glibc_is_its_own_policy),
		T(private_symbols_are_plain_linux),
		T(relr_needs_2_36),
		T(float128_is_x86_only),
		T(aarch64_has_its_own_ceilings),
		T(other_prefixes_do_not_count),
		T(libmvec_comes_later),
		T(foreign_libraries_do_not_count),
		T(nothing_inside_is_any),
		T(foreign_machine_is_an_error),
		T(two_machines_are_an_error),
		T(allow_list),
		T(bad_policy_name),
		T(bad_machine),
		T(bad_ceiling),
		T(policies_out_of_order),
		T(bad_since),
		T(unknown_and_missing_keys),
		T(missing_table),
	};

	return cmocka_run_group_tests(tests, load_table, release);
}
