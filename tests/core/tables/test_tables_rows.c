/* A GPU and an instruction set are a row each: added to a copy of the tables, they plan. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/fs.h"
#include "core/plan/plan.h"
#include "core/variant/variant.h"

#define SM88 "  - {sm: \"88\", capability: \"8.8\", name: Ampere, cuda_min: \"13.0\"}\n"
#define ZNVER5                                                                                     \
	"  - {name: znver5, platform: x86_64-linux, flags: [-march=znver5], cpuinfo: [avx512f], "  \
	"gcc_min: \"14\", "                                                                        \
	"clang_min: \"19\", "                                                                      \
	"cpus: Zen 5}\n"

/* A copy of the shipped tables, in which nothing knows sm88. */
static const char *copy_without_sm88(void)
{
	struct err e = {0};

	test_dir();
	const char *dir = test_path("%s", "profiles");
	assert_ok(fs_copy_tree(PROFILES_DIR, dir, &e), &e);
	AUTO_FREE char *text = test_read(test_path("profiles/gpu.yaml"));
	char *row = strstr(text, "  - {sm: \"88\"");
	assert_non_null(row);
	char *next = strstr(row + 1, "\n  ");
	assert_non_null(next);
	memmove(row, next + 1, strlen(next + 1) + 1);
	assert_null(strstr(text, "\"88\""));
	test_write(test_path("profiles/gpu.yaml"), text);
	return test_path("%s", "profiles");
}

/* Puts a row behind the line that begins a list. */
static void add_row(const char *file, const char *list, const char *row)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_FREE char *text = test_read(test_path("profiles/%s", file));
	const char *at = strstr(text, list);

	assert_non_null(at);
	at += strlen(list);
	test_write(test_path("profiles/%s", file),
		   arena_printf(&a, "%.*s%s%s", (int)(at - text), text, row, at));
}

static const struct tables *load(const char *dir, struct arena *a)
{
	struct err e = {0};
	const struct tables *t = NULL;

	assert_ok(tables_load(dir, a, &t, &e), &e);
	return t;
}

static const struct plan *plan_of(const struct tables *t, const char *name, struct arena *a)
{
	struct variant v;
	struct err e = {0};
	const struct plan *p = NULL;

	assert_ok(variant_parse(t, name, a, &v, &e), &e);
	assert_string_equal(variant_name(&v, a), name);
	struct plan_request q = {.variant = &v, .release = "2.9.1"};
	assert_ok(plan_resolve(t, &q, a, &p, &e), &e);
	return p;
}

static void without_their_rows_they_are_unknown(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = load(copy_without_sm88(), &a);
	struct variant v;
	struct err e = {0};
	assert_err(variant_parse(t, "pytorch-python313-cuda13_0-sm88-avx2", &a, &v, &e), &e,
		   ERR_CONFIG, "unknown GPU target 'sm88'");
	assert_err(variant_parse(t, "pytorch-python313-cpu-znver5", &a, &v, &e), &e, ERR_CONFIG,
		   "unknown instruction set 'znver5'");
}

static void sm88_is_one_row(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const char *dir = copy_without_sm88();
	add_row("gpu.yaml", "gpus:\n", SM88);
	const struct plan *p = plan_of(load(dir, &a), "pytorch-python313-cuda13_0-sm88-avx2", &a);
	assert_string_equal(settings_value(&p->env, "TORCH_CUDA_ARCH_LIST"), "8.8");
	assert_string_equal(p->local_label, "cu130.sm88.avx2");
}

static void znver5_is_one_row(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const char *dir = copy_without_sm88();
	add_row("isa.yaml", "isas:\n", ZNVER5);
	const struct plan *p = plan_of(load(dir, &a), "pytorch-python313-cpu-znver5", &a);
	assert_string_equal(settings_value(&p->env, "CXXFLAGS"), "-march=znver5");
	assert_string_equal(p->local_label, "cpu.znver5");
}

static void both_together_and_in_a_matrix(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const char *dir = copy_without_sm88();
	add_row("gpu.yaml", "gpus:\n", SM88);
	add_row("isa.yaml", "isas:\n", ZNVER5);
	test_write(test_path("profiles/matrices/new.yaml"),
		   "note: new\nrelease: 2.9.1\npythons: [\"3.13\"]\nrows:\n  - {gpus: [sm86+sm88, "
		   "sm88], toolkits: [\"13.0\"], isas: [znver5]}\n");
	const struct tables *t = load(dir, &a);
	const struct matrix *m = NULL;
	struct matrix_walk w = {0};
	struct err e = {0};
	const char *name;
	size_t count = 0;
	assert_ok(matrix_load(t, "new", &a, &m, &e), &e);
	for (; (name = matrix_next(m, &w, &a)); count++)
		assert_string_equal(plan_of(t, name, &a)->isa, "znver5");
	assert_int_equal(count, 2);
}

static int count_lines(const char *rel, const struct stat *st, void *user, struct err *e)
{
	size_t *lines = user;

	(void)st;
	(void)e;
	AUTO_ARENA struct arena a = {0};
	/* lists of packages */
	if (strstr(rel, ".yaml") && !strstr(rel, "examples/") && !strstr(rel, "worlds/")) {
		AUTO_FREE char *text = test_read(arena_printf(&a, PROFILES_DIR "/%s", rel));
		for (const char *c = text; c && *c; c++)
			*lines += *c == '\n';
	}

	return 0;
}

/* "Small enough to read": not a budget for its own
 * sake, but a jump means that something was copied. */
static void the_tables_stay_small(void **state)
{
	(void)state;
	struct err e = {0};
	size_t lines = 0;
	assert_ok(fs_walk(TRUSTED, PROFILES_DIR, count_lines, &lines, &e), &e);
	print_message("           %zu lines of tables\n", lines);
	assert_true(lines > 300 && lines < 3500);
}

#define TEST(f) cmocka_unit_test_teardown(f, test_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_their_rows_they_are_unknown),
		TEST(sm88_is_one_row),
		TEST(znver5_is_one_row),
		TEST(both_together_and_in_a_matrix),
		TEST(the_tables_stay_small),
	};

	return cmocka_run_group_tests_name("tables_rows", tests, NULL, NULL);
}
