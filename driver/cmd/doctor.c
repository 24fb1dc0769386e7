#include <string.h>

#include "base/sys/json.h"
#include "cmd/help.h"
#include "cmd/select.h"
#include "step/pipeline/trial.h"
#include "step/preflight/preflight.h"

/* The one selected build, or a release alone. */
static int choose(struct cmd_context *c, const struct strlist *args, struct preflight_request *q, struct err *e)
{
	const struct cmd_select *o = &((const struct cmd_select_base *)c->options)->select;
	if (cmd_tables(c, &q->tables, e) < 0)
		return -1;
	if (args->count || o->profile || o->matrix || o->only.count) {
		struct selections s;
		if (cmd_select(c, args, &s, e) < 0)
			return -1;
		if (s.count != 1)
			return err_set(e, ERR_USAGE, "doctor checks one build, not %zu", s.count);
		q->release = s.items->release;
		return cmd_select_plan(c, s.items, NULL, NULL, NULL, &q->plan, e);
	}
	if (o->release)
		return tables_need_release(q->tables, o->release, &q->release, e);
	for (unsigned i = 0; i < q->tables->releases_count; i++)
		if (strcmp(q->tables->releases[i].name, q->tables->releases[i].base) == 0)
			q->release = &q->tables->releases[i];
	return q->release ? 0 : err_set(e, ERR_CONFIG, "the tables in '%s' have no release", q->tables->dir);
}

static const char *const level_names[] = {"ok", "warning", "failure"};

static int print_json(const struct preflight *d, struct err *e)
{
	json_t *list = json_array();
	enum preflight_level worst = PREFLIGHT_OK;
	for (size_t i = 0; i < d->count; i++) {
		const struct preflight_line *k = &d->lines[i];
		worst = k->level > worst ? k->level : worst;
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:o, s:o}", "name", k->name, "level", level_names[k->level],
						"text", json_or_null(k->text), "fix", json_or_null(k->fix)));
	}
	AUTO_JSON json_t *doc = json_pack("{s:i, s:o, s:s, s:o, s:s, s:o}", "schema", 1, "root",
					  json_or_null(d->q->root->dir), "release", d->q->release->name, "variant",
					  json_or_null(d->q->plan ? d->q->plan->variant : NULL), "worst",
					  level_names[worst], "checks", list);
	return json_print(doc, e);
}

static int print(const struct cmd_context *c, const struct preflight *d, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	if (c->global->json)
		return print_json(d, e);
	buf_printf(&out, "root %s (%s), release %s%s%s\n", d->q->root->dir, d->q->root->id, d->q->release->name,
		   d->q->plan ? ", " : "", d->q->plan ? d->q->plan->variant : "");
	for (size_t i = 0; i < d->count; i++) {
		const struct preflight_line *k = &d->lines[i];
		buf_printf(&out, "%-8s %-12s %s\n", level_names[k->level], k->name, k->text);
		if (*k->fix)
			buf_printf(&out, "%-8s %-12s -> %s\n", "", "", k->fix);
	}
	return cmd_write_stdout(&out, e);
}

/* What a build would do next: it leaves nothing in the store but that it passed. */
static int try_it(struct cmd_context *c, struct preflight *d, struct err *e)
{
	struct pipeline_request q = {.tables = d->q->tables, .root = d->q->root, .kind = d->q->kind, .offline = true};
	const struct trial_request t = {&q, d->q->plan, d->toolchain};
	struct err why = {0};
	double start = log_seconds();
	for (size_t i = 0; i < d->count; i++)
		if (d->lines[i].level == PREFLIGHT_FAILURE)
			return 0;
	if (cmd_profiles_dir(c, &q.profiles_dir, e) < 0)
		return -1;
	if (cmd_store(c, &q.store, &why) < 0)
		return preflight_fail_err(d, "store", &why, e);
	if (trial_run(&t, c->run, c->arena, &why) == 0) {
		preflight_ok(d, "trial", "a small extension went the whole way in %.1f s", log_seconds() - start);
	} else if (why.kind == ERR_NETWORK) {
		preflight_warn(d, "trial", "not made, since doctor fetches nothing: %s", why.msg);
		preflight_fix(d, "'ptbuild fetch' fetches what the build needs");
	} else {
		return preflight_fail_err(d, "trial", &why, e);
	}
	return 0;
}

static int run_doctor(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct preflight_request q = {
		.kind = cmd_sandbox(c), .cuda_home = cmd_select_cuda_home(c), .jobs = c->global->jobs, .whole = true};
	struct preflight *d = arena_alloc(c->arena, sizeof(*d));
	if (choose(c, args, &q, e) < 0 || cmd_root(c, &q.root, e) < 0 || cmd_cache_dir(c, &q.store_dir, e) < 0 ||
	    cmd_out_dir(c, &q.out_dir, e) < 0 || preflight_run(d, &q, c->run, c->arena, e) < 0 ||
	    (q.plan && try_it(c, d, e) < 0) || print(c, d, e) < 0)
		return -1;
	return preflight_verdict(d, e);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check whether this machine can build it",
	.usage = "[--profile PROFILE | VARIANT] [options]",
	.text = "Looks for all that the build needs: a sandbox, directories, disk and memory, the root's tools in the "
		"release's range, programs, headers and Python modules, pip and its CA bundle. Compiles and links with "
		"the flags of the profile and with its BLAS, and lets nvcc compile for its GPU targets with the "
		"compiler that it accepts. Reads the versions of cuDNN, NCCL and the other libraries from their "
		"headers. With a profile, a small extension goes the whole way to an imported wheel. Each line is ok, "
		"a warning or a failure, with what to do about it. A build begins with the "
		"same checks.\n"
		"Without a profile it checks what every build of the release needs. The exit status is 0 if nothing "
		"failed, 8 if something is missing, and 7 if what is there does not go together.",
	.tables = {cmd_select_options, cmd_plan_options},
	.arguments = {{"VARIANT", "exact name of a build, instead of --profile", "<variant>"}},
	.examples = {{"ptbuild doctor --profile cpu-avx512 --root /srv/debian13", "can it be built in that root?"},
		     {"ptbuild doctor --profile sm90-avx512 --json", "the same as data"}},
	.options_size = sizeof(struct cmd_select_base),
	.run = run_doctor,
};
