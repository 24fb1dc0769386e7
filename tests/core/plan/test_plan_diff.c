/* How two plans differ: only that, each side with its origin. And what is said of one plan's values. */
#include "plan_text.h"
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/json.h"
#include "base/term.h"
#include "core/plan/plan_diff.h"

static const char *text_of(const struct plan *l, const struct plan *r, const struct plan_diff *d, struct arena *a)
{
	AUTO_JSON json_t *doc = plan_diff_json(l, r, d);
	return show_string(doc, plan_diff_rows, a);
}

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

static const struct plan_difference *find(const struct plan_diff *d, const char *section, const char *name)
{
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->items[i].section, section) == 0 && strcmp(d->items[i].name, name) == 0)
			return &d->items[i];
	return NULL;
}

static void a_plan_does_not_differ_from_itself(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct plan_diff d;
	const struct plan *l = plan_of("pytorch-python313-cuda12_8-sm90-avx2", "2.8.0", &a);
	const struct plan *r = plan_of("pytorch-python313-cuda12_8-sm90-avx2", "2.8.0", &a);
	plan_compare(l, r, &a, &d);
	assert_int_equal(d.count, 0);
	assert_contains(text_of(l, r, &d, &a), "no difference\n");
}

static void both_sides_have_their_origin(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct plan_diff d;
	plan_compare(plan_of("pytorch-python313-cuda12_8-sm61-avx", "2.8.0", &a),
		     plan_of("pytorch-python313-cuda12_8-sm90-avx2", "2.8.0", &a), &a, &d);
	const struct plan_difference *x = find(&d, "environment", "USE_CUDNN");
	assert_non_null(x);
	assert_string_equal(x->left.value, "OFF");
	assert_string_equal(x->right.value, "ON");
	assert_int_equal(strncmp(x->left.from, "gpu.yaml:", 9), 0);
	assert_int_equal(strncmp(x->right.from, "toggles.yaml:", 13), 0);
	assert_string_equal(x->left.rule, "cuDNN and sm61");
	assert_string_equal(x->right.rule, "toggle for cuda");
	assert_contains(x->left.why, "is the last that supports sm61");
	x = find(&d, "environment", "USE_FBGEMM");
	assert_string_equal(x->left.rule, "implied by avx");
	assert_null(find(&d, "environment", "USE_KINETO"));
}

static void an_entry_of_one_side_only(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct plan_diff d;
	plan_compare(plan_of("pytorch-python313-cpu-avx2", "2.8.0", &a),
		     plan_of("pytorch-python313-cpu-avx", "2.8.0", &a), &a, &d);
	const struct plan_difference *x = find(&d, "cache entries", "CXX_AVX2_FOUND");
	assert_non_null(x);
	assert_null(x->left.value);
	assert_string_equal(x->right.value, "FALSE");
	assert_null(find(&d, "cache entries", "USE_FBGEMM")); /* told as a variable */
	assert_non_null(find(&d, "environment", "USE_FBGEMM"));
}

static void releases_differ_in_sources_and_options(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct plan_diff d;
	const struct plan *l = plan_of("pytorch-python313-cpu-avx2", "2.8.0", &a),
			  *r = plan_of("pytorch-python313-cpu-avx2", "2.9.1", &a);
	plan_compare(l, r, &a, &d);
	assert_string_equal(find(&d, "sources", "pytorch-v2.8.0.tar.gz")->left.value,
			    "c70a2c9488f6f6e8af5982a10d1cc2c37b7df5e6506d839daa5d5e250953d7b5");
	assert_null(find(&d, "sources", "pytorch-v2.9.1.tar.gz")->left.value);
	assert_null(find(&d, "environment", "USE_FAKELOWP")->right.value);
	assert_string_equal(find(&d, "environment", "USE_EIGEN_SPARSE")->right.value, "OFF");
	assert_non_null(find(&d, "keys", "compile key"));
	assert_null(find(&d, "plan", "variant"));
	const char *text = text_of(l, r, &d, &a);
	assert_contains(text, "- pytorch-python313-cpu-avx2 (2.8.0)\n+ pytorch-python313-cpu-avx2 (2.9.1)\n");
	assert_contains(text, "  USE_FAKELOWP\n    - OFF  [toggles.yaml:");
}

static void the_difference_as_json(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct plan_diff d;
	const struct plan *l = plan_of("torchvision-python313-cpu-avx2", "2.8.0", &a);
	const struct plan *r = plan_of("torchvision-python313-cuda12_8-sm90-avx2", "2.8.0", &a);
	plan_compare(l, r, &a, &d);
	json_t *doc = plan_diff_json(l, r, &d);
	const json_t *rows = json_object_get(doc, "differences");
	size_t seen = 0;
	assert_int_equal(json_array_size(rows), d.count);
	for (size_t i = 0; i < d.count; i++) {
		const json_t *row = json_array_get(rows, i);
		if (strcmp(json_string_value(json_object_get(row, "name")), "TORCH_CUDA_ARCH_LIST") != 0)
			continue;
		seen++;
		assert_true(json_is_null(json_object_get(row, "left")));
		assert_string_equal(json_string_value(json_object_get(json_object_get(row, "right"), "value")), "9.0");
		assert_string_equal(json_string_value(json_object_get(json_object_get(row, "right"), "rule")),
				    "GPU targets");
	}
	assert_int_equal(seen, 1);
	json_decref(doc);
}

/* Every value of every release and package says what set it, where that is written, and why; what stands in a table,
 * where the fact is from. */
static void every_value_is_explained(void **state)
{
	static const char *const profiles[] = {"cpu-avx", "cuda12_8-sm100-avx512", "cpu-armv9", "darwin-mps"};
	(void)state;
	for (unsigned r = 0; r < tables->releases_count; r++)
		for (size_t i = 0; i < ARRAY_LEN(profiles) * TABLES_PACKAGES; i++) {
			AUTO_ARENA struct arena a = {0};
			struct variant v;
			struct err e = {0};
			const struct plan *p = NULL;
			const char *name = arena_printf(&a, "%s-python313-%s", tables_packages[i / ARRAY_LEN(profiles)],
							profiles[i % ARRAY_LEN(profiles)]);
			assert_ok(variant_parse(tables, name, &a, &v, &e), &e);
			struct plan_request q = {.variant = &v, .release = tables->releases[r].name};
			if (plan_resolve(tables, &q, &a, &p, &e) < 0)
				continue;
			json_t *doc = plan_json_explained(p), *all = json_object_get(doc, "explain"), *row;
			const char *key;
			assert_true(json_object_size(all) >= p->env.count);
			json_object_foreach(all, key, row)
			{
				const char *from = json_string_value(json_object_get(row, "from"));
				assert_true(*json_string_value(json_object_get(row, "rule")));
				assert_true(*json_string_value(json_object_get(row, "why")));
				if (strcmp(from, SETTING_BUILT_IN) == 0)
					continue;
				if (!strchr(from, ':') || !json_is_string(json_object_get(row, "source")))
					fail_msg("%s of %s (%s): no place or no source: %s", key, name, p->release,
						 from);
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
	assert_contains(plan_text(p, PLAN_REASONS, &a), "\nwhere the facts come from\n  blas.yaml: ");
	assert_not_contains(plan_text(p, PLAN_ALL, &a), "where the facts come from");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_does_not_differ_from_itself),
		cmocka_unit_test(both_sides_have_their_origin),
		cmocka_unit_test(an_entry_of_one_side_only),
		cmocka_unit_test(releases_differ_in_sources_and_options),
		cmocka_unit_test(the_difference_as_json),
		cmocka_unit_test(every_value_is_explained),
		cmocka_unit_test(a_row_may_have_a_source_of_its_own),
	};
	return cmocka_run_group_tests_name("plan_diff", tests, load, unload);
}
