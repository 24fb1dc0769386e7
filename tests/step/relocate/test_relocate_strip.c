/* Which names stay in a wheel, and that they let it be verified. */
#include "elf_files.h"

#include "core/code/code.h"
#include "core/tables/tables.h"
#include "shipped.h"
#include "step/relocate/relocate.h"

static const struct manylinux_policy *policy;
static const struct isa_rules *rules;
static const struct tables *tables;

#define KERNEL                                                                                     \
	"#include <immintrin.h>\n"                                                                 \
	"__attribute__((target(\"avx512f\"), noinline)) static void kernel(float *p)\n"            \
	"{ _mm512_storeu_ps(p, _mm512_add_ps(_mm512_loadu_ps(p), _mm512_loadu_ps(p + 16))); }\n"   \
	"__attribute__((noinline)) static int plain(int x) { return x + 41; }\n"                   \
	"void (*table[])(float *) = {kernel};\n"                                                   \
	"int answer(void) { return plain(table[0] != 0); }\n"

static int load_tables(void **state)
{
	static struct arena rows;

	(void)state;
	tables = shipped_tables(&rows);
	policy = &tables->manylinux;
	rules = shipped_rules(&rows);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	test_dir();
	return 0;
}

static struct relocate_result relocate(const struct isa_rules *code, const char *isa)
{
	struct relocate_result r;
	struct err e = {0};

	must("mkdir -p tree/pkg root/usr/bin root/usr/lib");
	compile("tree/pkg/kernel.AVX512.so", KERNEL, SHARED);
	struct root root = {.dir = arena_strdup(&arena, test_path("root")), .id = "test 1"};
	struct relocate_request q = {.run = test_run(),
				     .tree = arena_strdup(&arena, test_path("tree")),
				     .root = &root,
				     .libs_dir = "pkg/lib",
				     .policy = policy,
				     .code = code,
				     .isa = isa ? tables_isa(tables, isa) : NULL};
	assert_ok(relocate_tree(&q, &arena, &r, &e), &e);
	return r;
}

/* The names of the library's functions, "name of file" where the file is known. */
static const char *names(void)
{
	struct elf_map m;
	struct code_map map;
	struct strlist list = {0};
	struct err e = {0};

	assert_ok(elf_map_open(test_path("tree/pkg/kernel.AVX512.so"), &m, &e), &e);
	assert_ok(code_map_read(&m, &arena, &map, &e), &e);
	for (size_t i = 0; i < map.count; i++) {
		const struct code_range *r = &map.ranges[i];
		if (r->name && r->unit)
			strlist_addf(&list, &arena, "%s of %s", r->name, r->unit);
		else if (r->name)
			strlist_add(&list, &arena, r->name);
	}

	elf_map_close(&m);
	strlist_sort(&list);
	return strlist_join(&list, &arena, ", ");
}

static void names_beyond_the_promise_stay(void **state)
{
	(void)state;
	assert_int_equal(relocate(rules, "avx2").stripped, 1);
	assert_string_equal(names(), "answer, kernel of kernel.AVX512.so.c");
	assert_int_equal(load("tree/pkg/kernel.AVX512.so", "answer"), 42);
	must("! ls tree/pkg/*.names tree/pkg/*.stripped");
}

static void within_the_promise_no_name_stays(void **state)
{
	(void)state;
	assert_int_equal(relocate(rules, "avx512").stripped, 1);
	assert_string_equal(names(), "answer");
	assert_true(read_info(test_path("tree/pkg/kernel.AVX512.so")).stripped);
}

static void without_rules_no_name_stays(void **state)
{
	(void)state;
	relocate(NULL, "avx2");
	assert_string_equal(names(), "answer");
}

static void the_same_bytes_come_out_twice(void **state)
{
	(void)state;
	relocate(rules, "avx2");
	must("cp tree/pkg/kernel.AVX512.so first && rm -r tree");
	relocate(rules, "avx2");
	must("cmp first tree/pkg/kernel.AVX512.so");
}

static void a_tool_that_fails_leaves_the_library(void **state)
{
	struct relocate_result r;
	struct err e = {0};

	(void)state;
	must("mkdir -p tree/pkg root/usr/bin root/usr/lib bin && printf '#!/bin/sh\\nexit 3\\n' > "
	     "bin/objcopy && chmod "
	     "+x bin/objcopy");
	compile("tree/pkg/kernel.AVX512.so", KERNEL, SHARED);
	must("cp tree/pkg/kernel.AVX512.so before");
	struct root root = {.dir = arena_strdup(&arena, test_path("root")), .id = "test 1"};
	struct relocate_request q = {.run = test_run(),
				     .tree = arena_strdup(&arena, test_path("tree")),
				     .root = &root,
				     .libs_dir = "pkg/lib",
				     .policy = policy,
				     .code = rules,
				     .isa = tables_isa(tables, "avx2")};
	char *path = arena_strdup(&arena, getenv("PATH"));
	setenv("PATH", arena_printf(&arena, "%s:%s", test_path("bin"), path), 1);
	int rc = relocate_tree(&q, &arena, &r, &e);
	setenv("PATH", path, 1);
	assert_int_equal(rc, -1);
	assert_contains(e.msg, "cannot strip 'pkg/kernel.AVX512.so'");
	must("cmp before tree/pkg/kernel.AVX512.so && test \"$(ls tree/pkg)\" = kernel.AVX512.so");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(names_beyond_the_promise_stay),        T(within_the_promise_no_name_stays),
		T(without_rules_no_name_stays),          T(the_same_bytes_come_out_twice),
		T(a_tool_that_fails_leaves_the_library),
	};

	return cmocka_run_group_tests(tests, load_tables, NULL);
}
