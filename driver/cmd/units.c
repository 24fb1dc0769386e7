#include "cmd/select.h"

#include "base/sys/json.h"
#include "core/ci/units.h"

/* Reads the trees and compares them. */
static int units_of(struct cmd_context *c, const struct strlist *paths, struct unit_model *ret,
		    struct err *e)
{
	const struct tables *t = c->tables;
	struct configured_tree *trees = arena_array(c->arena, paths->count, sizeof(*trees));

	for (size_t i = 0; i < paths->count; i++)
		if (units_read(t, paths->items[i], c->arena, &trees[i], e) < 0)
			return -1;
	return units_model(t, trees, paths->count, c->arena, ret, e);
}

static double percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

int cmd_units_cost(struct cmd_context *c, const struct strlist *paths,
		   const struct selections *chosen, const char **ret, struct err *e)
{
	struct unit_model m = {0};
	struct unit_cost cost;
	const struct variant **variants =
		arena_array(c->arena, chosen->count, sizeof(const struct variant *));

	for (size_t i = 0; i < chosen->count; i++)
		variants[i] = &chosen->items[i].variant;
	if (paths->count && units_of(c, paths, &m, e) < 0)
		return -1;
	if (paths->count && (!m.gpu_compared || !m.isa_compared)) {
		err_set(e, ERR_USAGE,
			"cannot compare the --units trees: no two of them differ only in %s",
			m.gpu_compared ? "the instruction set" : "the GPU list");
		return err_hint(e, "pass for example sm90-avx512, sm90-avx2 and sm80-avx512");
	}

	units_cost(&m, variants, chosen->count, c->arena, &cost);
	const char *others =
		cost.others ? arena_printf(c->arena, "; variants not counted: %zu", cost.others)
			    : "";
	if (!cost.variants)
		*ret = "no variant is PyTorch for CUDA";
	else if (!paths->count && cost.variants == 1)
		*ret = arena_printf(
			c->arena, "one variant of PyTorch is for CUDA: it compiles all its units%s",
			others);
	else if (!paths->count)
		*ret = arena_printf(
			c->arena,
			"%zu variants of PyTorch for CUDA: the C++ units are compiled %zu time%s, "
			"once for each pair of instruction set and toolkit, and the CUDA units %zu "
			"time%s, once for each pair of GPU list and toolkit (--units TREE... "
			"counts them); what the compiler cache already has is not known%s",
			cost.variants, cost.isas, plural(cost.isas), cost.gpus, plural(cost.gpus),
			others);
	else
		*ret = arena_printf(c->arena,
				    "%zu variants of PyTorch for CUDA (%zu GPU list%s and %zu "
				    "instruction set%s, each "
				    "with its toolkit): %zu distinct units of %zu (%.1f %%); what "
				    "the compiler cache "
				    "already has is not known%s",
				    cost.variants, cost.gpus, plural(cost.gpus), cost.isas,
				    plural(cost.isas), cost.distinct, cost.total,
				    percent(cost.distinct, cost.total), others);
	return 0;
}

static json_t *side_json(const struct unit_model *m, bool cuda)
{
	const size_t *by = m->by[cuda];

	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "gpu", (json_int_t)by[UNIT_GPU], "isa",
			 (json_int_t)by[UNIT_ISA], "both", (json_int_t)by[UNIT_BOTH], "neither",
			 (json_int_t)by[UNIT_NOTHING], "-all",
			 (json_int_t)by[0] + (json_int_t)by[1] + (json_int_t)by[2] +
				 (json_int_t)by[3]);
}

static const struct show rows[] = {
	SHOW("C++ units", "{cpp.-all}: {cpp.isa} depend on the instruction set alone, {cpp.gpu} on "
			  "the GPU list alone, "
			  "{cpp.both} on both, {cpp.neither} on neither"),
	SHOW("CUDA units", "{cuda.-all}: {cuda.gpu} depend on the GPU list alone, {cuda.isa} on "
			   "the instruction set "
			   "alone, {cuda.both} on both, {cuda.neither} on neither"),
	SHOW("commands",
	     "{distinct} distinct of {units} ({-percent:.1} %) in {trees} tree{trees:s}"),
	SHOW("", "{?not_everywhere}{not_everywhere} unit{not_everywhere:s} not in every tree"),
	SHOW("unexpected", "{}", .each = "unexpected"),
	{0}};

static int run_units(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct unit_model m;

	if (args->count < 2) {
		err_set(e, ERR_USAGE, "units compares trees and needs at least two");
		return err_hint(e, "name each after the profile it was configured for: ptbuild "
				   "units sm90-avx512.json "
				   "sm90-avx2.json");
	}

	if (units_of(c, args, &m, e) < 0)
		return -1;
	json_t *doc = json_pack(
		"{s:i, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:f}", "schema", 1, "trees",
		(json_int_t)args->count, "cpp", side_json(&m, false), "cuda", side_json(&m, true),
		"units", (json_int_t)m.total, "distinct", (json_int_t)m.distinct, "not_everywhere",
		(json_int_t)m.elsewhere, "unexpected", json_from_strlist(&m.unexpected), "-percent",
		percent(m.distinct, m.total));
	if (cmd_show(c, doc, rows, e) < 0)
		return -1;
	if (!m.unexpected.count)
		return 0;
	err_set(e, ERR_POLICY,
		"%zu unit%s depend%s on what is not allowed: a matrix compiles more than necessary",
		m.unexpected.count, plural(m.unexpected.count), m.unexpected.count == 1 ? "s" : "");
	return err_hint(e, "flags of the instruction set belong in CFLAGS and CXXFLAGS alone, the "
			   "GPU list in those of nvcc");
}

const struct command command_units = {
	.name = "units",
	.summary = "show what the units of configured trees depend on",
	.usage = "TREE TREE...",
	.arguments = {{"TREE...", "compile commands of a configured tree, named after its profile",
		       "<tree>"}},
	.run = run_units,
};
