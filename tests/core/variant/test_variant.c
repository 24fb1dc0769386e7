#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "core/variant/variant.h"

static const struct tables *shipped(struct arena *a)
{
	const struct tables *t = NULL;
	struct err e = {0};

	assert_ok(tables_load(PROFILES_DIR, a, &t, &e), &e);
	return t;
}

/* tests/data/recipe-names.txt holds the distinct names
 * of the recipes that ptbuild replaces, as they stand. */
static void every_recipe_name_parses(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct err e = {0};
	char *text = test_read(TEST_DATA_DIR "/recipe-names.txt");
	unsigned count = 0;

	(void)state;
	assert_non_null(text);
	for (char *name = strtok(text, "\n"); name; name = strtok(NULL, "\n"), count++) {
		struct variant v = {0};
		struct variant again = {0};
		assert_true(variant_looks_like(name));
		assert_ok(variant_parse(t, name, &a, &v, &e), &e);
		const char *canonical = variant_name(&v, &a);
		if (!strstr(name, "armv8.2"))
			assert_string_equal(canonical, name);
		assert_ok(variant_parse(t, canonical, &a, &again, &e), &e);
		assert_string_equal(variant_name(&again, &a), canonical);
	}

	assert_int_equal(count, 342);
	free(text);
}

static void parts_of_a_gpu_variant(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct variant v = {0};
	struct err e = {0};

	(void)state;
	assert_ok(variant_parse(shipped(&a), "pytorch-python313-cuda12_8-sm80+sm90a+ptx-avx512", &a,
				&v, &e),
		  &e);
	assert_string_equal(v.package, "pytorch");
	assert_string_equal(v.python, "3.13");
	assert_string_equal(v.cuda, "12.8");
	assert_int_equal(v.profile.targets_count, 2);
	assert_string_equal(v.profile.isa->name, "avx512");
}

static void parts_of_a_cpu_variant(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct variant v = {0};
	struct err e = {0};

	(void)state;
	assert_ok(variant_parse(shipped(&a), "torchvision-python39-cpu-avx2", &a, &v, &e), &e);
	assert_string_equal(v.package, "torchvision");
	assert_string_equal(v.python, "3.9");
	assert_null(v.cuda);
}

static void parts_of_a_mac_variant(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct variant v = {0};
	struct err e = {0};

	(void)state;
	assert_ok(variant_parse(shipped(&a), "pytorch-python311-darwin-mps", &a, &v, &e), &e);
	assert_int_equal(v.profile.gpu, GPU_MPS);
	assert_string_equal(v.python, "3.11");
	assert_string_equal(variant_name(&v, &a), "pytorch-python311-darwin-mps");
}

static void both_spellings_of_armv8_2(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct variant v = {0};
	struct err e = {0};

	(void)state;
	assert_ok(variant_parse(t, "torchaudio-python313-cuda12_8-sm90-armv8.2", &a, &v, &e), &e);
	assert_string_equal(variant_name(&v, &a), "torchaudio-python313-cuda12_8-sm90-armv8_2");
}

static void an_example_can_be_a_variants_profile(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct variant v = {0};
	struct err e = {0};

	(void)state;
	assert_ok(variant_parse(t, "pytorch-python312-cuda12_8-l40s-server", &a, &v, &e), &e);
	assert_string_equal(v.profile.name, "l40s-server");
	assert_string_equal(variant_name(&v, &a), "pytorch-python312-cuda12_8-l40s-server");
}

/* What was understood, what it is spelled as, and that this spelling stays. */
static void every_form_has_one_spelling(void **state)
{
	static const struct {
		const char *given;
		const char *canonical;
	} cases[] = {
		{"pytorch-python313-cuda12_8-sm90-avx512",
		 "pytorch-python313-cuda12_8-sm90-avx512"},
		{"pytorch-python313-cuda12_8-sm90+sm80-avx2",
		 "pytorch-python313-cuda12_8-sm80+sm90-avx2"},
		{"pytorch-python313-cuda12_8-sm90+sm80+sm90+ptx-avx2",
		 "pytorch-python313-cuda12_8-sm80+sm90+ptx-avx2"},
		{"pytorch-python313-cuda12_9-sm100f+sm90a-avx2",
		 "pytorch-python313-cuda12_9-sm90a+sm100f-avx2"},
		{"pytorch-python313-cuda13_0-sm110-armv8.2",
		 "pytorch-python313-cuda13_0-sm110-armv8_2"},
		{"pytorch-python313-cpu-graviton3", "pytorch-python313-cpu-neoverse_v1"},
		{"python313Packages.pytorch-sm90-avx512", "python313Packages.pytorch-sm90-avx512"},
		{"python313Packages.pytorch-sm90+sm86-avx2",
		 "python313Packages.pytorch-sm86+sm90-avx2"},
		{"python313Packages.pytorch-cpu-avx2", "pytorch-python313-cpu-avx2"},
		{"python312Packages.torchvision-cuda12_9-sm90-armv8.2",
		 "torchvision-python312-cuda12_9-sm90-armv8_2"},
		{"python311Packages.pytorch-darwin-mps", "pytorch-python311-darwin-mps"},
		{"python39Packages.torchaudio-cpu-avx", "torchaudio-python39-cpu-avx"},
	};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct variant v = {0};
		struct variant again = {0};
		struct err e = {0};
		assert_true(variant_looks_like(cases[i].given));
		assert_ok(variant_parse(t, cases[i].given, &a, &v, &e), &e);
		assert_string_equal(variant_name(&v, &a), cases[i].canonical);
		assert_ok(variant_parse(t, cases[i].canonical, &a, &again, &e), &e);
		assert_string_equal(variant_name(&again, &a), cases[i].canonical);
		assert_string_equal(again.package, v.package);
		assert_string_equal(again.python, v.python);
	}
}

/* Every GPU target with every suffix and every instruction set, for each package. */
static void every_composed_name_is_its_own_spelling(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	unsigned count = 0;

	(void)state;
	for (unsigned g = 0; g < t->gpus_count; g++)
		for (unsigned s = 0; s <= t->gpus[g].suffixes_count; s++)
			for (unsigned i = 0; i < t->isas_count; i++, count++) {
				AUTO_ARENA struct arena scratch = {0};
				const char *suffix = s ? t->gpus[g].suffixes[s - 1].suffix : "";
				const char *name = arena_printf(
					&scratch, "%s-python313-cuda12_9-sm%s%s%s-%s",
					tables_packages[count % 3], t->gpus[g].sm, suffix,
					count % 2 ? "+ptx" : "", t->isas[i].name);
				struct variant v = {0};
				struct err e = {0};
				assert_ok(variant_parse(t, name, &scratch, &v, &e), &e);
				assert_string_equal(variant_name(&v, &scratch), name);
			}
	assert_true(count > 200);
}

static void the_older_form_leaves_the_toolkit_open(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct variant v = {0};
	struct err e = {0};

	(void)state;
	assert_ok(variant_parse(shipped(&a), "python313Packages.pytorch-sm90-avx512", &a, &v, &e),
		  &e);
	assert_string_equal(v.package, "pytorch");
	assert_string_equal(v.python, "3.13");
	assert_null(v.cuda);
	assert_int_equal(v.profile.targets_count, 1);
}

static void wrong_names(void **state)
{
	static const struct {
		const char *given;
		const char *message;
		const char *hint;
	} cases[] = {
		{"torch-python313-cpu-avx2", "unknown package 'torch'", "did you mean 'pytorch'"},
		{"pytroch-python313-cpu-avx2", "unknown package 'pytroch'",
		 "did you mean 'pytorch'"},
		{"torchvison-python313-cpu-avx2", "unknown package 'torchvison'",
		 "did you mean 'torchvision'"},
		{"tensorflow-python313-cpu-avx2", "unknown package 'tensorflow'",
		 "pytorch, torchvision or torchaudio"},
		{"pytorch-cpu-avx2", "no Python in variant", "pytorch-python313"},
		{"pytorch", "no Python in variant", "pytorch-python313"},
		{"", "unknown package ''", "pytorch, torchvision or torchaudio"},
		{"pytorch-python31-cpu-avx2", "unknown Python 'python31'", "did you mean 'python3"},
		{"pytorch-python3.13-cpu-avx2", "unknown Python 'python3.13'",
		 "did you mean 'python313'"},
		{"pytorch-python-cpu-avx2", "unknown Python 'python'", "python313"},
		{"pytorch-python27-cpu-avx2", "unknown Python 'python27'", "known"},
		{"pytorch-python313", "no profile in variant",
		 "pytorch-python313-cuda12_8-sm90-avx512"},
		{"pytorch-python313-", "unknown profile ''", "sm90-avx512"},
		{"pytorch-python313-cuda12_5-sm90-avx2", "unknown toolkit 'cuda12_5'",
		 "did you mean 'cuda12_4'"},
		{"pytorch-python313-cuda12.8-sm90-avx2", "unknown toolkit 'cuda12.8'",
		 "did you mean 'cuda12_8'"},
		{"pytorch-python313-cuda128-sm90-avx2", "unknown toolkit 'cuda128'",
		 "did you mean 'cuda12_8'"},
		{"pytorch-python313-cuda-sm90-avx2", "unknown toolkit 'cuda'", "cuda12_8"},
		{"pytorch-python313-sm90-avx2", "no toolkit in variant",
		 "pytorch-python313-cuda12_8-sm90-avx2"},
		{"pytorch-python313-cuda12_8-cpu-avx2", "toolkit '12.8' without a GPU target",
		 "'pytorch-python313-cpu-avx2'"},
		{"pytorch-python313-cuda12_8-darwin-mps", "toolkit '12.8' without a GPU target",
		 "'pytorch-python313-darwin-mps'"},
		{"pytorch-python313-cuda12_8-sm91-avx2", "unknown GPU target 'sm91'", "sm90"},
		{"pytorch-python313-cuda12_8-sm90-avx5122", "unknown instruction set 'avx5122'",
		 "avx512"},
		{"pytorch-python313-cuda12_8-sm90-avx2-extra",
		 "unknown instruction set 'avx2-extra'", "known"},
		{"python313Packages.torch-cpu-avx2", "unknown package 'torch'",
		 "did you mean 'pytorch'"},
		{"python313Packages.pytorch", "no profile in variant",
		 "pytorch-python313-cuda12_8-sm90-avx512"},
		{"python27Packages.pytorch-cpu-avx2", "unknown Python 'python27'", "known"},
		{"python313Packages.pytorch-cuda12_8-cpu-avx2",
		 "toolkit '12.8' without a GPU target", "'pytorch-python313-cpu-avx2'"},
		{"python313Packages.", "unknown package ''", "pytorch, torchvision or torchaudio"},
		{"pythonPackages.pytorch-cpu-avx2", "unknown package",
		 "pytorch, torchvision or torchaudio"},
		{"pytorch-python313-native", "unknown profile 'native'", "--profile native"},
		{"pytorch-python313-cpu-native", "unknown instruction set 'native'",
		 "--profile cpu-native"},
		{"pytorch-python313-mine.yaml", "a file cannot be in variant", "--profile"},
		{"pytorch-python313-cpu-avx2/../x", "a path cannot be in variant", "--profile"},
	};
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = shipped(&a);
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct variant v = {0};
		assert_err(variant_parse(t, cases[i].given, &a, &v, &e), &e, ERR_CONFIG,
			   cases[i].message);
		assert_contains(e.hint, cases[i].hint);
		assert_null(v.package);
	}
}

static void errors_name_the_whole_variant(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct variant v = {0};
	struct err e = {0};

	(void)state;
	assert_err(variant_parse(shipped(&a), "pytorch-python313-cuda12_8-sm91-avx2", &a, &v, &e),
		   &e, ERR_CONFIG,
		   "variant 'pytorch-python313-cuda12_8-sm91-avx2': profile 'sm91-avx2': unknown "
		   "GPU target 'sm91'");
}

static void a_long_name_is_only_wrong(void **state)
{
	AUTO_ARENA struct arena a = {0};
	struct variant v = {0};
	struct err e = {0};
	const char *name = arena_printf(&a, "pytorch-python313-cpu-%0100000d", 0);

	(void)state;
	assert_err(variant_parse(shipped(&a), name, &a, &v, &e), &e, ERR_CONFIG,
		   "variant 'pytorch-python313-cpu-000");
}

static void what_looks_like_a_variant(void **state)
{
	(void)state;
	assert_true(variant_looks_like("pytorch-python313-cpu-avx2"));
	assert_true(variant_looks_like("torchaudio-pythonXX"));
	assert_false(variant_looks_like("sm90-avx512"));
	assert_false(variant_looks_like("pytorch"));
	assert_false(variant_looks_like("torch-python313-cpu-avx2"));
	assert_false(variant_looks_like(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_recipe_name_parses, test_teardown),
		cmocka_unit_test_teardown(parts_of_a_gpu_variant, test_teardown),
		cmocka_unit_test_teardown(parts_of_a_cpu_variant, test_teardown),
		cmocka_unit_test_teardown(parts_of_a_mac_variant, test_teardown),
		cmocka_unit_test_teardown(both_spellings_of_armv8_2, test_teardown),
		cmocka_unit_test_teardown(an_example_can_be_a_variants_profile, test_teardown),
		cmocka_unit_test_teardown(every_form_has_one_spelling, test_teardown),
		cmocka_unit_test_teardown(every_composed_name_is_its_own_spelling, test_teardown),
		cmocka_unit_test_teardown(the_older_form_leaves_the_toolkit_open, test_teardown),
		cmocka_unit_test_teardown(wrong_names, test_teardown),
		cmocka_unit_test_teardown(errors_name_the_whole_variant, test_teardown),
		cmocka_unit_test_teardown(a_long_name_is_only_wrong, test_teardown),
		cmocka_unit_test_teardown(what_looks_like_a_variant, test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
