#include "support.h"

#include <string.h>

#include "core/plan/plan.h"
#include "core/plan/runs_on.h"

static struct arena arena;
static const struct tables *tables;

static int load(void **state)
{
	struct err e = {0};

	(void)state;
	assert_ok(tables_load(PROFILES_DIR, &arena, &tables, &e), &e);
	return 0;
}

static int release(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct promise of(const char *label)
{
	struct promise p;
	promise_of_label(tables, label, &arena, &p);
	return p;
}

static void labels_of_processors(void **state)
{
	static const char *const names[] = {"avx",        "avx2",       "avx512",
					    "avx512bf16", "avx512vnni", "avx512amx"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct promise p = of(arena_printf(&arena, "cpu.%s", names[i]));
		assert_true(p.binding);
		assert_string_equal(p.isa->name, names[i]);
		assert_string_equal(p.platform, "x86_64-linux");
		assert_true(p.gpu_known);
		assert_int_equal(p.gpu.count, 0);
		assert_null(p.cuda);
	}
}

static void labels_spell_names_with_dots(void **state)
{
	(void)state;
	assert_string_equal(of("cpu.armv8.2").isa->name, "armv8_2");
	assert_string_equal(of("cpu.avx10.1").isa->name, "avx10_1");
	assert_string_equal(of("cpu.armv9").isa->name, "armv9");
	assert_string_equal(of("cpu.neoverse.v1").isa->name, "neoverse_v1");
	assert_string_equal(of("cpu.armv8.2").platform, "aarch64-linux");
	/* another BLAS than the platform's first stands behind it */
	assert_string_equal(of("cpu.avx512.mkl").isa->name, "avx512");
	assert_true(of("cpu.avx512.mkl").binding);
}

static void labels_of_gpus(void **state)
{
	(void)state;
	struct promise p = of("cu128.sm90.avx512");
	assert_true(p.binding && p.gpu_known);
	assert_string_equal(p.cuda, "12.8");
	assert_int_equal(p.gpu.count, 1);
	assert_string_equal(p.gpu.items[0], "9.0");
	p = of("cu128.sm80.sm90a.ptx.avx2");
	assert_string_equal(strlist_join(&p.gpu, &arena, " "), "8.0 9.0a+PTX");
	assert_string_equal(p.isa->name, "avx2");
	p = of("cu128.sm80.sm90.ptx"); /* of 'ptbuild slim' */
	assert_true(!p.binding && p.gpu_known && !p.isa && !*p.platform);
	assert_string_equal(strlist_join(&p.gpu, &arena, " "), "8.0 9.0+PTX");
	assert_string_equal(p.cuda, "12.8");
	static const char *const without_toolkit[] = {"sm90", "cu999.sm90", "pt29cu128.sm90",
						      "post1.2.sm90"};
	for (size_t i = 0; i < ARRAY_LEN(without_toolkit); i++) {
		p = of(without_toolkit[i]);
		assert_true(!p.binding && p.gpu_known && !p.cuda);
		assert_string_equal(strlist_join(&p.gpu, &arena, " "), "9.0");
	}

	static const char *const others[] = {"smith", "sm", "sm90.x", "sm90.avx2", "ptx", "cu128"};
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(of(others[i]).gpu_known);
}

static void the_stem_of_a_profile_file_may_follow(void **state)
{
	(void)state;
	struct promise p = of("cu128.sm89.avx512.l40s.server");
	assert_true(p.binding);
	assert_string_equal(p.isa->name, "avx512");
}

/* Every label that a recipe's variant gets is understood, and says what the variant says. */
static void labels_of_every_recipe(void **state)
{
	char *text = test_read(TEST_DATA_DIR "/recipe-names.txt"), *save = NULL;
	unsigned count = 0;

	(void)state;
	assert_non_null(text);
	for (char *name = strtok_r(text, "\n", &save); name; name = strtok_r(NULL, "\n", &save)) {
		struct variant v;
		struct err e = {0};
		struct promise want;
		assert_ok(variant_parse(tables, name, &arena, &v, &e), &e);
		if (v.profile.gpu == GPU_MPS)
			continue;
		struct promise got = of(profile_label(&v.profile, v.cuda, &arena));
		promise_of_profile(&v.profile, v.cuda, "the test", &arena, &want);
		assert_true(got.binding);
		assert_ptr_equal(got.isa, want.isa);
		assert_string_equal(strlist_join(&got.gpu, &arena, " "),
				    strlist_join(&want.gpu, &arena, " "));
		assert_true(got.cuda == want.cuda || strcmp(got.cuda, want.cuda) == 0);
		count++;
	}

	assert_true(count > 300);
	free(text);
}

static void other_labels_bind_to_nothing(void **state)
{
	static const char *const labels[] = {"",
					     "cpu",
					     "cu128",
					     "cu124",
					     "cpu.avx3",
					     "gpu.avx2",
					     "cu128.avx2",
					     "cu12x.sm90.avx2",
					     "cu128.sm12345.avx2",
					     "git1234567",
					     "mps",
					     "sm90.avx512",
					     "avx2",
					     "cpu..",
					     "cu128.ptx.avx2"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
		struct promise p = of(labels[i]);
		assert_false(p.binding);
		assert_false(p.gpu_known);
		assert_null(p.isa);
		assert_string_equal(p.platform, "");
	}

	/* What people's own wheels are named by tells the toolkit all the same. */
	assert_string_equal(of("cu128").cuda, "12.8");
	assert_null(of("cpu").cuda);
}

static void the_source_is_named(void **state)
{
	(void)state;
	assert_string_equal(of("cpu.avx2").from, "its label 'cpu.avx2'");
	assert_string_equal(of("").from, "no label");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_of_processors),
		cmocka_unit_test(labels_spell_names_with_dots),
		cmocka_unit_test(labels_of_gpus),
		cmocka_unit_test(the_stem_of_a_profile_file_may_follow),
		cmocka_unit_test(labels_of_every_recipe),
		cmocka_unit_test(other_labels_bind_to_nothing),
		cmocka_unit_test(the_source_is_named),
	};

	return cmocka_run_group_tests(tests, load, release);
}
