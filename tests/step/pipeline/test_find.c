#include "support.h"

#include "core/variant/variant.h"
#include "step/pipeline/pipeline.h"

/* A profile with GPU code may leave the toolkit to the plan, whose variant then has
 * another name than the target. An item is found by what was asked for, else torch is
 * looked for once more for every package built against it. */
static void test_a_target_without_a_toolkit_finds_its_item(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct tables *tables;
	struct selection open = {0}, said, other, later;
	assert_ok(tables_load(PROFILES_DIR, &a, &tables, &e), &e);
	assert_ok(variant_parse(tables, "python313Packages.pytorch-sm90-avx512", &a, &open.variant,
				&e),
		  &e);
	assert_ok(tables_need_release(tables, "2.6.0-debian", &open.release, &e), &e);
	said = other = later = open;
	assert_ok(variant_parse(tables, "pytorch-python313-cuda12_4-sm90-avx512", &a, &said.variant,
				&e),
		  &e);
	assert_ok(variant_parse(tables, "python313Packages.pytorch-sm90-avx2", &a, &other.variant,
				&e),
		  &e);
	assert_ok(tables_need_release(tables, "2.9.1", &later.release, &e), &e);
	const struct plan plan = {.variant = variant_name(&said.variant, &a),
				  .release = open.release->name,
				  .metadata_rev = 2};
	const struct pipeline_item items[] = {
		{.plan = &plan, .asked = variant_name(&open.variant, &a)}};
	assert_ptr_equal(pipeline_find(items, 1, &open, 2), &items[0]);
	assert_null(pipeline_find(items, 1, &open, 0));
	/* the plan may choose another one for that name */
	assert_null(pipeline_find(items, 1, &said, 2));
	assert_null(pipeline_find(items, 1, &other, 2));
	assert_null(pipeline_find(items, 1, &later, 2));
	assert_null(pipeline_find(items, 0, &open, 2));
}

static void test_a_wheel_that_was_taken_is_no_target_s(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	const struct tables *tables;
	struct selection t = {0};
	assert_ok(tables_load(PROFILES_DIR, &a, &tables, &e), &e);
	assert_ok(variant_parse(tables, "pytorch-python313-cpu-avx2", &a, &t.variant, &e), &e);
	assert_ok(tables_need_release(tables, "2.6.0-debian", &t.release, &e), &e);
	const struct plan plan = {.variant = variant_name(&t.variant, &a),
				  .release = t.release->name,
				  .metadata_rev = 1};
	const struct pipeline_item items[] = {{.plan = &plan}};
	assert_null(pipeline_find(items, 1, &t, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_target_without_a_toolkit_finds_its_item),
		cmocka_unit_test(test_a_wheel_that_was_taken_is_no_target_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
