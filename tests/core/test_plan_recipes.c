/* Every recipe of the projects that ptbuild replaces has a plan, or is refused for the reason that is known; all of them together within a second. */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/plan.h"

struct branch {
	const char *name;
	const char *release;
	size_t recipes; /* as documented */
	size_t planned;
	size_t refused;
};

struct all {
	const struct tables *tables;
	struct arena a;
	struct branch branches[16];
	size_t count;
	double seconds; /* of processor time, for all plans */
};

static void plan_one(struct all *all, struct branch *b, const char *name, bool refused)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct variant v;
	const struct plan *p = NULL;
	assert_ok(variant_parse(all->tables, name, &a, &v, &e), &e);
	struct plan_request q = {.variant = &v, .release = b->release};
	int rc = plan_resolve(all->tables, &q, &a, &p, &e);
	if (refused) {
		assert_int_equal(rc, -1);
		assert_int_equal(e.kind, ERR_POLICY);
		assert_contains(e.msg, "knows no such target");
		assert_contains(e.hint, "use cuda");
		b->refused++;
		return;
	}
	if (rc < 0)
		fail_msg("%s, %s: %s (%s)", b->name, name, e.msg, e.hint);
	assert_string_equal(p->variant, name);
	assert_true(p->env.count > 15);
	b->planned++;
}

static void expand_isas(const char *words, struct arena *a, struct strlist *ret)
{
	struct strlist l = {0};
	strlist_split(&l, a, words, ",");
	for (size_t i = 0; i < l.count; i++) {
		const char *word = l.items[i];
		bool x86 = strncmp(word, "x86-", 4) == 0;
		if (strcmp(word, "x86-5") == 0)
			strlist_ref(ret, a, "avx");
		if (x86)
			strlist_split(ret, a, "avx2 avx512 avx512bf16 avx512vnni", " ");
		else if (strcmp(word, "arm") == 0)
			strlist_split(ret, a, "armv8_2 armv9", " ");
		else
			strlist_ref(ret, a, word);
	}
}

static void expand_profiles(const struct strlist *row, const char *toolkit, struct arena *a, struct strlist *ret)
{
	struct strlist gpus = {0};
	struct strlist isas = {0};
	if (strcmp(toolkit, "mps") == 0) {
		strlist_ref(ret, a, "darwin-mps");
		return;
	}
	strlist_split(&gpus, a, row->items[3], ",");
	expand_isas(row->items[4], a, &isas);
	for (size_t i = 0; i < gpus.count; i++)
		for (size_t k = 0; k < isas.count; k++)
			if (strcmp(toolkit, "cpu") == 0)
				strlist_addf(ret, a, "cpu-%s", isas.items[k]);
			else
				strlist_addf(ret, a, "%s-sm%s-%s", toolkit, gpus.items[i], isas.items[k]);
}

static void plan_row(struct all *all, struct branch *b, const char *line)
{
	AUTO_ARENA struct arena a = {0};
	bool refused = strncmp(line, "refused ", 8) == 0;
	struct strlist row = {0};
	struct strlist packages = {0};
	struct strlist toolkits = {0};
	strlist_split(&row, &a, refused ? line + 8 : line, " ");
	assert_int_equal(row.count, 5);
	strlist_split(&packages, &a, row.items[0], ",");
	strlist_split(&toolkits, &a, row.items[2], ",");
	for (size_t t = 0; t < toolkits.count; t++) {
		struct strlist profiles = {0};
		expand_profiles(&row, toolkits.items[t], &a, &profiles);
		for (size_t i = 0; i < packages.count; i++)
			for (size_t k = 0; k < profiles.count; k++)
				plan_one(all, b, arena_printf(&a, "%s-python%s-%s", packages.items[i], row.items[1], profiles.items[k]),
					 refused);
	}
}

static int plan_all(void **state)
{
	struct all *all = calloc(1, sizeof(*all));
	*state = all;
	struct err e = {0};
	struct strlist lines = {0};
	AUTO_FREE char *text = test_read(TEST_DATA_DIR "/recipe-matrices.txt");
	assert_non_null(text);
	assert_ok(tables_load(PROFILES_DIR, &all->a, &all->tables, &e), &e);
	strlist_split(&lines, &all->a, text, "\n");
	clock_t start = clock();
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i];
		if (*line == '#')
			continue;
		if (strncmp(line, "branch ", 7) != 0) {
			assert_true(all->count > 0);
			plan_row(all, &all->branches[all->count - 1], line);
			continue;
		}
		struct strlist words = {0};
		strlist_split(&words, &all->a, line, " ");
		assert_int_equal(words.count, 4);
		assert_true(all->count < ARRAY_LEN(all->branches));
		all->branches[all->count++] =
			(struct branch){.name = words.items[1], .release = words.items[2], .recipes = strtoul(words.items[3], NULL, 10)};
	}
	all->seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
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
	for (size_t i = 0; i < all->count; i++)
		if (all->branches[i].planned + all->branches[i].refused != all->branches[i].recipes)
			fail_msg("%s: %zu plans and %zu refusals for %zu recipes", all->branches[i].name, all->branches[i].planned,
				 all->branches[i].refused, all->branches[i].recipes);
}

static void only_what_no_toolkit_can_build_is_refused(void **state)
{
	const struct all *all = *state;
	size_t planned = 0;
	size_t refused = 0;
	for (size_t i = 0; i < all->count; i++) {
		planned += all->branches[i].planned;
		refused += all->branches[i].refused;
	}
	assert_int_equal(planned, 1241);
	assert_int_equal(refused, 18);
}

static void all_of_them_take_less_than_a_second(void **state)
{
	const struct all *all = *state;
#ifdef __SANITIZE_ADDRESS__
	const double limit = 30;
#else
	const double limit = 1;
#endif
	print_message("           %.3f s of processor time for all plans\n", all->seconds);
	assert_true(all->seconds < limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_branch_is_whole),
		cmocka_unit_test(only_what_no_toolkit_can_build_is_refused),
		cmocka_unit_test(all_of_them_take_less_than_a_second),
	};
	return cmocka_run_group_tests_name("plan_recipes", tests, plan_all, drop_all);
}
