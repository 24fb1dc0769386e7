#include "core/plan/plan.h"

#include "cmd/select.h"
#include "step/verify/verify.h"

struct diff_options {
	struct cmd_select_base base;
	const char *right_release;
};

static const struct arg_def diff_only[] = {
	{"release", 0, ARG_STRING, offsetof(struct diff_options, base.select.release), "NAME",
	 "the pinned set of versions (default: the newest that fits)", "<release>"},
	{"right-release", 0, ARG_STRING, offsetof(struct diff_options, right_release), "NAME",
	 "release of the second variant (default: that of --release)", "<release>"},
	{0},
};

/* Each word is planned alone, so that both may be the same variant in two releases. */
static int plan_word(struct cmd_context *c, const char *word, const char *release,
		     const struct plan **ret, struct err *e)
{
	struct diff_options options = *(const struct diff_options *)c->options;
	struct cmd_context own = *c;
	const char *items[] = {word, NULL};
	const struct strlist words = {.items = items, .count = 1, .cap = 1};
	struct selections chosen;

	if (release)
		options.base.select.release = release;
	own.options = &options;
	if (cmd_select(&own, &words, &chosen, e) < 0)
		return -1;
	return cmd_plan(&own, chosen.items, false, ret, e);
}

static const struct show wheel_rows[] = {
	{.text = "{member|archive}[: {where}]: {what}", .each = "differences"},
	{.text = "{?same}the same bytes"},
	{.text = "{!same}{members} member{members:s} differ"},
	{0}};

static int diff_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct diff_options *o = c->options;
	const struct plan *left, *right;

	if (words->count != 2) {
		err_set(e, ERR_USAGE, "diff needs two variants, not %zu", words->count);
		return err_hint(e, "for example ptbuild diff pytorch-python313-cpu-avx "
				   "pytorch-python313-cpu-avx2");
	}

	if (path_has_suffix(words->items[0], ".whl") && path_has_suffix(words->items[1], ".whl")) {
		/* Two finished wheels: an official one and
		 * what slim made of it, or one of two builds. */
		json_t *d;
		if (compare_wheels(words->items[0], words->items[1], c->run, c->arena, &d, e) < 0)
			return -1;
		return cmd_show(c, d, wheel_rows, e);
	}

	if (cmd_open(c, OPEN_TABLES | OPEN_PATCHES, e) < 0)
		return -1;
	if (plan_word(c, words->items[0], NULL, &left, e) < 0 ||
	    plan_word(c, words->items[1], o->right_release, &right, e) < 0)
		return -1;
	return cmd_show(c, plan_compare(left, right, c->arena), plan_diff_rows, e);
}

const struct command command_diff = {
	.name = "diff",
	.summary = "show how the plans of two variants differ, and why",
	.usage = "VARIANT VARIANT [OPTION...] | WHEEL WHEEL",
	.tables = {diff_only, cmd_plan_options},
	.arguments = {{"VARIANT",
		       "the first variant, for example pytorch-python313-cuda12_8-sm90-avx2",
		       "<variant>"},
		      {"VARIANT", "the second, which is compared with it", "<variant>"}},
	.options_size = sizeof(struct diff_options),
	.run = diff_main,
};
