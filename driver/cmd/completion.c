#include <string.h>

#include "cmd/help.h"
#include "core/plan/plan.h"
#include "core/variant/matrix.h"
#include "core/world/part.h"

struct completion_options {
	struct cmd_globals global;
	const char *words;
};

static void add_isa_profiles(const struct tables *t, const struct gpu_row *gpu, struct arena *a, struct strlist *ret)
{
	for (unsigned i = 0; i < t->isas_count; i++)
		if (!gpu)
			strlist_addf(ret, a, "cpu-%s", t->isas[i].name);
		else if (strings_allow(gpu->platforms, gpu->platforms_count, t->isas[i].platform))
			strlist_addf(ret, a, "sm%s-%s", gpu->sm, t->isas[i].name);
}

static int add_profiles(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	(void)e;
	strlist_ref(ret, a, "native");
	strlist_ref(ret, a, "darwin-mps");
	add_isa_profiles(t, NULL, a, ret);
	for (unsigned i = 0; i < t->gpus_count; i++)
		add_isa_profiles(t, &t->gpus[i], a, ret);
	return 0;
}

/* Whether a release has this package for the Python, the toolkit and the GPU target, if there are any. */
static bool is_released(const struct tables *t, const char *package, const char *python, const char *cuda,
			const struct gpu_row *gpu)
{
	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct release_row *r = &t->releases[i];
		if (tables_package(r, package) && strings_contain(r->pythons, r->pythons_count, python) &&
		    (!cuda || strings_contain(r->toolkits, r->toolkits_count, cuda)) &&
		    (!gpu || plan_takes_target(r, package, cuda, &(struct gpu_target){.row = gpu, .suffix = ""})))
			return true;
	}
	return false;
}

/* All of a package for a Python. */
static void add_variants_of(const struct tables *t, const char *package, const char *python, struct arena *a,
			    struct strlist *ret)
{
	struct strlist profiles = {0};
	add_isa_profiles(t, NULL, a, &profiles);
	for (size_t i = 0; i < profiles.count; i++)
		strlist_ref(ret, a, variant_spell(package, python, NULL, profiles.items[i], a));
	for (unsigned k = 0; k < t->toolkits_count; k++)
		for (unsigned i = 0; i < t->gpus_count; i++) {
			const char *cuda = t->toolkits[k].version;
			if (!is_released(t, package, python, cuda, &t->gpus[i]))
				continue;
			profiles.count = 0;
			add_isa_profiles(t, &t->gpus[i], a, &profiles);
			for (size_t n = 0; n < profiles.count; n++)
				strlist_ref(ret, a, variant_spell(package, python, cuda, profiles.items[n], a));
		}
}

static int add_pythons(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	(void)e;
	for (unsigned i = 0; i < t->releases_count; i++)
		for (unsigned k = 0; k < t->releases[i].pythons_count; k++)
			if (!strlist_contains(ret, t->releases[i].pythons[k]))
				strlist_ref(ret, a, t->releases[i].pythons[k]);
	return 0;
}

static int add_variants(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	struct strlist pythons = {0};
	if (add_pythons(t, a, &pythons, e) < 0)
		return -1;
	for (size_t p = 0; p < TABLES_PACKAGES; p++)
		for (size_t i = 0; i < pythons.count; i++)
			if (is_released(t, tables_packages[p], pythons.items[i], NULL, NULL))
				add_variants_of(t, tables_packages[p], pythons.items[i], a, ret);
	return 0;
}

static int add_worlds(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	return world_part_names(t->dir, a, ret, e);
}

#define NAMES(array, row, field)                                                                                       \
	offsetof(struct tables, array), offsetof(struct tables, array##_count), sizeof(struct row),                    \
		offsetof(struct row, field)

static const struct words {
	const char *kind;
	int (*add)(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e);
	size_t array, count, size, name; /* without `add`: of the tables' array, and of the name in a row */
} words[] = {
	{"release", NULL, NAMES(releases, release_row, name)},
	{"profile", .add = add_profiles},
	{"variant", .add = add_variants},
	{"matrix", .add = matrix_names},
	{"python", .add = add_pythons},
	{"isa", NULL, NAMES(isas, isa_row, name)},
	{"cuda", NULL, NAMES(toolkits, toolkit_row, version)},
	{"blas", NULL, NAMES(blas, blas_row, name)},
	{"world", .add = add_worlds},
};

/* The kind is one of `words`: the options' table has them. */
static int print_words(struct cmd_context *c, const char *kind, struct buf *out, struct err *e)
{
	const struct tables *t;
	struct strlist names = {0};
	const struct words *w = words;
	if (cmd_tables(c, &t, e) < 0)
		return -1;
	while (strcmp(w->kind, kind) != 0)
		w++;
	if (w->add && w->add(t, c->arena, &names, e) < 0)
		return -1;
	const char *base = (const char *)t, *rows = *(const char *const *)(const void *)(base + w->array);
	for (unsigned i = 0; !w->add && i < *(const unsigned *)(const void *)(base + w->count); i++)
		strlist_ref(&names, c->arena, *(const char *const *)(const void *)(rows + i * w->size + w->name));
	for (size_t i = 0; i < names.count; i++)
		buf_printf(out, "%s\n", names.items[i]);
	return 0;
}

static int run_completion(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct completion_options *o = c->options;
	AUTO_BUF struct buf text = {0};
	if (o->words ? args->count != 0 : args->count != 1) {
		err_set(e, ERR_USAGE, "completion takes one shell, or --words KIND");
		return err_hint(e, "for example 'ptbuild completion bash'");
	}
	if ((o->words ? print_words(c, o->words, &text, e) : completion_script(args->items[0], &text, e)) < 0)
		return -1;
	return cmd_write_stdout(&text, e);
}

static const struct arg_def completion_options[] = {
	{"words", 0, ARG_STRING, offsetof(struct completion_options, words), "KIND",
	 "print the names of this kind from the tables", "release profile variant matrix python isa cuda blas world"},
	{0},
};

const struct command command_completion = {
	.name = "completion",
	.summary = "print the completion script for a shell",
	.usage = "bash|zsh|fish",
	.tables = {completion_options},
	.arguments = {{"SHELL", "bash, zsh or fish", "bash zsh fish"}},
	.examples = {{"source <(ptbuild completion bash)", "complete in this shell"}},
	.options_size = sizeof(struct completion_options),
	.run = run_completion,
};
