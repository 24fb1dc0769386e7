#include "cmd/doctor.h"

#include <string.h>

#include "base/sys/json.h"
#include "cmd/help.h"

static void add(struct doctor *d, enum doctor_level level, enum err_kind kind, const char *name, const char *text,
		const char *fix)
{
	if (d->count < ARRAY_LEN(d->checks))
		d->checks[d->count++] = (struct doctor_check){level, kind, name, text, fix};
}

void doctor_ok(struct doctor *d, const char *name, const char *text)
{
	add(d, DOCTOR_OK, ERR_NONE, name, text, "");
}

void doctor_warn(struct doctor *d, const char *name, const char *text, const char *fix)
{
	add(d, DOCTOR_WARNING, ERR_NONE, name, text, fix);
}

void doctor_fail(struct doctor *d, enum err_kind kind, const char *name, const char *text, const char *fix)
{
	add(d, DOCTOR_FAILURE, kind, name, text, fix);
}

void doctor_fail_err(struct doctor *d, const char *name, const struct err *why)
{
	doctor_fail(d, why->kind, name, arena_strdup(d->c->arena, why->msg), arena_strdup(d->c->arena, why->hint));
}

int doctor_shell(struct doctor *d, const char *script, const struct strlist *args, struct buf *out, bool *ret_ok,
		 struct err *why, struct err *e)
{
	struct sandbox s;
	struct arena *a = d->c->arena;
	struct strlist argv = {0};
	err_clear(why);
	*ret_ok = false;
	if (sandbox_init(&s, cmd_sandbox(d->c), d->root, a, why) < 0)
		return 0;
	if (d->toolkit)
		toolkit_mount(d->toolkit, &s);
	kvlist_set(&s.env, a, "PATH", ROOT_PATH);
	kvlist_set(&s.env, a, "LC_ALL", "C.UTF-8");
	strlist_ref(&argv, a, "/bin/sh");
	strlist_ref(&argv, a, "-c");
	strlist_ref(&argv, a, script);
	strlist_ref(&argv, a, "sh");
	strlist_append(&argv, a, args);
	*ret_ok = sandbox_capture(&s, strlist_argv(&argv, a), d->c->run, out, why) == 0;
	if (why->kind != ERR_INTERRUPTED)
		return 0;
	*e = *why;
	return -1;
}

static int choose(struct doctor *d, const struct strlist *args, struct err *e)
{
	const struct cmd_select *o = &((const struct cmd_select_base *)d->c->options)->select;
	const struct tables *t;
	if (cmd_tables(d->c, &t, e) < 0)
		return -1;
	if (args->count || o->profile || o->matrix || o->only.count) {
		struct selection *s;
		size_t count;
		if (cmd_select(d->c, args, &s, &count, e) < 0)
			return -1;
		if (count != 1)
			return err_set(e, ERR_USAGE, "doctor looks at one build, not %zu", count);
		d->release = s->release;
		return cmd_select_plan(d->c, s, NULL, NULL, NULL, &d->plan, e);
	}
	if (o->release)
		return tables_need_release(t, o->release, &d->release, e);
	for (unsigned i = 0; i < t->releases_count; i++)
		if (strcmp(t->releases[i].name, t->releases[i].base) == 0)
			d->release = &t->releases[i];
	return d->release ? 0 : err_set(e, ERR_CONFIG, "the tables in '%s' have no release", t->dir);
}

static const char *const level_names[] = {"ok", "warning", "failure"};

static int print_json(const struct doctor *d, struct err *e)
{
	json_t *list = json_array();
	enum doctor_level worst = DOCTOR_OK;
	for (size_t i = 0; i < d->count; i++) {
		const struct doctor_check *k = &d->checks[i];
		worst = k->level > worst ? k->level : worst;
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:o, s:o}", "name", k->name, "level", level_names[k->level],
						"text", json_or_null(k->text), "fix", json_or_null(k->fix)));
	}
	AUTO_JSON json_t *doc =
		json_pack("{s:i, s:o, s:s, s:o, s:s, s:o}", "schema", 1, "root", json_or_null(d->root->dir), "release",
			  d->release->name, "variant", json_or_null(d->plan ? d->plan->variant : NULL), "worst",
			  level_names[worst], "checks", list);
	return json_print(doc, e);
}

static int print_text(const struct doctor *d, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	buf_printf(&out, "root %s (%s), release %s%s%s\n", d->root->dir, d->root->id, d->release->name,
		   d->plan ? ", " : "", d->plan ? d->plan->variant : "");
	for (size_t i = 0; i < d->count; i++) {
		const struct doctor_check *k = &d->checks[i];
		buf_printf(&out, "%-8s %-12s %s\n", level_names[k->level], k->name, k->text);
		if (*k->fix)
			buf_printf(&out, "%-8s %-12s -> %s\n", "", "", k->fix);
	}
	return cmd_write_stdout(&out, e);
}

/* The worst: what the machine lacks comes before what does not go together, since it explains it. */
static int verdict(const struct doctor *d, struct err *e)
{
	size_t failures = 0;
	enum err_kind kind = ERR_POLICY;
	for (size_t i = 0; i < d->count; i++) {
		if (d->checks[i].level != DOCTOR_FAILURE)
			continue;
		failures++;
		if (d->checks[i].kind != ERR_POLICY)
			kind = ERR_SYSTEM;
	}
	if (failures == 0)
		return 0;
	return err_set(e, kind, "this machine cannot build it: %zu of %zu checks failed", failures, d->count);
}

static int run_doctor(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct doctor d = {.c = c};
	if (choose(&d, args, e) < 0 || cmd_root(c, &d.root, e) < 0 || doctor_sandbox(&d, e) < 0 ||
	    doctor_root(&d, e) < 0 || doctor_cuda(&d, e) < 0)
		return -1;
	doctor_machine(&d);
	if ((c->global->json ? print_json(&d, e) : print_text(&d, e)) < 0)
		return -1;
	return verdict(&d, e);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "look whether this machine can build it",
	.usage = "[--profile PROFILE | VARIANT] [options]",
	.text = (const char *const[]){"Makes a sandbox, asks every tool of the root for its version, compiles and "
				      "links with the very "
				      "flags of the profile, links with "
				      "its BLAS, lets nvcc compile for its GPU targets with the compiler it accepts, "
				      "reads the versions of "
				      "cuDNN, NCCL and the other "
				      "libraries from their headers, and compares disk and memory with what the build "
				      "needs. Each line is "
				      "ok, a warning or a failure, "
				      "with what to do about it.",
				      "Without a profile it looks at what every build of the release needs. The exit "
				      "status is 0 when "
				      "nothing fails, 8 when something "
				      "is missing, 7 when what is there does not go together.",
				      NULL},
	.tables = (const struct arg_def *const[]){cmd_select_options, cmd_plan_options, NULL},
	.arguments =
		(const struct cmd_positional[]){{"VARIANT", "exact name of a build, instead of --profile", "<profile>"},
						{0}},
	.examples = (const struct cmd_example[]){{"ptbuild doctor --profile cpu-avx512 --root /srv/debian13",
						  "can it be built in that root?"},
						 {"ptbuild doctor --profile sm90-avx512 --json", "the same as data"},
						 {0}},
	.options_size = sizeof(struct cmd_select_base),
	.run = run_doctor,
};
