/* How two plans differ: only that, each side with
 * its origin. And what is said of one plan's values. */
#include "plan_text.h"
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/json.h"
#include "base/term.h"
#include "core/plan/plan.h"

static const struct plan *plan_of(const char *name, const char *release, struct arena *a)
{
	struct variant v;
	struct err e = {0};
	const struct plan *p = NULL;

	assert_ok(variant_parse(tables, name, a, &v, &e), &e);
	struct plan_request q = {.variant = &v, .release = release};
	assert_ok(plan_resolve(tables, &q, a, &p, &e), &e);
	return p;
}

static json_t *compare(const char *left, const char *left_release, const char *right,
		       const char *right_release)
{
	AUTO_ARENA struct arena a = {0};
	return plan_compare(plan_of(left, left_release, &a), plan_of(right, right_release, &a), &a);
}

static const json_t *find(const json_t *doc, const char *section, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(doc, "differences"), i,
			   row) if (strcmp(json_member(row, "section"), section) == 0 &&
				    strcmp(json_member(row, "name"), name) == 0) return row;
	return NULL;
}

static const char *told(const json_t *row, const char *side, const char *what)
{
	return json_member(json_object_get(row, side), what);
}

static void a_plan_does_not_differ_from_itself(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = compare("pytorch-python313-cuda12_8-sm90-avx2", "2.8.0",
					"pytorch-python313-cuda12_8-sm90-avx2", "2.8.0");
	assert_int_equal(json_array_size(json_object_get(doc, "differences")), 0);
	assert_contains(show_string(doc, plan_diff_rows, &a), "no difference\n");
}

static void both_sides_have_their_origin(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = compare("pytorch-python313-cuda12_8-sm61-avx", "2.8.0",
					"pytorch-python313-cuda12_8-sm90-avx2", "2.8.0");
	const json_t *x = find(doc, "environment", "USE_CUDNN");
	assert_non_null(x);
	assert_string_equal(told(x, "left", "value"), "OFF");
	assert_string_equal(told(x, "right", "value"), "ON");
	assert_int_equal(strncmp(told(x, "left", "from"), "gpu.yaml:", 9), 0);
	assert_int_equal(strncmp(told(x, "right", "from"), "toggles.yaml:", 13), 0);
	assert_string_equal(told(x, "left", "rule"), "cuDNN and sm61");
	assert_string_equal(told(x, "right", "rule"), "toggle for cuda");
	assert_contains(told(x, "left", "why"), "is the last that supports sm61");
	x = find(doc, "environment", "USE_FBGEMM");
	assert_string_equal(told(x, "left", "rule"), "implied by avx");
	assert_null(find(doc, "environment", "USE_KINETO"));
}

static void an_entry_of_one_side_only(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = compare("pytorch-python313-cpu-avx2", "2.8.0",
					"pytorch-python313-cpu-avx", "2.8.0");
	const json_t *x = find(doc, "cache entries", "CXX_AVX2_FOUND");
	assert_non_null(x);
	assert_true(json_is_null(json_object_get(x, "left")));
	assert_string_equal(told(x, "right", "value"), "FALSE");
	assert_null(find(doc, "cache entries", "USE_FBGEMM")); /* told as a variable */
	assert_non_null(find(doc, "environment", "USE_FBGEMM"));
}

static void releases_differ_in_sources_and_options(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = compare("pytorch-python313-cpu-avx2", "2.8.0",
					"pytorch-python313-cpu-avx2", "2.9.1");
	assert_string_equal(told(find(doc, "sources", "pytorch-v2.8.0.tar.gz"), "left", "value"),
			    "c70a2c9488f6f6e8af5982a10d1cc2c37b7df5e6506d839daa5d5e250953d7b5");
	assert_true(json_is_null(
		json_object_get(find(doc, "sources", "pytorch-v2.9.1.tar.gz"), "left")));
	assert_true(
		json_is_null(json_object_get(find(doc, "environment", "USE_FAKELOWP"), "right")));
	assert_string_equal(told(find(doc, "environment", "USE_EIGEN_SPARSE"), "right", "value"),
			    "OFF");
	assert_non_null(find(doc, "keys", "compile key"));
	assert_null(find(doc, "plan", "variant"));
	const char *text = show_string(doc, plan_diff_rows, &a);
	assert_contains(
		text,
		"- pytorch-python313-cpu-avx2 (2.8.0)\n+ pytorch-python313-cpu-avx2 (2.9.1)\n");
	assert_contains(text, "  USE_FAKELOWP\n    - OFF  [toggles.yaml:");
}

static void an_entry_is_told_once(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = compare("torchvision-python313-cpu-avx2", "2.8.0",
					"torchvision-python313-cuda12_8-sm90-avx2", "2.8.0");
	const json_t *row, *arch = NULL;
	size_t i, seen = 0;
	json_array_foreach(json_object_get(doc, "differences"), i,
			   row) if (strcmp(json_member(row, "name"), "TORCH_CUDA_ARCH_LIST") == 0)
	{
		arch = row;
		seen++;
	}

	assert_int_equal(seen, 1);
	assert_true(json_is_null(json_object_get(arch, "left")));
	assert_string_equal(told(arch, "right", "value"), "9.0");
	assert_string_equal(told(arch, "right", "rule"), "GPU targets");
}

/* Every value of every release and package says what set it, where that
 * is written, and why; what stands in a table, where the fact is from. */
static void every_value_is_explained(void **state)
{
	static const char *const profiles[] = {"cpu-avx", "cuda12_8-sm100-avx512", "cpu-armv9",
					       "darwin-mps"};

	(void)state;
	for (unsigned r = 0; r < tables->releases_count; r++)
		for (size_t i = 0; i < ARRAY_LEN(profiles) * TABLES_PACKAGES; i++) {
			AUTO_ARENA struct arena a = {0};
			struct variant v;
			struct err e = {0};
			const struct plan *p = NULL;
			const char *name = arena_printf(&a, "%s-python313-%s",
							tables_packages[i / ARRAY_LEN(profiles)],
							profiles[i % ARRAY_LEN(profiles)]);
			assert_ok(variant_parse(tables, name, &a, &v, &e), &e);
			struct plan_request q = {.variant = &v,
						 .release = tables->releases[r].name};
			if (plan_resolve(tables, &q, &a, &p, &e) < 0)
				continue;
			json_t *doc = plan_json_explained(p),
			       *all = json_object_get(doc, "explain"), *row;
			const char *key;
			assert_true(json_object_size(all) >= p->env.count);
			json_object_foreach(all, key, row)
			{
				const char *from = json_string_value(json_object_get(row, "from"));
				assert_true(*json_string_value(json_object_get(row, "rule")));
				assert_true(*json_string_value(json_object_get(row, "why")));
				if (strcmp(from, SETTING_BUILT_IN) == 0)
					continue;
				if (!strchr(from, ':') ||
				    !json_is_string(json_object_get(row, "source")))
					fail_msg("%s of %s (%s): no place or no source: %s", key,
						 name, p->release, from);
			}

			json_decref(doc);
		}
}

static void a_row_may_have_a_source_of_its_own(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	const struct plan *p = plan_of("pytorch-python313-cpu-avx", "2.8.0", &a);
	assert_contains(settings_get(&p->cache, "CXX_AVX2_FOUND")->source, "FindAVX.cmake");
	assert_contains(kvlist_get(&p->fact_sources, "toggles.yaml"), "CMakeLists.txt");
	assert_contains(plan_text(p, PLAN_REASONS, &a),
			"\nwhere the facts come from\n  blas.yaml: ");
	assert_not_contains(plan_text(p, PLAN_ALL, &a), "where the facts come from");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_does_not_differ_from_itself),
		cmocka_unit_test(both_sides_have_their_origin),
		cmocka_unit_test(an_entry_of_one_side_only),
		cmocka_unit_test(releases_differ_in_sources_and_options),
		cmocka_unit_test(an_entry_is_told_once),
		cmocka_unit_test(every_value_is_explained),
		cmocka_unit_test(a_row_may_have_a_source_of_its_own),
	};

	return cmocka_run_group_tests_name("plan_diff", tests, load, unload);
}
