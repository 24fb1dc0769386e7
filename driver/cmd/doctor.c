#include "base/sys/json.h"
#include "cmd/slim_gpus.h"
#include "step/ccache/ccache_relay.h"

static const char *const level_names[] = {"ok", "warning", "failure"};

static json_t *json_of(const struct preflight *d)
{
	json_t *list = json_array();
	enum preflight_level worst = PREFLIGHT_OK;

	for (size_t i = 0; i < d->count; i++) {
		const struct preflight_line *k = &d->lines[i];
		worst = k->level > worst ? k->level : worst;
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "name", k->name,
						      "level", level_names[k->level], "text",
						      json_or_null(k->text), "fix",
						      json_or_null(k->fix)));
	}

	const char *world = d->q->not_made, *root = world ? world : d->q->root->dir;
	return json_pack(
		"{s:i, s:o, s:s, s:o, s:s, s:o, s:o}", "schema", 1, "root", json_or_null(root),
		"release", d->q->release->name, "variant",
		json_or_null(d->q->plan ? d->q->plan->variant : NULL), "worst", level_names[worst],
		"checks", list, "-root",
		json_or_null(world ? arena_printf(d->arena, "world %s", world)
				   : arena_printf(d->arena, "root %s (%s)", root, d->q->root->id)));
}

static const struct show fix_rows[] = {{.text = "-> {fix}", .indent = 22}, {0}};
static const struct show check_rows[] = {
	{.text = "\n{-root}, release {release}[, {variant}]"},
	SHOW("{level:<8} {name:<12}", "{text}", .each = "checks", .rows = fix_rows),
	{0}};
static const struct show build_rows[] = {{.each = "", .rows = check_rows}, {0}};

struct doctor_options {
	struct cmd_select_base base;
	const char *env;
};

static const struct arg_def doctor_only[] = {{"env", 0, ARG_STRING,
					      offsetof(struct doctor_options, env), "DIR",
					      "show for which GPUs 'ptbuild slim --env' made this "
					      "environment, and check those of this machine",
					      "<dir>"},
					     {0}};

struct doctor {
	struct cmd_context *c;
	struct pipeline_request q; /* of the trial */
	json_t *docs;
	const char *data;   /* directory of the installation's own files; NULL: not looked at */
	size_t data_files;  /* in it */
	struct err verdict; /* the first that failed */
};

/* What a build would do next: it leaves nothing in the store but that it passed. */
static int try_it(void *user, struct preflight *d, struct err *e)
{
	struct doctor *k = user;
	const struct cmd_globals *g = k->c->global;
	struct err why = {0};

	if (!d->q->plan)
		return 0;
	k->q.root = d->q->root;
	if (cmd_store(k->c, &k->q.store, &why) < 0)
		return preflight_err(d, "store", &why, e);
	if (pipeline_trial(&k->q, d, e) < 0)
		return -1;
	struct preflight_line *l = &d->lines[d->count - 1];
	if (l->level != PREFLIGHT_WARNING)
		return 0;
	const char *cache = "", *root = "";
	if (g->cache)
		cache = arena_printf(d->arena, " --cache %s", shell_quoted(g->cache, d->arena));
	if (g->root)
		root = arena_printf(d->arena, " --root %s", shell_quoted(g->root, d->arena));
	l->fix = arena_printf(d->arena,
			      "ptbuild fetch %s --release %s%s%s fetches what the build needs",
			      d->q->plan->variant, d->q->release->name, cache, root);
	return 0;
}

static int installs(void *user, struct preflight *d, struct strlist *ret, struct err *e)
{
	struct doctor *k = user;
	return pipeline_installs(&k->q, d, ret, e);
}

static int reach(void *user, struct preflight *d, struct err *e)
{
	struct doctor *k = user;
	return cmd_needs_reach(k->c, d, e);
}

/* Prints the cost of the build, in the words of 'plan'. */
static int say_cost(struct cmd_context *c, struct preflight *d, struct err *e)
{
	struct cmd_root_state state;
	struct cmd_cost k;
	const char *needs;

	if (d->stop)
		return 0;
	if (cmd_requirements(c, d->q->plan, d->q->not_made ? NULL : d->q->root, &needs, e) < 0)
		return -1;
	if (needs)
		preflight_ok(d, "python", "%s", needs);
	if (cmd_root_look(c, &state, e) < 0 ||
	    cmd_cost(c, d->q->plan, &state, cmd_selected(c)->plan.torch, d->arena, &k, e) < 0)
		return -1;
	preflight_ok(d, "downloads", "%s", cost_downloads_text(&k.downloads, d->arena));
	preflight_ok(d, "time", "%s", cmd_cost_time(&k, d->arena));
	return 0;
}

/* One build, or (plan NULL) what every build of a release needs, on the root that was entered. */
static int look(struct doctor *k, const struct release_row *release, const struct plan *plan,
		struct err *e)
{
	struct cmd_context *c = k->c;
	struct preflight *d = arena_alloc(c->arena, sizeof(*d));
	struct preflight_request q;

	if (cmd_needs_request(c, release, plan, &q, e) < 0)
		return -1;
	q.stages = PREFLIGHT_TABLES | PREFLIGHT_MACHINE | PREFLIGHT_NETWORK | PREFLIGHT_ROOT;
	q.whole = true;
	q.installs = installs;
	q.reach = reach;
	q.trial = try_it;
	q.user = k;
	if (preflight_run(d, &q, c->run, c->arena, e) < 0 || (plan && say_cost(c, d, e) < 0))
		return -1;
	if (k->data)
		preflight_ok(d, "data", "%zu files of ptbuild in '%s' are as installed",
			     k->data_files, k->data);
	json_array_append_new(k->docs, json_of(d));
	if (preflight_verdict(d, k->verdict.kind == ERR_NONE ? &k->verdict : ERR_IGNORED) < 0)
		log_verbose(c->run->log, "%s: failed", plan ? plan->variant : release->name);
	return 0;
}

static int look_at_builds(struct doctor *k, const struct strlist *args, struct err *e)
{
	struct cmd_root_group *groups;
	struct selections s;
	size_t count;

	if (cmd_select(k->c, args, &s, e) < 0)
		return -1;
	if (cmd_selected(k->c)->matrix && s.count > 1)
		return err_set(e, ERR_USAGE,
			       "doctor checks the builds of a command, not the %zu of a matrix",
			       s.count);
	if (cmd_root_groups(k->c, &s, &groups, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (groups[i].why.kind != ERR_NONE)
			return err_take(e, &groups[i].why);
		cmd_root_enter(k->c, &groups[i]);
		for (size_t n = 0; n < groups[i].chosen.count; n++) {
			const struct selection *one = &groups[i].chosen.items[n];
			const struct plan *p;
			if (cmd_plan(k->c, one, false, &p, e) < 0 ||
			    look(k, one->release, p, e) < 0)
				return -1;
		}
	}

	return 0;
}

/* Of --release, else the newest of upstream's. */
static int look_at_release(struct doctor *k, const char *name, struct err *e)
{
	const struct tables *t = k->q.tables;
	const struct release_row *r = NULL;

	for (unsigned i = 0; i < t->releases_count; i++)
		if (tables_offered(&t->releases[i]))
			r = &t->releases[i];
	if (name && tables_need_release(t, name, &r, e) < 0)
		return -1;
	if (!r)
		return err_set(e, ERR_CONFIG, "the tables in '%s' have no release", t->dir);
	return cmd_root_default(k->c, r, e) < 0 ? -1 : look(k, r, NULL, e);
}

static int run_doctor(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct doctor_options *own = c->options;
	const struct cmd_select *o = cmd_selected(c);
	const bool of_builds = args->count || o->profile || o->matrix || o->only.count;

	if (own->env && of_builds)
		return err_set(e, ERR_USAGE, "--env cannot be used with builds");
	if (own->env)
		return cmd_env_doctor(c, own->env, e);
	AUTO_JSON json_t *docs = json_array();
	struct doctor k = {
		.c = c, .q = {.kind = cmd_sandbox(c), .fetch.offline = true}, .docs = docs};
	const char *remote = getenv("PTBUILD_CCACHE_REMOTE");
	if (remote && *remote && ccache_relay_check(remote, e) < 0)
		return -1;
	/* First: a broken installation explains what else fails. */
	k.data = cmd_installed_data(c);
	if (k.data && preflight_data_files(k.data, c->arena, &k.data_files, e) < 0)
		return -1;
	if (cmd_open(c, OPEN_TABLES | OPEN_PATCHES, e) < 0)
		return -1;
	k.q.tables = c->tables;
	k.q.profiles_dir = c->profiles_dir;
	int rc = of_builds ? look_at_builds(&k, args, e) : look_at_release(&k, o->release, e);
	if (rc < 0)
		return -1;
	const bool one = json_array_size(docs) == 1;
	if (cmd_show(c, json_incref(one ? json_array_get(docs, 0) : docs),
		     one ? check_rows : build_rows, e) < 0)
		return -1;
	return k.verdict.kind == ERR_NONE ? 0 : err_take(e, &k.verdict);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check whether this machine can build it",
	.usage = "[--profile PROFILE [--package LIST] | VARIANT... | --env DIR] [options]",
	.tables = {doctor_only, cmd_select_options, cmd_plan_options},
	.arguments = {{"VARIANT", "exact name of a build, instead of --profile", "<variant>"}},
	.options_size = sizeof(struct doctor_options),
	.run = run_doctor,
};
