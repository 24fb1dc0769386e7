/* Every recipe of the projects that ptbuild replaces has a plan, or is refused for the reason that is known. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "core/plan/plan.h"
#include "recipe_branches.h"

struct all {
	const struct tables *tables;
	struct arena a;
	struct recipe_branch branches[RECIPE_BRANCHES];
	size_t planned[RECIPE_BRANCHES];
	size_t refused[RECIPE_BRANCHES];
};

static void plan_one(struct all *all, size_t branch, const char *name)
{
	AUTO_ARENA struct arena a = {0};
	const struct recipe_branch *b = &all->branches[branch];
	struct err e = {0};
	struct variant v;
	const struct plan *p = NULL;
	assert_ok(variant_parse(all->tables, name, &a, &v, &e), &e);
	struct plan_request q = {.variant = &v, .release = b->release};
	int rc = plan_resolve(all->tables, &q, &a, &p, &e);
	if (strlist_contains(&b->refused, name)) {
		assert_int_equal(rc, -1);
		assert_int_equal(e.kind, ERR_POLICY);
		assert_contains(e.msg, "knows no such target");
		assert_contains(e.hint, "use CUDA");
		all->refused[branch]++;
		return;
	}
	if (rc < 0)
		fail_msg("%s, %s: %s (%s)", b->name, name, e.msg, e.hint);
	assert_string_equal(p->variant, name);
	assert_true(p->env.count > 15);
	all->planned[branch]++;
}

static int plan_all(void **state)
{
	struct all *all = calloc(1, sizeof(*all));
	*state = all;
	struct err e = {0};
	assert_ok(tables_load(PROFILES_DIR, &all->a, &all->tables, &e), &e);
	recipe_branches(all->branches, &all->a);
	for (size_t i = 0; i < RECIPE_BRANCHES; i++)
		for (size_t k = 0; k < all->branches[i].names.count; k++)
			plan_one(all, i, all->branches[i].names.items[k]);
	return 0;
}

static int drop_all(void **state)
{
	struct all *all = *state;
	arena_release(&all->a);
	free(all);
	return 0;
}

static void each_branch_is_whole(void **state)
{
	const struct all *all = *state;
	for (size_t i = 0; i < RECIPE_BRANCHES; i++)
		if (all->planned[i] + all->refused[i] != all->branches[i].recipes)
			fail_msg("%s: %zu plans and %zu refusals for %zu recipes", all->branches[i].name,
				 all->planned[i], all->refused[i], all->branches[i].recipes);
}

static void only_what_no_toolkit_can_build_is_refused(void **state)
{
	const struct all *all = *state;
	size_t planned = 0;
	size_t refused = 0;
	for (size_t i = 0; i < RECIPE_BRANCHES; i++) {
		planned += all->planned[i];
		refused += all->refused[i];
	}
	assert_int_equal(planned, 1241);
	assert_int_equal(refused, 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_branch_is_whole),
		cmocka_unit_test(only_what_no_toolkit_can_build_is_refused),
	};
	return cmocka_run_group_tests_name("plan_recipes", tests, plan_all, drop_all);
}
