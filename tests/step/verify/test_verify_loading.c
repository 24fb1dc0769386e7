/* What the loader does with the names that libraries ask for: versions of a name
 * that nothing loads, symbols that a host program has, libraries of the driver. */
#include "foreign_fixture.h"

#include <elf.h>

static const struct tables *tables;

static int load(void **state)
{
	static struct arena rows;

	if (load_policy(state) != 0)
		return -1;
	tables = shipped_tables(&rows);
	return 0;
}

static struct verify_report judge_with(const char *metadata)
{
	const struct maker m = {.metadata = metadata};
	return verify_with((struct verify_request){
		.wheel = wheel_by("p-1-py3-none-manylinux_2_17_x86_64.whl", &m), .tables = tables});
}

static struct verify_report judge(void)
{
	return judge_with("");
}

static void assert_silent(const struct verify_report *r)
{
	if (r->errors || r->warnings)
		fail_msg("%s", verify_text(r, &arena));
}

#define F "int f(void) { return 1; }\n"
#define G "int f(void); int g(void) { return f(); }\n"
#define ORIGIN " -Wl,--disable-new-dtags,-rpath,'$ORIGIN'"

/* A library of this file name with the version V1 of f, or without any. */
static void versioned(const char *name, const char *soname, bool versions)
{
	test_write(test_path("map"),
		   versions ? "V1 { global: f; local: *; };" : "{ global: f; local: *; };");
	library(name, F,
		arena_printf(&arena, "-Wl,-soname,%s,--version-script,'%s'", soname,
			     test_path("map")));
}

/* The DT_NEEDED entry `from` becomes `to`, whose
 * text is a symbol's name; the versions keep theirs. */
static void rename_needed(const char *name, const char *from, const char *to)
{
	size_t size;
	char *data = read_bytes(file(name), &size);
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)data;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(data + h->e_shoff);
	size_t k = 0;

	while (s[k].sh_type != SHT_DYNAMIC)
		k++;
	const Elf64_Shdr *texts = &s[s[k].sh_link];
	char *table = data + texts->sh_offset;
	char *found = memmem(table, texts->sh_size, to, strlen(to) + 1);
	assert_non_null(found);
	Elf64_Dyn *d = (Elf64_Dyn *)(data + s[k].sh_offset);
	for (; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && strcmp(table + d->d_un.d_val, from) == 0)
			d->d_un.d_val = (Elf64_Xword)(found - table);
	test_write_bytes(file(name), data, size);
	free(data);
}

/* p/c.so needs V1 of libfoo.so.1, and by DT_NEEDED libfox.so.1 instead, which has it. */
static void make_renamed(void)
{
	test_dir();
	versioned("p/libfoo.so.1", "libfoo.so.1", true);
	library("p/c.so", G "int fox __asm__(\"libfox.so.1\") = 1;\n",
		arena_printf(&arena, "'%s'" ORIGIN, file("p/libfoo.so.1")));
	rename_needed("p/c.so", "libfoo.so.1", "libfox.so.1");
	shell("mv '%s' '%s'", file("p/libfoo.so.1"), test_path("kept"));
	versioned("p/libfox.so.1", "libfox.so.1", true);
}

static void test_needed_renamed_without_its_versions(void **state)
{
	(void)state;
	make_renamed();
	struct verify_report r = judge();
	assert_only_error(&r, "undefined", "p/c.so", "'libfoo.so.1'");
	assert_found(&r, FINDING_ERROR, "undefined", "p/c.so", "'libfox.so.1' has them");
	/* The first name beside it changes nothing: no entry asks for it. */
	shell("cp '%s' '%s'", test_path("kept"), file("p/libfoo.so.1"));
	r = judge();
	assert_only_error(&r, "undefined", "p/c.so", "'libfoo.so.1'");
}

static void test_name_that_another_library_loads(void **state)
{
	(void)state;
	make_renamed(); /* libfox.so.1 loads libfoo.so.1 itself: the name is known */
	shell("cp '%s' '%s'", test_path("kept"), file("p/libfoo.so.1"));
	test_write(test_path("map"), "V1 { global: f; local: *; };");
	library("p/libfox.so.1", F,
		arena_printf(&arena,
			     "-Wl,-soname,libfox.so.1,--version-script,'%s' -Wl,--no-as-needed "
			     "'%s'" ORIGIN,
			     test_path("map"), file("p/libfoo.so.1")));
	struct verify_report r = judge();
	assert_silent(&r);
	make_renamed(); /* only a library that need not be loaded before asks for it */
	shell("cp '%s' '%s'", test_path("kept"), file("p/libfoo.so.1"));
	library("p/d.so", G, arena_printf(&arena, "'%s'" ORIGIN, file("p/libfoo.so.1")));
	r = judge();
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "undefined", "p/c.so", "'libfoo.so.1'");
}

static void test_soname_that_is_not_the_file_name(void **state)
{
	(void)state;
	/* found by its file name, its versions asked for
	 * by its SONAME: the loader knows the first alone */
	test_dir();
	versioned("p/libfoo.so.1", "libfoo.so.1", true);
	library("p/c.so", G "int fox __asm__(\"libfoo_a1b2.so\") = 1;\n",
		arena_printf(&arena, "'%s'" ORIGIN, file("p/libfoo.so.1")));
	rename_needed("p/c.so", "libfoo.so.1", "libfoo_a1b2.so");
	shell("mv '%s' '%s'", file("p/libfoo.so.1"), file("p/libfoo_a1b2.so"));
	struct verify_report r = judge();
	assert_only_error(&r, "undefined", "p/c.so", "'libfoo.so.1'");
}

static void test_versions_of_a_runtime_that_no_entry_asks_for(void **state)
{
	(void)state;
	test_dir();
	versioned("p/libcudart.so.12", "libcudart.so.12", true);
	library("p/c.so", G "int m __asm__(\"libc.so.6\") = 1;\n",
		arena_printf(&arena, "'%s'", file("p/libcudart.so.12")));
	rename_needed("p/c.so", "libcudart.so.12", "libc.so.6");
	unlink(file("p/libcudart.so.12"));
	struct verify_report r = judge_with("Requires-Dist: nvidia-cuda-runtime-cu12\n");
	assert_int_equal(r.errors, 0);
	assert_found(&r, FINDING_WARNING, "undefined", "p/c.so", "'libcudart.so.12'");
}

static void test_version_that_the_library_inside_lacks(void **state)
{
	(void)state;
	test_dir();
	versioned("p/libfoo.so.1", "libfoo.so.1", true);
	library("p/c.so", G, arena_printf(&arena, "'%s'" ORIGIN, file("p/libfoo.so.1")));
	struct verify_report r = judge();
	assert_silent(&r);
	test_write(test_path("map"), "V2 { global: f; local: *; };");
	library("p/libfoo.so.1", F,
		arena_printf(&arena, "-Wl,-soname,libfoo.so.1,--version-script,'%s'",
			     test_path("map")));
	r = judge();
	assert_only_error(&r, "undefined", "p/c.so", "'V1' of 'libfoo.so.1'");
	versioned("p/libfoo.so.1", "libfoo.so.1", false); /* without any it has all */
	r = judge();
	assert_silent(&r);
}

/* To link with, or a back end that another library
 * loads by its name: the symbols are its program's. */
static void test_symbols_of_a_host_program(void **state)
{
	(void)state;
	test_dir();
	library("p-1.data/data/lib/libback.so.2", G, "-Wl,-soname,libback.so.2");
	struct verify_report r = judge();
	assert_silent(&r);
	assert_found(&r, FINDING_NOTE, "undefined", "libback.so.2", "'f'");
	test_dir();
	library("p/libback.so.2", G, "-Wl,-soname,libback.so.2");
	r = judge();
	assert_only_error(&r, "undefined", "p/libback.so.2", "'f'");
	library("p/libfront.so", "const char *back(void) { return \"libback.so.2\"; }\n", "");
	r = judge();
	assert_silent(&r);
	assert_found(&r, FINDING_NOTE, "undefined", "p/libback.so.2", "'f'");
}

static void test_symbols_of_what_python_loads(void **state)
{
	(void)state;
	/* a module is loaded by Python, which has no such symbols, and so is what it needs */
	test_dir();
	library("p/libfront.so", "const char *back(void) { return \"libback.so.2 c.so\"; }\n", "");
	library("p/c.so", G "void *PyInit_c(void) { return 0; }\n", "");
	struct verify_report r = judge();
	assert_only_error(&r, "undefined", "p/c.so", "'f'");
	library("p/libback.so.2", G, "-Wl,-soname,libback.so.2");
	library("p/c.so", "int g(void); void *PyInit_c(void) { return g() ? 0 : (void *)1; }\n",
		arena_printf(&arena, "'%s'" ORIGIN, file("p/libback.so.2")));
	r = judge();
	assert_only_error(&r, "undefined", "p/libback.so.2", "'f'");
}

static void test_library_of_the_driver(void **state)
{
	static const char *const names[] = {"libcuda.so.1", "libcuda-0a1b2c3d.so.1.1",
					    "libnvidia-ml.so.1", "libnvcuvid.so.1",
					    "libnvidia-ptxjitcompiler.so.1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		test_dir();
		const char *path = arena_printf(&arena, "p/%s", names[i]);
		library(path, F, arena_printf(&arena, "-Wl,-soname,%s", names[i]));
		struct verify_report r = judge();
		assert_int_equal(r.errors, 0);
		assert_found(&r, FINDING_WARNING, "driver", path, "NVIDIA's driver");
		library("p/c.so", G, arena_printf(&arena, "'%s'" ORIGIN, file(path)));
		r = judge();
		assert_only_error(&r, "driver", path, "'p/c.so' loads it");
	}

	/* without a search path the machine's is found, and so it is where a stub lies */
	test_dir();
	library("p/libcuda.so.1", F, "-Wl,-soname,libcuda.so.1");
	library("p/c.so", G, arena_printf(&arena, "'%s'", file("p/libcuda.so.1")));
	shell("mkdir -p '%s' && mv '%s' '%s'", file("p/stubs"), file("p/libcuda.so.1"),
	      file("p/stubs/libcuda.so"));
	struct verify_report r = judge();
	assert_silent(&r);
	assert_found(&r, FINDING_NOTE, "driver", "p/stubs/libcuda.so", "for linking");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_needed_renamed_without_its_versions),
		TEST(test_name_that_another_library_loads),
		TEST(test_soname_that_is_not_the_file_name),
		TEST(test_versions_of_a_runtime_that_no_entry_asks_for),
		TEST(test_version_that_the_library_inside_lacks),
		TEST(test_symbols_of_a_host_program),
		TEST(test_symbols_of_what_python_loads),
		TEST(test_library_of_the_driver),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
