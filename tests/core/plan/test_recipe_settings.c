/* What each recipe of five branches sets (tests/data/recipe-settings.txt),
 * against the plan of its variant: the same CPU flags and options, or a note that
 * names the correction, or a refusal that is known. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "core/plan/plan.h"

enum verdict { SAME, CORRECTED, REFUSED, VERDICTS };

struct all {
	const struct tables *tables;
	struct arena a;
	struct kvlist words; /* F1, E1, C1 */
	size_t counts[VERDICTS];
	size_t rows;
};

struct recipe {
	const char *name, *gpu, *flags, *env, *cmake;
};

/* The plan of a recipe's variant, and for a companion that of the torch it is built against. */
struct pair {
	const struct plan *plan;
	const struct plan *torch;
	bool corrected;
};

static const char *word_of(const struct all *all, const char *word)
{
	if (strcmp(word, "-") == 0)
		return "";
	const char *text = kvlist_get(&all->words, word);
	assert_non_null(text);
	return text;
}

static bool has_note(const struct plan *p, const char *text)
{
	for (size_t i = 0; i < p->notes.count; i++)
		if (strstr(p->notes.items[i], text))
			return true;
	return false;
}

/* A difference must be named by a note of one of the two plans. */
static void need_note(struct pair *p, const struct recipe *r, const char *what, const char *text)
{
	if (!has_note(p->plan, text) && !(p->torch && has_note(p->torch, text)))
		fail_msg("%s: %s differs from the recipe, and no note says '%s'", r->name, what,
			 text);
	p->corrected = true;
}

static const char *value_of(const struct pair *p, const char *name)
{
	const struct plan *sides[] = {p->plan, p->torch};

	for (size_t i = 0; i < 2; i++) {
		if (!sides[i])
			continue;
		const char *value = settings_value(&sides[i]->env, name);
		if (!value)
			value = settings_value(&sides[i]->cmake, name);
		if (value)
			return value;
	}

	return NULL;
}

static int truth(const char *value)
{
	if (strcmp(value, "1") == 0 || strcmp(value, "ON") == 0 || strcmp(value, "TRUE") == 0)
		return 1;
	return strcmp(value, "0") == 0 || strcmp(value, "OFF") == 0 || strcmp(value, "FALSE") == 0
		       ? 0
		       : -1;
}

static void compare_value(struct pair *p, const struct recipe *r, const char *name,
			  const char *value)
{
	const char *planned = value_of(p, name);

	if (strcmp(name, "USE_CUBLAS") == 0 || strcmp(name, "USE_METAL") == 0) {
		assert_null(planned);
		need_note(p, r, name, name);
		return;
	}

	if (!planned)
		fail_msg("%s: the plan has no %s", r->name, name);
	if (strcmp(value, "${gpuArchSM}") == 0)
		value = r->gpu;
	if (strcmp(planned, value) != 0 && (truth(value) < 0 || truth(value) != truth(planned)))
		fail_msg("%s: the recipe has %s=%s, the plan %s", r->name, name, value, planned);
}

static void compare_words(struct all *all, struct pair *p, const struct recipe *r, const char *text,
			  const char *prefix)
{
	struct strlist l = {0};

	strlist_split(&l, &all->a, text, " ");
	for (size_t i = 0; i < l.count; i++) {
		const char *word = l.items[i];
		const char *equals = strchr(word, '=');
		assert_non_null(equals);
		assert_int_equal(strncmp(word, prefix, strlen(prefix)), 0);
		word += strlen(prefix);
		compare_value(p, r, arena_strndup(&all->a, word, (size_t)(equals - word)),
			      equals + 1);
	}
}

static void compare_flags(struct all *all, struct pair *p, const struct recipe *r)
{
	const char *planned = strlist_join(&p->plan->cpu_flags, &all->a, " ");

	if (strcmp(planned, r->flags) == 0)
		return;
	if (strcmp(r->flags, "-mavx2 -mfma") == 0 && strcmp(planned, "-mavx2 -mfma -mf16c") == 0)
		need_note(p, r, "flags", "some recipes left F16C out");
	else if (strcmp(r->flags, "-march=armv9-a+sve2") == 0 &&
		 strcmp(planned, "-march=armv9-a+sve+sve2") == 0)
		need_note(p, r, "flags", "SVE2 includes SVE");
	else
		fail_msg("%s: the recipe has the flags '%s', the plan '%s'", r->name, r->flags,
			 planned);
}

static void compare_gpu(struct all *all, struct pair *p, const struct recipe *r)
{
	const char *planned = strlist_join(&p->plan->gpu, &all->a, ";");

	if (strcmp(r->gpu, "-") == 0 || strcmp(r->gpu, "mps") == 0)
		return;
	if (strncmp(r->gpu, "sm_", 3) == 0)
		need_note(p, r, "the GPU target",
			  arena_printf(&all->a, "TORCH_CUDA_ARCH_LIST is %s, not %s", planned,
				       r->gpu));
	else
		assert_string_equal(planned, r->gpu);
}

/* What companions need to have CUDA at all, though most recipes leave it out. */
static void compare_companion(struct pair *p, const struct recipe *r)
{
	if (!p->plan->cuda || !p->torch)
		return;
	bool vision = strcmp(p->plan->package, "torchvision") == 0;
	if (vision && !strstr(r->env, "FORCE_CUDA"))
		need_note(p, r, "FORCE_CUDA", "FORCE_CUDA=1 and the arch list are set");
	else if (!vision && !strstr(r->env, "USE_CUDA"))
		need_note(p, r, "USE_CUDA", "USE_CUDA is set");
}

static int resolve(struct all *all, const char *name, const char *release, const struct plan **ret,
		   struct err *e)
{
	struct variant v;

	assert_ok(variant_parse(all->tables, name, &all->a, &v, e), e);
	struct plan_request q = {.variant = &v, .release = release};
	return plan_resolve(all->tables, &q, &all->a, ret, e);
}

static enum verdict compare(struct all *all, const struct recipe *r, const char *release)
{
	struct pair p = {0};
	struct err e = {0};

	if (resolve(all, r->name, release, &p.plan, &e) < 0) {
		assert_int_equal(e.kind, ERR_POLICY);
		assert_contains(e.msg, "nvcc 12.8 knows no such target");
		assert_contains(e.hint, "use CUDA 1");
		return REFUSED;
	}

	if (p.plan->depends.count)
		assert_ok(resolve(all, p.plan->depends.items[0], release, &p.torch, &e), &e);
	compare_flags(all, &p, r);
	compare_gpu(all, &p, r);
	compare_words(all, &p, r, r->env, "");
	compare_words(all, &p, r, r->cmake, "-D");
	if (strstr(r->cmake, "CXX_AVX2_FOUND"))
		need_note(&p, r, "how the probes are set",
			  "CXX_AVX2_FOUND and its like go in through a generated file");
	compare_companion(&p, r);
	return p.corrected ? CORRECTED : SAME;
}

static void read_row(struct all *all, const struct strlist *words, const char *release)
{
	assert_int_equal(words->count, 5);
	const struct recipe r = {words->items[0], words->items[1], word_of(all, words->items[2]),
				 word_of(all, words->items[3]), word_of(all, words->items[4])};
	all->counts[compare(all, &r, release)]++;
	all->rows++;
}

static int compare_all(void **state)
{
	struct all *all = calloc(1, sizeof(*all));

	*state = all;
	struct err e = {0};
	struct strlist lines = {0};
	const char *release = "";
	char *text = test_read(TEST_DATA_DIR "/recipe-settings.txt");
	assert_non_null(text);
	assert_ok(tables_load(PROFILES_DIR, &all->a, &all->tables, &e), &e);
	strlist_split(&lines, &all->a, text, "\n");
	free(text);
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i];
		struct strlist words = {0};
		if (*line == '#')
			continue;
		strlist_split(&words, &all->a, line, " ");
		if (strcmp(words.items[0], "branch") == 0)
			release = words.items[2];
		else if (strchr("FEC", *line) && line[1] >= '0' && line[1] <= '9')
			kvlist_set(&all->words, &all->a, words.items[0], strchr(line, ' ') + 1);
		else
			read_row(all, &words, release);
	}

	return 0;
}

static int drop_all(void **state)
{
	struct all *all = *state;

	arena_release(&all->a);
	free(all);
	return 0;
}

static void every_recipe_is_as_it_was_or_corrected_with_a_note(void **state)
{
	const struct all *all = *state;

	print_message("           %zu recipes: %zu the same, %zu corrected, %zu refused\n",
		      all->rows, all->counts[SAME], all->counts[CORRECTED], all->counts[REFUSED]);
	assert_int_equal(all->rows, 408);
	assert_int_equal(all->counts[SAME], 209);
	assert_int_equal(all->counts[CORRECTED], 181);
}

static void only_what_nvcc_does_not_have_is_refused(void **state)
{
	const struct all *all = *state;
	assert_int_equal(all->counts[REFUSED], 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_recipe_is_as_it_was_or_corrected_with_a_note),
		cmocka_unit_test(only_what_nvcc_does_not_have_is_refused),
	};

	return cmocka_run_group_tests_name("recipe_settings", tests, compare_all, drop_all);
}
