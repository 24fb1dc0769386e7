/* Every recipe of the projects that ptbuild replaces has
 * a plan, or is refused for the reason that is known. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "core/plan/plan.h"
#include "core/world/world.h"
#include "recipe_branches.h"

struct all {
	const struct tables *tables;
	struct arena a;
	struct recipe_branch branches[RECIPE_BRANCHES];
	size_t planned[RECIPE_BRANCHES];
	size_t refused[RECIPE_BRANCHES];
	size_t worlds, homeless; /* names that have a world, and those without */
};

static bool has_world(const struct tables *t, const struct release_row *r,
		      const struct world_wanted *want, struct arena *a, struct err *e)
{
	struct world_choice chosen = {0};
	const struct world *w;

	return world_choose(&(struct world_question){t, r, want, a}, &chosen, e) == 0 &&
	       chosen.name &&
	       world_load(PROFILES_DIR, chosen.name, want->platform, a, &w, e) == 0 &&
	       world_check_tools(w, r, a, e) == 0;
}

/* A world for the name, with the toolkit of its plan and the tools that its release takes. */
static void find_world(struct all *all, const char *name, const struct plan_request *q,
		       struct arena *a)
{
	const struct profile *p = &q->variant->profile;
	const struct release_row *r;
	struct world_wanted want = {.platform = p->platform, .python = q->variant->python};
	struct err e = {0};

	if (!world_debian_arch(p->platform)) /* macOS */
		return;
	assert_ok(tables_need_release(all->tables, q->release, &r, &e), &e);
	if (p->targets_count && plan_cuda(all->tables, q, a, &want.cuda, &e) < 0)
		fail_msg("%s: %s", name, e.msg);
	if (has_world(all->tables, r, &want, a, &e)) {
		all->worlds++;
		return;
	}

	all->homeless++;
	print_message("%s, release %s: no world: %s\n", name, q->release, e.msg);
}

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
	find_world(all, name, &q, &a);
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
			fail_msg("%s: %zu plans and %zu refusals for %zu recipes",
				 all->branches[i].name, all->planned[i], all->refused[i],
				 all->branches[i].recipes);
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

static void every_name_has_a_world(void **state)
{
	const struct all *all = *state;
	assert_int_equal(all->homeless, 0);
	assert_int_equal(all->worlds, 1231); /* and 10 of macOS */
}

/* Not only what the recipes name: each toolkit with
 * each Python of each release, on both platforms. */
static void every_choice_of_a_release_has_a_world(void **state)
{
	static const char *const platforms[] = {"x86_64-linux", "aarch64-linux"};
	const struct all *all = *state;
	const struct tables *t = all->tables;
	size_t without = 0;

	for (unsigned i = 0; i < t->releases_count; i++)
		for (unsigned k = 0; k < t->releases[i].pythons_count * ARRAY_LEN(platforms); k++)
			for (unsigned n = 0; n <= t->releases[i].toolkits_count; n++) {
				AUTO_ARENA struct arena a = {0};
				const struct release_row *r = &t->releases[i];
				const struct world_wanted want = {
					.platform = platforms[k % ARRAY_LEN(platforms)],
					.python = r->pythons[k / ARRAY_LEN(platforms)],
					.cuda = n ? r->toolkits[n - 1] : NULL};
				struct err e = {0};
				if (has_world(t, r, &want, &a, &e))
					continue;
				without++;
				print_message("%s %s Python %s CUDA %s: %s\n", r->name,
					      want.platform, want.python,
					      want.cuda ? want.cuda : "none", e.msg);
			}
	assert_int_equal(without, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_branch_is_whole),
		cmocka_unit_test(only_what_no_toolkit_can_build_is_refused),
		cmocka_unit_test(every_name_has_a_world),
		cmocka_unit_test(every_choice_of_a_release_has_a_world),
	};

	return cmocka_run_group_tests_name("plan_recipes", tests, plan_all, drop_all);
}
