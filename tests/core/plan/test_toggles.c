/* Every option of PyTorch is set for every kind of
 * build, so that none is picked up from the machine. */
#include "tables_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/plan/buildenv.h"
#include "core/plan/plan.h"

static const char *const profiles[] = {
	"cpu-avx",   "cpu-avx2", "cpu-armv9", "cuda12_6-sm61-avx", "cuda12_6-sm90-avx512",
	"darwin-mps"};

static const struct plan *plan_of(const char *package, const char *profile, const char *release,
				  struct arena *a)
{
	struct variant v;
	struct err e = {0};
	const struct plan *p = NULL;

	assert_ok(variant_parse(tables, arena_printf(a, "%s-python313-%s", package, profile), a, &v,
				&e),
		  &e);
	struct plan_request q = {.variant = &v, .release = release};
	assert_ok(plan_resolve(tables, &q, a, &p, &e), &e);
	return p;
}

/* The toolkits of the profiles above are not every release's. */
static bool plan_possible_for(const char *profile, const char *release)
{
	const struct release_row *r = NULL;
	struct err e = {0};

	assert_ok(tables_need_release(tables, release, &r, &e), &e);
	return strncmp(profile, "cuda12_6", 8) != 0 ||
	       strings_contain(r->toolkits, r->toolkits_count, "12.6");
}

static bool is_set(const struct plan *p, const char *name)
{
	return settings_value(&p->env, name) || settings_value(&p->cache, name);
}

static bool is_option(const char *name)
{
	return strncmp(name, "USE_", 4) == 0 || strncmp(name, "BUILD_", 6) == 0;
}

/* What setup.py reads itself, and what a file other than CMakeLists.txt declares. */
static bool is_elsewhere(const char *name)
{
	static const char *const names[] = {"BUILD_LIBTORCH_WHL", "BUILD_PYTHON_ONLY",
					    "BUILD_IGNORE_SVE_UNAVAILABLE",
					    "USE_PRIORITIZED_TEXT_FOR_LD"};

	return strings_contain((const char **)(uintptr_t)names, ARRAY_LEN(names), name);
}

/* Surely, or perhaps: "?NAME" is an option of the release before or after. */
static bool declares(const struct strlist *declared, const char *name)
{
	for (size_t i = 1; i < declared->count; i++)
		if (strcmp(declared->items[i] + (*declared->items[i] == '?'), name) == 0)
			return true;
	return false;
}

/* In both ways: each option that the source declares is set, and nothing else is. */
static void check_release(const char *release, const struct strlist *declared, struct arena *a)
{
	const bool has_setup = version_cmp(release, "2.14") < 0;

	for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
		if (!plan_possible_for(profiles[i], release))
			continue;
		const struct plan *p = plan_of("pytorch", profiles[i], release, a);
		for (size_t k = 1; k < declared->count; k++)
			if (*declared->items[k] != '?' && !is_set(p, declared->items[k]))
				fail_msg("PyTorch %s for %s: %s is not set", release, profiles[i],
					 declared->items[k]);
		for (size_t k = 0; k < p->env.count; k++) {
			const char *name = p->env.items[k].name;
			if (is_option(name) && !declares(declared, name) && !is_elsewhere(name))
				fail_msg("PyTorch %s for %s: %s is set, and no option of it",
					 release, profiles[i], name);
		}

		assert_int_equal(settings_value(&p->env, "BUILD_LIBTORCH_WHL") != NULL, has_setup);
	}
}

static void every_option_that_the_sources_declare_is_set(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct strlist lines = {0};
	AUTO_FREE char *text = test_read(TEST_DATA_DIR "/pytorch-options.txt");
	assert_non_null(text);
	strlist_split(&lines, &a, text, "\n");
	size_t releases = 0;
	for (size_t i = 0; i < lines.count; i++)
		if (*lines.items[i] != '#') {
			struct strlist words = {0}, names = {0};
			strlist_split(&words, &a, lines.items[i], " ");
			assert_true(words.count > 100);
			strlist_split(&names, &a, words.items[0], ",");
			for (size_t k = 0; k < names.count; k++, releases++)
				check_release(names.items[k], &words, &a);
		}
	assert_int_equal(releases, 10); /* all but 2.6.0-debian, whose source is patched */
}

/* Whatever the release: a row that applies has a value for each kind.
 * PyTorch 2.6 leaves one out on purpose (toggles.yaml says why). */
static void every_row_of_every_release_has_a_value(void **state)
{
	(void)state;
	for (unsigned r = 0; r < tables->releases_count; r++)
		for (size_t k = 0; k < TABLES_PACKAGES; k++) {
			const struct package_row *p =
				tables_package(&tables->releases[r], tables_packages[k]);
			for (unsigned i = 0; i < tables->toggles_count; i++) {
				const struct toggle_row *t = &tables->toggles[i];
				if (strcmp(t->package, tables_packages[k]) != 0 ||
				    !is_option(t->name) || !toggle_applies(t, p->version))
					continue;
				if (strcmp(t->name, "USE_PRIORITIZED_TEXT_FOR_LD") == 0 &&
				    strcmp(p->version, "2.6.0") == 0)
					continue;
				if (!*t->cpu || !*t->cuda || !*t->mps)
					fail_msg("toggles.yaml:%u: %s has no value for each kind",
						 t->line, t->name);
			}
		}
}

static void what_needs_an_option_that_is_off_is_off(void **state)
{
	(void)state;
	for (unsigned r = 0; r < tables->releases_count; r++)
		for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
			AUTO_ARENA struct arena a = {0};
			const char *release = tables->releases[r].name;
			if (strncmp(profiles[i], "cuda", 4) == 0)
				continue;
			const struct plan *p = plan_of("pytorch", profiles[i], release, &a);
			for (unsigned k = 0; k < tables->toggles_count; k++) {
				const struct toggle_row *t = &tables->toggles[k];
				const char *value = settings_value(&p->env, t->name),
					   *needed = settings_value(&p->env, t->needs);
				if (strcmp(t->package, "pytorch") != 0 || !value || !needed ||
				    strcmp(needed, "OFF") != 0)
					continue;
				if (strcmp(value, "OFF") != 0)
					fail_msg("%s, %s: %s=%s, but %s=OFF", release, profiles[i],
						 t->name, value, t->needs);
			}
		}
}

static void an_unknown_option_is_refused_with_the_releases_that_have_it(void **state)
{
	(void)state;
	AUTO_ARENA struct arena a = {0};
	struct variant v;
	struct err e = {0};
	const struct plan *p = NULL;
	assert_ok(variant_parse(tables, "pytorch-python313-cpu-avx2", &a, &v, &e), &e);
	struct plan_request q = {.variant = &v, .release = "2.8.0"};
	kvlist_set(&q.options.toggles, &a, "USE_EIGEN_SPARSE", "ON");
	assert_err(plan_resolve(tables, &q, &a, &p, &e), &e, ERR_CONFIG,
		   "pytorch 2.8.0 has no option 'USE_EIGEN_SPARSE'");
	assert_contains(e.hint, "releases that have it: 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_that_the_sources_declare_is_set),
		cmocka_unit_test(every_row_of_every_release_has_a_value),
		cmocka_unit_test(what_needs_an_option_that_is_off_is_off),
		cmocka_unit_test(an_unknown_option_is_refused_with_the_releases_that_have_it),
	};

	return cmocka_run_group_tests_name("toggles", tests, load, unload);
}
