#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cmd/select.h"
#include "core/machine/detect.h"
#include "core/plan/torch_fits.h"
#include "step/pipeline/make.h"

struct plan_command_options {
	struct cmd_select_base base;
	bool all, explain, online;
};

static const struct arg_def plan_only[] = {
	{"all", 0, ARG_FLAG, offsetof(struct plan_command_options, all), NULL,
	 "show every setting, not only what differs from the release's defaults", NULL},
	{"explain", 0, ARG_FLAG, offsetof(struct plan_command_options, explain), NULL,
	 "show every setting with its rule, table and line, reason and source", NULL},
	{"online", 0, ARG_FLAG, offsetof(struct plan_command_options, online), NULL,
	 "check that each URL to download from can be reached; fetch nothing", NULL},
	{0},
};

struct output {
	enum plan_detail detail;
	const struct hardware_facts *facts;
	const struct hardware *machine;
	json_t *all; /* array */
	size_t refused;
	enum err_kind worst;
	bool table;  /* the variants are the rows of one */
	bool matrix; /* a refusal of one variant is no reason to stop */
	bool one;    /* one variant is asked for */
	struct cmd_total total;
	/* of the last variant */
	struct cmd_root_state root;
	struct err no_world; /* why it stands on none; empty if it need not */
	const struct plan *plan;
	struct strlist lack; /* what its keys do not count and a build's do: their keys differ */
};

/* Whether the root is there, and of this platform. */
static bool is_here(const struct cmd_context *c, const struct output *o)
{
	if (*o->no_world.msg || !o->root.made)
		return false;
	return !o->root.world || strcmp(o->root.world->platform, machine_platform(c->arena)) == 0;
}

/* Whether the root's tools are asked: only those of a root that is named, is there, and fits. */
static bool is_probed(const struct cmd_context *c, const struct output *o)
{
	return c->global->root && is_here(c, o);
}

/* Finds the torch for torchvision and torchaudio, as far as it is known before a build: a wheel by
 * its digest; the root's torch by its version if a root is named. */
static int find_torch(struct cmd_context *c, const struct selection *s, bool probed,
		      struct torch_source *ret, struct err *e)
{
	const struct variant *v = &s->variant;
	const char *torch = cmd_selected(c)->plan.torch;

	*ret = (struct torch_source){0};
	if (!torch || package_is_torch(v->package))
		return 0;
	struct torch_official q = {.profiles = c->profiles_dir,
				   .base = s->release->base,
				   .python = v->python,
				   .platform = v->profile.platform,
				   .cuda = v->cuda};
	const int rc = torch_find_official(torch, &q, c->arena, ret, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (strcmp(torch, "root") != 0)
		return torch_from_wheel(torch, v->python, c->arena, ret, e);
	ret->identity = "root";
	const struct root *root;
	if (!probed)
		return 0;
	return cmd_root(c, &root, e) < 0
		       ? -1
		       : torch_from_root(root, cmd_sandbox(c), NULL, c->run, c->arena, ret, e);
}

int cmd_plan(struct cmd_context *c, const struct selection *s, bool probed, const struct plan **ret,
	     struct err *e)
{
	const struct toolchain *toolchain = NULL;
	struct torch_source torch;

	if ((probed && cmd_toolchain(c, &toolchain, e) < 0) ||
	    find_torch(c, s, probed, &torch, e) < 0 ||
	    cmd_select_plan(c, s, toolchain, torch.identity, torch.version, ret, e) < 0)
		return -1;
	struct torch_asked q = {.plan = *ret, .wheel = torch.wheel};
	q.glibc = c->world ? c->world->pieces[0].part->glibc : NULL;
	if (torch.official) {
		const struct torch_asked official = {
			.plan = *ret, .wheel = torch.official->file, .cuda = torch.official->cuda};
		if (torch_fits(&official, TORCH_CUDA, c->arena, e) < 0)
			return -1;
	}

	return q.wheel ? torch_fits(&q, TORCH_WHEEL, c->arena, e) : 0;
}

/* Sets o->plan and o->lack. Without a root no tool is run: a plan can be made on any machine. */
static int make_plan(struct cmd_context *c, const struct selection *s, struct output *o,
		     struct err *e)
{
	const bool probed = is_probed(c, o);

	o->lack = (struct strlist){0};
	if (cmd_plan(c, s, probed, &o->plan, e) < 0)
		return -1;
	if (!probed)
		strlist_ref(&o->lack, c->arena, "root");
	if (!*o->plan->torch && !package_is_torch(o->plan->package))
		strlist_ref(&o->lack, c->arena, "torch");
	return 0;
}

/* What is missing for the keys of a build, in words; NULL if nothing is. */
static const char *missing_inputs(bool root, bool torch)
{
	if (root && torch)
		return "the tools of its root, and its torch";
	if (root)
		return "the tools of its root";
	return torch ? "its torch" : NULL;
}

/* What keeps a plan from being built, on any machine; NULL: nothing. */
static const char *unbuilt(const struct plan *p, struct arena *a)
{
	struct err why = {0};

	if (plan_unproven(p, &why) == 0)
		return NULL;
	return arena_printf(a, "%s; 'ptbuild fetch --release %s --record' records one", why.msg,
			    p->release);
}

/* Root, time and disk. That the keys are not those of a
 * build, the world's line says where all has to fit a screen. */
static void add_needs(struct cmd_context *c, json_t *doc, const struct output *o,
		      const struct cmd_cost *k)
{
	struct arena *a = c->arena;
	const bool root = strlist_contains(&o->lack, "root"),
		   torch = strlist_contains(&o->lack, "torch");
	const char *keys = missing_inputs(root, torch);
	const char *world = NULL;

	if (o->root.world)
		world = arena_printf(a, "%s, %s%s", o->root.world->name,
				     o->root.made ? "made" : "not made yet",
				     root ? "; not in the keys" : "");
	else if (*o->no_world.msg)
		world = arena_printf(a, "none: %s", o->no_world.msg);
	json_object_set_new(doc, "-keys", json_or_null(o->detail == PLAN_CHANGES ? NULL : keys));
	json_object_set_new(doc, "-world", json_or_null(world));
	json_object_set_new(doc, "-downloads", json_string(cost_downloads_text(&k->downloads, a)));
	json_object_set_new(doc, "-time", json_string(cmd_cost_time(k, a)));
	json_object_set_new(doc, "-disk", json_or_null(cmd_cost_disk(c, k, a)));
	json_object_set_new(doc, "-unbuilt", json_or_null(unbuilt(o->plan, a)));
	json_object_set_new(doc, "-size", json_or_null(cmd_cost_size(c, o->plan, k, a)));
}

/* One line under a table. */
static json_t *total_json(struct cmd_context *c, const struct output *o)
{
	const struct cmd_total *t = &o->total;
	struct arena *a = c->arena;

	if (!t->sum.cost.package)
		return json_null();
	return json_pack("{s:s, s:o, s:s, s:b}", "time", cost_text(&t->sum.cost, t->sum.jobs, a),
			 "disk", json_or_null(cmd_cost_disk(c, &t->sum, a)), "downloads",
			 cost_downloads_text(&t->sum.downloads, a), "unknown", t->unknown);
}

#define ROW(label, text, ...) SHOW(label, text, .indent = 2, ##__VA_ARGS__)

static const struct show refused_rows[] = {ROW("refused", "{error.message}[\n{error.hint}]"), {0}};
static const struct show one_rows[] = {
	{.rows = plan_rows}, {.rows = refused_rows}, {.text = "\n{-cost}"}, {0}};
static const struct show all_rows[] = {{.each = "", .rows = one_rows}, {0}};
static const struct show total_rows[] = {
	ROW("time", "{total.time}[{?total.unknown}; some of it is not known]"),
	ROW("disk", "{total.disk}"),
	ROW("downloads", "{total.downloads}"),
	{0}};
static const struct show table_rows[] = {
	{.each = "plans",
	 .columns = {"variant", "release", ">time={cost.seconds:time}",
		     ">disk={cost.disk_bytes:MiB}",
		     "world=[{world.name}][{?error}cannot be built]"}},
	{.text = "\n{variants} variant{variants:s} of '{matrix}', what several have in common "
		 "counted once",
	 .bold = true},
	{.rows = total_rows},
	ROW("refused", "{^}: {} variant{:s}", .each = "refused"),
	ROW("units", "{units}"),
	{.text = "\n--all and --explain show each plan, 'ptbuild plan VARIANT --release RELEASE' "
		 "one of them"},
	{0}};

/* The root of the variant, looked at once for those of a group. */
static int enter_root(struct cmd_context *c, struct cmd_root_group *g, struct output *o,
		      struct err *e)
{
	o->no_world = g->why;
	cmd_root_enter(c, g);
	if (!g->state) {
		struct cmd_root_state *s = arena_alloc(c->arena, sizeof(*s));
		s->made = true;
		if (!*g->why.msg && cmd_root_look(c, s, e) < 0)
			return -1;
		g->state = s;
	}

	o->root = *g->state;
	return 0;
}

static json_t *cmd_world_json(const struct cmd_root_state *r)
{
	if (!r->world)
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:b, s:I}", "name", r->world->name, "platform",
			 r->world->platform, "key", r->world->key, "made", r->made,
			 "download_bytes", (json_int_t)r->world->download);
}

/* What is locked for a root is known without running anything in it. */
static int find_needs(struct cmd_context *c, const struct output *o, const char **ret,
		      struct err *e)
{
	const struct root *root = NULL;
	struct root *before = c->root;

	if (is_here(c, o) && cmd_root(c, &root, e) < 0)
		return -1;
	c->root = before;
	return cmd_requirements(c, o->plan, root, ret, e);
}

/* One variant, in an arena of its own, in the root that was entered. */
static int put_one(struct cmd_context *c, const struct selection *s, struct output *o,
		   struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	const struct plan_command_options *options = c->options;
	const char *torch = options->base.select.plan.torch;
	struct cmd_context own;
	struct cmd_cost cost;
	/* What all plans share is opened in the context of the run, which closes it. */
	const struct toolchain *tools;
	struct store *store;

	if (is_probed(c, o) && cmd_toolchain(c, &tools, e) < 0)
		return -1;
	if (cmd_store_look(c, &store, ERR_IGNORED) < 0)
		store = NULL; /* a plan needs none; what does says why it cannot be opened */
	own = *c;
	own.arena = &scratch;
	int rc = make_plan(&own, s, o, e);
	if (rc == 0)
		rc = cmd_needs_plan(&own, o->plan, o->root.world, e);
	const char *needs = NULL;
	if (rc == 0 && plan_is_extension(o->plan))
		rc = find_needs(&own, o, &needs, e);
	if (rc == 0 && options->online)
		rc = cmd_needs_network(c, o->plan, e);
	if (rc == 0) {
		const struct plan *p = o->plan;
		if (cmd_cost(c, p, &o->root, torch, &scratch, &cost, e) < 0)
			return -1;
		struct fit fit;
		json_t *doc = o->detail == PLAN_REASONS ? plan_json_explained(p) : plan_json(p);
		if (o->machine)
			fit_of(&p->runs_on, c->root, o->facts, o->machine, &scratch, &fit);
		cmd_add_runs_on(doc, &p->runs_on, o->machine ? &fit : NULL);
		json_object_set_new(doc, "world", cmd_world_json(&o->root));
		json_object_set_new(doc, "keys_lack", json_from_strlist(&o->lack));
		json_t *its = cost_json(&cost.cost, &cost.downloads, cost.jobs);
		json_object_set_new(
			its, "disk_bytes",
			json_integer((json_int_t)(cost.build_bytes + cost.world_bytes)));
		json_object_set_new(doc, "cost", its);
		if (needs)
			json_object_set_new(doc, "build_needs", json_string(needs));
		if (o->table) {
			cmd_total_add(c, p, &cost, &o->root, &o->total);
		} else if (!c->global->json) {
			plan_words(doc, p, o->detail);
			add_needs(&own, doc, o, &cost);
			json_object_set_new(doc, "-needs", json_or_null(needs));
		}

		json_array_append_new(o->all, doc);
		return 0;
	}

	if (!o->matrix || (e->kind != ERR_POLICY && e->kind != ERR_CONFIG))
		return -1;
	/* A variant of a matrix that cannot be built is listed with the reason. */
	o->refused++;
	o->worst = e->kind > o->worst ? e->kind : o->worst;
	json_array_append_new(o->all, json_pack("{s:i, s:s, s:s, s:s, s:o}", "schema", PLAN_SCHEMA,
						"variant", variant_name(&s->variant, &scratch),
						"package", s->variant.package, "release",
						s->release->name, "error", cmd_error_json(e)));
	err_clear(e);
	return 0;
}

/* How many variants each reason is of. */
static json_t *reasons_json(const json_t *all)
{
	json_t *out = json_object();
	size_t i;
	const json_t *doc;

	json_array_foreach(all, i, doc)
	{
		const char *why = json_text(json_object_get(doc, "error"), "message");
		if (*why)
			json_object_set_new(out, why, json_integer(json_int(out, why) + 1));
	}

	return out;
}

/* `units`: of a matrix; NULL else. */
static int show(struct cmd_context *c, const struct output *o, const char *units, struct err *e)
{
	c->wraps = o->detail == PLAN_CHANGES && !o->table;
	if (o->table) {
		json_t *table =
			json_pack("{s:O, s:o, s:I, s:o, s:o, s:s}", "plans", o->all, "matrix",
				  json_or_null(cmd_selected(c)->matrix), "variants",
				  (json_int_t)json_array_size(o->all), "total", total_json(c, o),
				  "refused", reasons_json(o->all), "units", units);
		return cmd_show(c, table, table_rows, e);
	}

	if (units && !c->global->json)
		json_array_append_new(o->all, json_pack("{s:s}", "-cost", units));
	return cmd_show(c, json_incref(o->one ? json_array_get(o->all, 0) : o->all),
			o->one ? one_rows : all_rows, e);
}

static int plan_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct plan_command_options *options = c->options;
	const char *matrix = options->base.select.matrix;
	AUTO_JSON json_t *all = json_array();
	struct output o = {.all = all};

	o.detail = options->explain ? PLAN_REASONS : options->all ? PLAN_ALL : PLAN_CHANGES;
	o.table = matrix && !c->global->json && o.detail == PLAN_CHANGES;
	struct selections chosen;
	struct cmd_root_group *const *groups;
	if (cmd_select(c, words, &chosen, e) < 0)
		return -1;
	/* A plan can be made on any machine: one that ptbuild does not know is not judged. */
	bool gpus = false;
	for (size_t k = 0; k < chosen.count; k++)
		gpus = gpus || chosen.items[k].variant.profile.gpu == GPU_CUDA;
	if (cmd_machine(c, gpus, &o.facts, &o.machine, e) != 0) {
		if (e->kind != ERR_POLICY)
			return -1;
		err_clear(e);
	}

	if (cmd_root_each(c, &chosen, &groups, e) < 0)
		return -1;
	o.matrix = matrix != NULL;
	o.one = chosen.count == 1 && !matrix;
	for (size_t i = 0; i < chosen.count; i++)
		if (enter_root(c, groups[i], &o, e) < 0 || put_one(c, &chosen.items[i], &o, e) < 0)
			return -1;
	/* JSON is an array of plans alone, so there the cost goes to standard error. */
	const char *units = NULL;
	if (matrix && cmd_units_cost(c, &cmd_selected(c)->units, &chosen, &units, e) < 0)
		return -1;
	if (matrix && c->global->json)
		log_info(c->run->log, "%s", units);
	if (show(c, &o, units, e) < 0)
		return -1;
	if (!o.refused)
		return 0;
	err_set(e, o.worst, "%zu of %zu variant%s of matrix '%s' cannot be built", o.refused,
		chosen.count, plural(chosen.count), matrix);
	return err_hint(e,
			"the plan gives the reason for each; --only and --release choose others");
}

const struct command command_plan = {
	.name = "plan",
	.summary = "show what would be built, and why",
	.usage = "[--profile PROFILE | --matrix NAME [--only GLOB] | VARIANT...] [--all] "
		 "[--explain] [--online] "
		 "[OPTION...]",
	.tables = {cmd_select_options, cmd_units_options, cmd_plan_options, plan_only},
	.arguments = {{"VARIANT...", CMD_SELECT_VARIANTS, "<variant>"}},
	.options_size = sizeof(struct plan_command_options),
	.run = plan_main,
};
