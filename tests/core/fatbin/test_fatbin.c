#include "support.h"

#include <lz4.h>
#include <stdio.h>
#include <zstd.h>

#include "base/sys/fs.h"
#include "compile.h"
#include "core/fatbin/fatbin.h"
#include "craft_fatbin.h"

static struct arena arena;
static struct err err;

static int setup(void **state)
{
	(void)state;
	test_dir();
	err_clear(&err);
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static const char *data_file(const char *name)
{
	return arena_printf(&arena, "%s/fatbin/%s", TEST_DATA_DIR, name);
}

static int collect(const void *data, size_t size, const char *name, struct strlist *to)
{
	struct fatbin_entries all;

	if (fatbin_scan(&(struct file_bytes){data, size, name}, &arena, &all, &err) < 0)
		return -1;
	for (size_t i = 0; i < all.count; i++)
		strlist_addf(to, &arena, "%s%s sm_%s%s",
			     *all.items[i].member
				     ? arena_printf(&arena, "%s: ", all.items[i].member)
				     : "",
			     fatbin_kind_name(all.items[i].kind, all.items[i].number, &arena),
			     all.items[i].target, all.items[i].relocatable ? " relocatable" : "");
	return 0;
}

static int scan_file(const char *path, struct strlist *to)
{
	AUTO_MAPPING struct fs_mapping m = {0};
	return fs_map(path, &m, &err) < 0 ? -1 : collect(m.data, m.size, path, to);
}

static const char *listed(const struct buf *b)
{
	struct strlist l = {0};
	assert_ok(collect(b->data, b->len, "f", &l), &err);
	return strlist_join(&l, &arena, ", ");
}

static const char *listed_file(const char *path)
{
	struct strlist l = {0};
	assert_ok(scan_file(path, &l), &err);
	return strlist_join(&l, &arena, ", ");
}

/* Made by nvcc; cuobjdump lists the same. */
static void test_what_nvcc_makes(void **state)
{
	(void)state;
	assert_string_equal(listed_file(data_file("plain.fatbin")), "cubin sm_90");
	assert_string_equal(listed_file(data_file("cuda12_4.fatbin")),
			    "cubin sm_80, cubin sm_90a, PTX sm_90");
	assert_string_equal(listed_file(data_file("cuda13_0.fatbin")),
			    "cubin sm_75, cubin sm_90a, PTX sm_90a, cubin sm_100f, cubin sm_103f");
	assert_string_equal(listed_file(data_file("lto.fatbin")), "LTO code sm_80");
	assert_string_equal(listed_file(data_file("sm_90a.cubin")), "cubin sm_90a");
}

/* Contents of all sorts (plain, LZ4 of 12.4, zstd of
 * 13.0) are for the target that the headers name. */
static void test_contents_agree_with_headers(void **state)
{
	(void)state;
	static const char *const names[] = {"plain.fatbin", "cuda12_4.fatbin", "cuda13_0.fatbin",
					    "lto.fatbin", "sm_90a.cubin"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct fatbin_summary s;
		AUTO_MAPPING struct fs_mapping m = {0};
		assert_ok(fs_map(data_file(names[i]), &m, &err), &err);
		assert_ok(fatbin_summarize(&(struct file_bytes){m.data, m.size, names[i]}, &arena,
					   &s, &err),
			  &err);
		assert_int_equal(s.wrong.count, 0);
		assert_true(s.count > 0);
		assert_int_equal(s.containers, 1);
	}
}

static void test_targets_inside(void **state)
{
	(void)state;
	AUTO_BUF struct buf file = {0};
	struct strlist found = {0};
	struct fatbin_entries all;
	assert_ok(fs_read(TRUSTED, data_file("cuda12_4.fatbin"), 1 << 20, &file, &err), &err);
	assert_ok(fatbin_scan(&(struct file_bytes){file.data, file.len, "f"}, &arena, &all, &err),
		  &err);
	for (size_t i = 0; i < all.count; i++) {
		char target[16];
		assert_ok(fatbin_inside(&(struct file_bytes){file.data, file.len, "f"},
					&all.items[i], target, &err),
			  &err);
		strlist_addf(&found, &arena, "%s in %s", target, all.items[i].target);
	}

	assert_string_equal(strlist_join(&found, &arena, ", "), "80 in 80, 90a in 90a, 90 in 90");
}

static void test_several_with_padding(void **state)
{
	(void)state;
	AUTO_BUF struct buf one = {0}, two = {0}, file = {0};
	craft_cubin_entry(&one, 90, 0);
	craft_cubin_entry(&two, 90, 0);
	craft_cubin_entry(&two, 90, CRAFT_ARCH);
	craft_ptx_entry(&two, 90);
	craft_container(&file, &one);
	craft_number(&file, 0, 8);
	craft_container(&file, &two);
	craft_container(&file, &one);
	craft_number(&file, 0, 4);
	assert_string_equal(listed(&file),
			    "cubin sm_90, cubin sm_90, cubin sm_90a, PTX sm_90, cubin sm_90");
	struct fatbin_summary s;
	assert_ok(
		fatbin_summarize(&(struct file_bytes){file.data, file.len, "f"}, &arena, &s, &err),
		&err);
	assert_int_equal(s.containers, 3);
	assert_int_equal(s.sets_count, 2);
	assert_string_equal(s.sets[0].text, "cubin sm_90");
	assert_int_equal(s.sets[0].containers, 2);
	assert_string_equal(s.sets[1].text, "PTX sm_90, cubin sm_90, cubin sm_90a");
	assert_int_equal(s.count, 3);
	assert_string_equal(fatbin_name(&s.items[1], &arena), "cubin sm_90");
	assert_int_equal(s.items[1].entries, 3);
}

static void test_families_and_unknown_kinds(void **state)
{
	(void)state;
	AUTO_BUF struct buf entries = {0}, file = {0};
	craft_cubin_entry(&entries, 100, CRAFT_FAMILY);
	craft_entry(&entries, 0x40, 90, 0, "abc", 3, 0);
	craft_container(&file, &entries);
	assert_string_equal(listed(&file), "cubin sm_100f, kind 0x40 sm_90");
}

/* A header that says sm_90 over code for sm_80. */
static void test_contents_for_another_target(void **state)
{
	(void)state;
	AUTO_BUF struct buf cubin = {0}, entries = {0}, file = {0};
	struct fatbin_summary s;
	craft_cubin(&cubin, 80, 128);
	craft_entry(&entries, 2, 90, 0, cubin.data, cubin.len, 0);
	craft_entry(&entries, 1, 75, 0, ".target sm_70, debug\n", 21, 0);
	craft_container(&file, &entries);
	assert_ok(
		fatbin_summarize(&(struct file_bytes){file.data, file.len, "f"}, &arena, &s, &err),
		&err);
	assert_int_equal(s.wrong.count, 2);
	assert_contains(s.wrong.items[0],
			"cubin at offset 0x50 is for sm_80, its header says sm_90");
	assert_contains(s.wrong.items[1], "PTX at offset");
}

static void assert_packed(uint64_t flag, const void *packed, size_t size, size_t raw,
			  const char *want)
{
	AUTO_BUF struct buf entries = {0}, file = {0};
	struct fatbin_summary s;

	craft_entry(&entries, 2, 90, flag, packed, size, raw);
	craft_container(&file, &entries);
	if (want) {
		assert_err(fatbin_summarize(&(struct file_bytes){file.data, file.len, "f"}, &arena,
					    &s, &err),
			   &err, ERR_INTEGRITY, want);
		return;
	}

	assert_ok(
		fatbin_summarize(&(struct file_bytes){file.data, file.len, "f"}, &arena, &s, &err),
		&err);
	assert_int_equal(s.wrong.count, 0);
	assert_int_equal(s.count, 1);
}

static void test_compressed_contents(void **state)
{
	(void)state;
	AUTO_BUF struct buf cubin = {0};
	static char packed[1 << 16];
	craft_cubin(&cubin, 90, 20000);
	int lz4 = LZ4_compress_default(cubin.data, packed, (int)cubin.len, sizeof(packed));
	assert_true(lz4 > 0);
	assert_packed(CRAFT_LZ4, packed, (size_t)lz4, cubin.len, NULL);
	size_t zstd = ZSTD_compress(packed, sizeof(packed), cubin.data, cubin.len, 3);
	assert_false(ZSTD_isError(zstd));
	assert_packed(CRAFT_ZSTD, packed, zstd, cubin.len, NULL);
	/* The head is there even where the rest is cut off; cut before it, it is not. */
	assert_packed(CRAFT_ZSTD, packed, 12, cubin.len, "cannot be unpacked");
	memset(packed, 0xff, 64);
	assert_packed(CRAFT_ZSTD, packed, 64, cubin.len, "cannot be unpacked");
	assert_packed(CRAFT_LZ4, packed, 64, cubin.len, "cannot be unpacked");
	assert_packed(0, packed, 64, 0, "is not a cubin");
}

/* What is wrong is named with its place, and nothing behind the file is read. */
static void test_malformed(void **state)
{
	(void)state;
	AUTO_BUF struct buf entries = {0}, good = {0};
	static const struct {
		size_t at;
		uint64_t value;
		size_t bytes;
		const char *text;
	} bad[] = {
		{4, 2, 2, "version 2 with a header of 16 bytes at offset 0x4"},
		{6, 8, 2, "version 1 with a header of 8 bytes at offset 0x4"},
		{8, 1u << 20, 8, "a fat binary of 1048576 bytes leaves its section at offset 0x8"},
		{8, UINT64_MAX, 8, "leaves its section"},
		{8, 40, 8, "a GPU code entry ends within its header"},
		{16 + 4, 32, 4, "a header of 32 bytes"},
		{16 + 4, 0xffffffff, 4, "a header of 4294967295 bytes"},
		{16 + 8, UINT64_MAX - 100, 8, "leaves its container"},
		{16 + 16, 4096, 4, "a GPU code entry of 4096 bytes has room for 128"},
		{16 + 28, 123456, 4, "a GPU code entry for target 123456"},
		{16 + 40, CRAFT_LZ4 | CRAFT_ZSTD, 8, "compressed in two ways"},
	};
	craft_cubin_entry(&entries, 90, 0);
	craft_container(&good, &entries);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char *copy = malloc(good.len);
		struct strlist l = {0};
		memcpy(copy, good.data, good.len);
		memcpy(copy + bad[i].at, &bad[i].value, bad[i].bytes);
		assert_err(collect(copy, good.len, "f", &l), &err, ERR_INTEGRITY, bad[i].text);
		assert_contains(err.msg, "'f': ");
		free(copy);
	}

	for (size_t n = 16; n < good.len; n++) {
		char *copy = malloc(n);
		struct strlist l = {0};
		memcpy(copy, good.data, n);
		assert_err(collect(copy, n, "f", &l), &err, ERR_INTEGRITY, "at offset");
		free(copy);
	}
}

static void test_files_without_gpu_code(void **state)
{
	(void)state;
	test_write(test_path("empty"), "");
	test_write(test_path("text"), "hello");
	assert_string_equal(listed_file(test_path("empty")), "");
	assert_string_equal(listed_file(test_path("text")), "");
	assert_string_equal(listed_file("/bin/sh"), "");
}

#define SECTION(name, file)                                                                        \
	"__asm__(\".section " name ",\\\"a\\\"\\n.balign 8\\n.incbin \\\"" file                    \
	"\\\"\\n.previous\");\n"

/* A library with the sections that nvcc makes, and a record of its fat binary. */
static const char *library(const char *name, const char *code)
{
	return compile(name, code, "-shared -fPIC");
}

static void test_sections_of_a_library(void **state)
{
	(void)state;
	char *code = arena_printf(
		&arena,
		SECTION(".nv_fatbin", "%s") SECTION("__nv_relfatbin", "%s") SECTION(
			".nv_fatbin", "%s") "__asm__(\".section "
					    ".nvFatBinSegment,\\\"aw\\\"\\n.long 0x466243b1, "
					    "1\\n.quad 0, 0\\n.previous\");\n",
		data_file("plain.fatbin"), data_file("lto.fatbin"), data_file("cuda12_4.fatbin"));
	assert_string_equal(
		listed_file(library("libx.so", code)),
		"cubin sm_90, cubin sm_80, cubin sm_90a, PTX sm_90, LTO code sm_80 relocatable");
}

static void test_sections_that_are_malformed(void **state)
{
	(void)state;
	struct strlist l = {0};
	library("a.so", "__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.ascii \\\"nothing of the "
			"sort\\\"\\n.previous\");");
	assert_err(scan_file(test_path("a.so"), &l), &err, ERR_INTEGRITY,
		   "not a fat binary where one must be");
	library("b.so",
		"__asm__(\".section .nvFatBinSegment,\\\"aw\\\"\\n.quad 1, 2, 3\\n.previous\");");
	assert_err(scan_file(test_path("b.so"), &l), &err, ERR_INTEGRITY,
		   "not a record of a fat binary where one must be");
}

static void test_section_headers_outside(void **state)
{
	(void)state;
	char *code = arena_printf(&arena, SECTION(".nv_fatbin", "%s"), data_file("plain.fatbin"));
	AUTO_BUF struct buf b = {0};
	library("libx.so", code);
	assert_ok(fs_read(TRUSTED, test_path("libx.so"), 1 << 22, &b, &err), &err);
	Elf64_Ehdr *h = (Elf64_Ehdr *)b.data;
	const Elf64_Ehdr good = *h;
	struct strlist l = {0};
	h->e_shoff = b.len;
	assert_err(collect(b.data, b.len, "f", &l), &err, ERR_INTEGRITY, "outside of the file");
	*h = good;
	h->e_shnum = 0xfeff;
	assert_err(collect(b.data, b.len, "f", &l), &err, ERR_INTEGRITY,
		   "do not fit into the file");
	*h = good;
	h->e_shstrndx = h->e_shnum;
	assert_err(collect(b.data, b.len, "f", &l), &err, ERR_INTEGRITY, "names of sections");
	*h = good;
	/* Without any headers the code is found by itself. */
	h->e_shoff = 0;
	h->e_shnum = 0;
	assert_string_equal(listed(&b), "cubin sm_90");
}

static void test_static_archives(void **state)
{
	(void)state;
	char *code = arena_printf(&arena, SECTION(".nv_fatbin", "%s"), data_file("plain.fatbin"));
	char *other =
		arena_printf(&arena, SECTION("__nv_relfatbin", "%s"), data_file("cuda12_4.fatbin"));
	compile("a.o", code, "-c");
	compile("a_name_that_is_long_for_an_archive.o", other, "-c");
	test_write(test_path("odd.txt"), "odd");
	must("ar rc libx.a odd.txt a.o a_name_that_is_long_for_an_archive.o");
	assert_string_equal(
		listed_file(test_path("libx.a")),
		"a.o: cubin sm_90, a_name_that_is_long_for_an_archive.o: cubin sm_80 relocatable, "
		"a_name_that_is_long_for_an_archive.o: cubin sm_90a relocatable, "
		"a_name_that_is_long_for_an_archive.o: PTX "
		"sm_90 relocatable");
	struct strlist l = {0};
	must("head -c 100 libx.a > cut.a; printf '!<arch>\\nnothing of the sort, but long enough "
	     "to be a header of "
	     "one.....' > none.a; "
	     "head -c 4000 libx.a > half.a");
	assert_err(scan_file(test_path("cut.a"), &l), &err, ERR_INTEGRITY, "archive");
	assert_err(scan_file(test_path("none.a"), &l), &err, ERR_INTEGRITY,
		   "not a member header where one must be");
	assert_err(scan_file(test_path("half.a"), &l), &err, ERR_INTEGRITY, "leaves the file");
}

static void test_order_of_targets(void **state)
{
	(void)state;
	assert_true(fatbin_target_cmp("90", "100") < 0);
	assert_true(fatbin_target_cmp("90", "90a") < 0);
	assert_true(fatbin_target_cmp("100a", "100f") < 0);
	assert_int_equal(fatbin_target_cmp("90a", "90a"), 0);
	assert_true(fatbin_target_cmp("120", "90a") > 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_nvcc_makes),
		TEST(test_contents_agree_with_headers),
		TEST(test_targets_inside),
		TEST(test_several_with_padding),
		TEST(test_families_and_unknown_kinds),
		TEST(test_contents_for_another_target),
		TEST(test_compressed_contents),
		TEST(test_malformed),
		TEST(test_files_without_gpu_code),
		TEST(test_sections_of_a_library),
		TEST(test_sections_that_are_malformed),
		TEST(test_section_headers_outside),
		TEST(test_static_archives),
		TEST(test_order_of_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
