#include "step/verify/verify.h"

#include "base/sys/json.h"
#include "cmd/cmd.h"
#include "step/pack/pack.h"
#include "step/pipeline/make.h"

struct verify_options {
	struct cmd_globals global;
	struct strlist with;
	struct strlist provided;
	const char *against;
	const char *key;
	struct strlist machines;
	bool ci;
	bool notes;
	bool rules;
};

/* What all wheels of a run are checked against. */
struct verify_facts {
	const struct tables *tables;
	const struct isa_rules *code;
	const struct variant *against; /* NULL: --against was not given, or names a profile */
	const struct promise *promise; /* NULL: each wheel's own */
};

/* The libraries of the root's own torch. */
static int add_libraries_of_root(struct cmd_context *c, struct verify_request *q, struct err *e)
{
	const struct root *root;
	struct torch_source torch = {0};
	struct strlist files = {0};

	if (cmd_root(c, &root, e) < 0 ||
	    torch_from_root(root, cmd_sandbox(c), NULL, c->run, c->arena, &torch, e) < 0 ||
	    torch_provides(&torch, root, NULL, c->arena, &q->provided, &files, e) < 0)
		return -1;
	return companions_of_files(&files, c->arena, &q->companions, e);
}

/* One whose METADATA cannot be read has its libraries all the same. */
static int add_dist(struct verify_request *q, const char *path, bool wheel, struct arena *a,
		    struct err *e)
{
	struct err why = {0};

	q->with = arena_room(a, q->with, q->with_count, &q->with_cap, 8, sizeof(*q->with));
	struct dist *d = &q->with[q->with_count];
	if ((wheel ? dist_of_wheel(path, a, d, &why) : dist_installed(path, a, d, &why)) == 0)
		q->with_count++;
	else if (why.kind != ERR_INTEGRITY)
		return err_take(e, &why);
	return 0;
}

/* Adds the libraries of an environment's directory. */
static int add_libraries_below(const char *dir, struct arena *a, struct verify_request *q,
			       struct err *e)
{
	struct strlist files = {0}, libraries = {0};

	if (fs_list_tree(TRUSTED, dir, a, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++) {
		const char *base = path_base(files.items[i]),
			   *info = path_base(path_dir(a, files.items[i]));
		if (strstr(base, ".so")) {
			strlist_ref(&q->provided, a, base);
			strlist_ref(&libraries, a, path_join(a, dir, files.items[i]));
		}

		if (strcmp(base, "METADATA") != 0 || !path_has_suffix(info, ".dist-info"))
			continue;
		strlist_ref(&q->given, a,
			    wheel_normalize(arena_strndup(a, info, strcspn(info, "-")), a));
		if (add_dist(q, path_join(a, dir, path_dir(a, files.items[i])), false, a, e) < 0)
			return -1;
	}

	if (!libraries.count && !q->given.count) {
		err_set(e, ERR_CONFIG, "no library and no installed package is below it");
		return err_hint(e, "name wheels by their files: --with %s/torch-*.whl", dir);
	}

	return companions_of_files(&libraries, a, &q->companions, e);
}

/* The shared libraries of a place of --with, which the checked wheel need not contain. */
static int add_libraries_of(struct cmd_context *c, struct verify_request *q, const char *wheel,
			    struct err *e)
{
	struct arena *a = c->arena;
	struct wheel_name with;
	struct stat st;
	bool root = strcmp(wheel, "root") == 0;

	if (!root && stat(wheel, &st) == 0 && S_ISDIR(st.st_mode))
		return add_libraries_below(wheel, a, q, e) < 0 ? err_wrap(e, "--with %s", wheel)
							       : 0;
	strlist_ref(&q->given, a,
		    wheel_name_parse(wheel, a, &with, ERR_IGNORED) == 0
			    ? wheel_normalize(with.dist, a)
			    : "torch");
	if (root)
		return add_libraries_of_root(c, q, e);
	struct zip_reader *z;
	if (zip_open(wheel, a, &z, e) < 0)
		return err_wrap(e, "--with %s", wheel);
	for (size_t i = 0; i < zip_count(z); i++) {
		const char *name = path_base(zip_at(z, i)->name);
		if (strstr(name, ".so"))
			strlist_add(&q->provided, a, name);
	}

	zip_close(z);
	if (add_dist(q, wheel, true, a, e) < 0)
		return err_wrap(e, "--with %s", wheel);
	return companions_of_wheel(wheel, c->run, a, &q->companions, e) < 0
		       ? err_wrap(e, "--with %s", wheel)
		       : 0;
}

/* --against: a variant, or a profile to check the code alone. */
static int read_against(struct cmd_context *c, struct verify_facts *f, struct err *e)
{
	const struct verify_options *o = c->options;
	struct arena *a = c->arena;
	struct variant *v = arena_alloc(a, sizeof(*v));
	struct promise *p = arena_alloc(a, sizeof(*p));

	if (!o->against)
		return 0;
	bool whole = variant_looks_like(o->against);
	if ((whole ? variant_parse(f->tables, o->against, a, v, e)
		   : profile_load(f->tables, o->against, a, &v->profile, e)) < 0)
		return err_wrap(e, "--against");
	promise_of_profile(&v->profile, v->cuda, arena_printf(a, "--against %s", o->against), a, p);
	f->promise = p;
	f->against = whole ? v : NULL;
	return 0;
}

static int verify_one(struct cmd_context *c, const struct verify_facts *f, const char *wheel,
		      struct verify_report *ret, const char **ret_provenance, struct err *e)
{
	const struct verify_options *o = c->options;
	struct err beside = {0};
	struct wheel_name name = {.dist = ""}; /* an invalid name is a finding */

	(void)!wheel_name_parse(wheel, c->arena, &name, ERR_IGNORED);
	struct verify_request q = {.run = c->run,
				   .wheel = wheel,
				   .policy = &f->tables->manylinux,
				   .tables = f->tables,
				   .code = f->code,
				   .promise = f->promise,
				   .against = f->against};
	strlist_append(&q.provided, c->arena, &o->provided);
	for (size_t i = 0; i < o->with.count; i++)
		if (add_libraries_of(c, &q, o->with.items[i], e) < 0)
			return -1;
	/* No sandbox makes ptbuild's own wheel, whose
	 * program and tables name the sandbox's directories. */
	if (strcmp(name.dist, "ptbuild") != 0)
		strlist_ref(&q.build_paths, c->arena, SANDBOX_TOP "/");
	if (provenance_beside(wheel, c->arena, ret_provenance, &beside) < 0) {
		if (beside.kind != ERR_INTEGRITY)
			return err_take(e, &beside);
		q.provenance = beside.msg;
	}

	return verify_wheel(&q, c->arena, ret, e);
}

/* Whether it is the digest of a file of dist-info: no installer compares those. What RECORD itself
 * is like counts. */
static bool is_own_digest(const struct finding *f)
{
	if (strcmp(f->rule, "record") != 0 || path_has_suffix(f->file, "/RECORD"))
		return false;
	return strstr(f->file, ".dist-info/") != NULL;
}

/* What is broken may not run where it would fit. */
static void judge_errors(const struct verify_report *r, struct arena *a, struct fit *fit)
{
	static const char *const rules[] = {"zip",        "record",     "metadata", "name",
					    "elf",        "module",     "needed",   "undefined",
					    "tag",        "exec-stack", "isa",      "isa-init",
					    "isa-comdat", "abi3",       "gpu-code"};
	struct strlist broken = {0};
	/* A tag that says too little is judged by the glibc that is needed. */
	const bool judged = manylinux_glibc(r->tag);

	for (size_t k = 0; k < ARRAY_LEN(rules); k++)
		for (size_t i = 0; i < r->count; i++) {
			const struct finding *f = &r->findings[i];
			const bool tag = judged && strcmp(rules[k], "tag") == 0;
			if (f->level != FINDING_ERROR || strcmp(f->rule, rules[k]) != 0)
				continue;
			if (!tag && !is_own_digest(f))
				strlist_once(&broken, a, rules[k]);
		}
	if (!broken.count)
		return;
	enum fit_verdict verdict = strcmp(broken.items[0], "zip") == 0 ? FIT_NO : FIT_PERHAPS;
	fit->verdict = verdict > fit->verdict ? verdict : fit->verdict;
	strlist_ref(&fit->lacks, a,
		    arena_printf(a, "the wheel is broken (%s)", strlist_join(&broken, a, ", ")));
}

static const struct show runs_on[] = {SHOW("made", "{provenance}"),
				      SHOW("runs on", "{^} {}", .each = "-runs_on"),
				      SHOW("", "this machine: {-here}{!machines}"),
				      SHOW("", "{machine}: {-fit}", .each = "machines"),
				      {0}};
static const struct show whole[] = {{.rows = verify_rows}, {.rows = runs_on}, {0}};
static const struct show wholes[] = {{.each = "wheels", .rows = whole}, {0}};
static const struct show brief[] = {{.rows = verify_brief_rows}, {.rows = runs_on}, {0}};
static const struct show briefs[] = {{.each = "wheels", .rows = brief}, {0}};
static const struct show report_lines[] = {{.each = "wheels", .rows = verify_lines}, {0}};
static const struct show rule_rows[] = {{.each = "rules", .columns = {"rule={code}", "text"}}, {0}};

static json_t *rules_json(void)
{
	json_t *list = json_array();

	for (const struct verify_rule *r = verify_rules; r->code; r++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s}", "code", r->code, "text", r->text));
	return json_pack("{s:i, s:o}", "schema", 1, "rules", list);
}

/* --key: the signed provenance of each wheel, before anything else is read from it. */
static int check_signatures(struct cmd_context *c, const char *path, const struct strlist *wheels,
			    struct err *e)
{
	struct sign_key *AUTO_SIGN_KEY key = NULL;

	if (sign_load(path, false, &key, e) < 0)
		return err_wrap(e, "--key");
	for (size_t i = 0; i < wheels->count; i++) {
		if (provenance_check(wheels->items[i], key, c->arena, e) < 0)
			return -1;
		log_info(c->run->log, "%s: signed by %.16s...", path_base(wheels->items[i]),
			 sign_key_id(key));
	}

	return 0;
}

/* A wheel with GPU code is for a machine with a GPU; without any, no driver is asked. */
static int judge_here(struct cmd_context *c, const struct runs_on *r, struct fit *ret,
		      struct err *e)
{
	const struct hardware_facts *facts;
	const struct hardware *machine;

	if (cmd_machine(c, r->gpu.count || *r->driver, &facts, &machine, e) < 0)
		return -1;
	fit_of(r, NULL, facts, machine, c->arena, ret);
	return 0;
}

static int judge_described(struct cmd_context *c, const struct runs_on *r, const char *file,
			   struct fit *ret, struct err *e)
{
	const struct hardware_facts *facts;
	struct hardware described;

	if (hardware_facts_load(c->profiles_dir, c->arena, &facts, e) < 0 ||
	    hardware_load(file, c->arena, &described, e) < 0)
		return -1;
	fit_of(r, NULL, facts, &described, c->arena, ret);
	return 0;
}

/* The wheel on this machine, or on those of --machine,
 * of which the first takes the place of this one. */
static int add_machines(struct cmd_context *c, const struct verify_report *r, json_t *doc,
			struct err *e)
{
	const struct verify_options *o = c->options;
	struct fit fit;

	if (!o->machines.count && judge_here(c, &r->runs_on, &fit, e) < 0)
		return -1;
	AUTO_JSON json_t *all = json_array();
	for (size_t i = o->machines.count; i-- > 0;) {
		if (judge_described(c, &r->runs_on, o->machines.items[i], &fit, e) < 0)
			return -1;
		judge_errors(r, c->arena, &fit);
		json_t *one = fit_json(&fit);
		json_object_set_new(one, "machine", json_string(o->machines.items[i]));
		json_object_set_new(one, "-fit", json_string(fit_text(&fit, c->arena)));
		json_array_insert_new(all, 0, one);
	}

	if (!o->machines.count)
		judge_errors(r, c->arena, &fit);
	cmd_add_runs_on(doc, &r->runs_on, &fit);
	if (o->machines.count)
		json_object_set(doc, "machines", all);
	return 0;
}

static int run_verify(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct verify_options *o = c->options;
	struct verify_facts f = {0};
	AUTO_JSON json_t *list = json_array();
	size_t wrong = 0;

	if (o->rules)
		return cmd_show(c, rules_json(), rule_rows, e);
	if (o->ci && o->global.json)
		return err_set(e, ERR_USAGE, "--ci and --json exclude each other");
	if (args->count == 0) {
		err_set(e, ERR_USAGE, "verify needs a wheel");
		return err_hint(e, "for example 'ptbuild verify dist/*.whl'");
	}

	if (cmd_open(c, OPEN_TABLES, e) < 0)
		return -1;
	f.tables = c->tables;
	if (isa_rules_new(f.tables, c->arena, &f.code, e) < 0 || read_against(c, &f, e) < 0 ||
	    (o->key && check_signatures(c, o->key, args, e) < 0))
		return -1;
	for (size_t i = 0; i < args->count; i++) {
		struct verify_report r = {0};
		const char *provenance = NULL;
		log_wait(c->run->log, "%s: reading", path_base(args->items[i]));
		if (verify_one(c, &f, args->items[i], &r, &provenance, e) < 0)
			return -1;
		json_t *doc = verify_json(&r);
		json_array_append_new(list, doc);
		json_object_set_new(doc, "provenance", json_or_null(provenance));
		if (!r.runs_on.python || o->ci)
			json_object_set_new(doc, "this_machine", json_null());
		else if (add_machines(c, &r, doc, e) < 0)
			return -1;
		verify_brief(doc);
		wrong += r.errors > 0;
	}

	const struct show *rows = o->ci ? report_lines : o->notes ? wholes : briefs;
	if (cmd_show(c, json_pack("{s:i, s:O}", "schema", 1, "wheels", list), rows, e) < 0)
		return -1;
	if (wrong == 0)
		return 0;
	return err_set(e, ERR_INTEGRITY, "%zu of %zu wheel%s failed verification", wrong,
		       args->count, plural(args->count));
}

#define OPTION(type, field) (type), offsetof(struct verify_options, field)

static const struct arg_def verify_options[] = {
	{"with", 0, OPTION(ARG_LIST, with), "WHEELS|TREES",
	 "wheels installed alongside, whose libraries it may use, or root for the torch of --root",
	 "<wheel or tree>"},
	{"provided", 0, OPTION(ARG_LIST, provided), "NAMES",
	 "libraries that its dependencies provide, for example libcudart.so.12", NULL},
	{"against", 0, OPTION(ARG_STRING, against), "VARIANT",
	 "variant that the wheel must be, or a profile to check its code alone (default: from its "
	 "version label)",
	 "<profile>"},
	{"key", 0, OPTION(ARG_STRING, key), "FILE",
	 "public key (PEM) that must have signed the wheel's provenance", "<file>"},
	{"machine", 0, OPTION(ARG_LIST, machines), "FILES",
	 "judge for the machines that these files describe (see 'ptbuild detect'), not for this "
	 "one",
	 "<file>"},
	{"ci", 0, OPTION(ARG_FLAG, ci), NULL,
	 "print only the findings, one a line: wheel:member: error[code]: text", NULL},
	{"notes", 0, OPTION(ARG_FLAG, notes), NULL,
	 "show every finding and all notes, not one line a rule", NULL},
	{"rules", 0, OPTION(ARG_FLAG, rules), NULL,
	 "list the rules and their codes without checking anything", NULL},
	{0},
};

const struct command command_verify = {
	.name = "verify",
	.summary = "check any wheel without running it",
	.usage = "WHEEL... [options]",
	.tables = {verify_options},
	.arguments = {{"WHEEL...", "the wheels to check", "<wheel>"}},
	.options_size = sizeof(struct verify_options),
	.run = run_verify,
};
