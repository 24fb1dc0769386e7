#include <string.h>

#include "base/json.h"
#include "cmd/help.h"
#include "cmd/select.h"
#include "step/pipeline_torch.h"

struct plan_options {
	struct cmd_select_base base;
	bool explain;
};

static const struct arg_def plan_only[] = {
	{"explain", 0, ARG_FLAG, offsetof(struct plan_options, explain), NULL, "show where each value comes from and why", NULL},
	{0},
};

/* What torchvision and torchaudio would be built against, as far as it can be told without building: a wheel by its digest; the root's torch by its version when a root is named. */
static int find_torch(struct cmd_context *c, const struct variant *v, struct torch_source *ret, struct err *e)
{
	const char *torch = ((const struct plan_options *)c->options)->base.select.torch;
	*ret = (struct torch_source){0};
	if (!torch || strcmp(v->package, "pytorch") == 0)
		return 0;
	if (strcmp(torch, "root") != 0)
		return torch_from_wheel(torch, v->python, c->arena, ret, e);
	ret->identity = "root";
	if (!c->global->root)
		return 0;
	const struct root *root;
	if (cmd_root(c, &root, e) < 0)
		return -1;
	return torch_from_root(root, cmd_sandbox(c), c->run, c->arena, ret, e);
}

/* Tools are asked only when a root is named: a plan can be made on any machine. */
static int make_plan(struct cmd_context *c, const struct selection *s, const struct plan **ret, struct err *e)
{
	const struct toolchain *toolchain = NULL;
	struct torch_source torch;
	if (c->global->root && cmd_toolchain(c, &toolchain, e) < 0)
		return -1;
	if (find_torch(c, &s->variant, &torch, e) < 0)
		return -1;
	return cmd_select_plan(c, s, toolchain, torch.identity, torch.version, ret, e);
}

static int print_json(const struct plan *const *plans, size_t count, struct err *e)
{
	if (count == 1) {
		AUTO_JSON json_t *one = plan_json(plans[0]);
		return json_print(one, e);
	}
	AUTO_JSON json_t *all = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(all, plan_json(plans[i]));
	return json_print(all, e);
}

static int plan_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct plan_options *o = c->options;
	struct selection *chosen;
	size_t count;
	if (cmd_select(c, words, &chosen, &count, e) < 0)
		return -1;
	const struct plan **plans = arena_array(c->arena, count, sizeof(const struct plan *));
	for (size_t i = 0; i < count; i++)
		if (make_plan(c, &chosen[i], &plans[i], e) < 0)
			return -1;
	if (c->global->json)
		return print_json(plans, count, e);
	AUTO_BUF struct buf out = {0};
	for (size_t i = 0; i < count; i++)
		buf_printf(&out, "%s%s", i ? "\n" : "", plan_text(plans[i], o->explain, c->arena));
	return cmd_write_stdout(&out, e);
}

static const struct cmd_example plan_examples[] = {
	{"ptbuild plan --profile sm90-avx512 --explain", "every setting with the table line it comes from"},
	{"ptbuild plan pytorch-python313-cuda12_8-sm90-avx512 --release 2.9.1 --json", "one exact variant as a JSON object"},
	{"ptbuild plan --profile cpu-avx2 --package all --json", "three packages as a JSON array"},
	{0},
};

static const char *const plan_text_paragraphs[] = {
	"Shows what a build would do, without doing any of it: sources, environment, CMake cache entries, corrections of what was asked "
	"and the keys "
	"under which results are kept.",
	"Nothing is run and nothing is fetched, so a plan can be made on any machine. With --root (--root / for this machine) the "
	"compilers there "
	"are asked for their versions, which are part of the keys.",
	NULL,
};

static const struct arg_def *const plan_tables[] = {cmd_select_options, plan_only, NULL};

const struct command command_plan = {
	.name = "plan",
	.summary = "show what would be built, and why",
	.usage = "[--profile PROFILE [--package NAMES] | VARIANT...] [--explain] [OPTION...]",
	.text = plan_text_paragraphs,
	.tables = plan_tables,
	.arguments = cmd_select_arguments,
	.examples = plan_examples,
	.options_size = sizeof(struct plan_options),
	.run = plan_main,
};
