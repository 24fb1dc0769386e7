#include "base/sys/digest.h"
#include "base/sys/json.h"
#include "cmd/select.h"
#include "core/ci/ci_install.h"
#include "core/variant/variant.h"
#include "step/ccache/ccache_relay.h"
#include "step/compile/build_parts.h"

struct matrix_options {
	struct cmd_select_base base;
	const char *format;
	const char *runner_map;
	const char *image;
	const char *file;
	const char *remote;
	const char *status;
	struct strlist wheels; /* of ptbuild */
	unsigned shards;
	bool attest;
};

#define LIST_MAX_BYTES (4u << 20)
#define MOST_SHARDS 64u /* each configures the complete build */

static bool shares(const struct variant *v, const struct release_row *r)
{
	const struct package_row *row = tables_package(r, v->package);
	const struct backend *b;

	return package_is_torch(v->package) && row &&
	       backend_find(row->backend, &b, ERR_IGNORED) == 0 &&
	       backend_shares(b, v->package, ERR_IGNORED) == 0;
}

/* Jobs have names of variants and no --profile, so such a name must lead to the same file. */
static int check_file(struct cmd_context *c, const struct tables *t, const struct variant *v,
		      struct err *e)
{
	const char *name = variant_name(v, c->arena);
	struct variant again;
	AUTO_FREE char *asked = NULL, *found = NULL;

	if (!*v->profile.file)
		return 0;
	asked = realpath(v->profile.file, NULL);
	if (variant_parse(t, name, c->arena, &again, ERR_IGNORED) == 0 && *again.profile.file)
		found = realpath(again.profile.file, NULL);
	if (asked && found && strcmp(asked, found) == 0)
		return 0;
	err_set(e, ERR_USAGE,
		"'%s' cannot be the profile of a job: there '%s' does not mean this file",
		v->profile.file, name);
	return err_hint(e,
			"move it to '%s/examples', where its name finds it, or name a standard "
			"profile, such as %s",
			t->dir, profile_composed_name(&v->profile, c->arena));
}

/* The variants that get a job. */
struct choices {
	struct ci_choice *items;
	size_t count;
};

/* What a job downloads for its world. The name of a cache says which files are in it. */
static struct ci_files files_of(const struct cmd_context *c, const struct world *w)
{
	if (!w || c->global->offline)
		return (struct ci_files){0};
	return (struct ci_files){.world = w->name, .key = w->key, .bytes = w->download};
}

static struct ci_choice choice_of(const struct cmd_context *c, const struct selection *s,
				  const struct world *w)
{
	return (struct ci_choice){.variant = s->variant,
				  .release = s->release,
				  .shares = shares(&s->variant, s->release),
				  .world = matrix_world_bytes(w),
				  .files = files_of(c, w)};
}

/* Returns the selected variants, each with its build's toolkit if the name leaves it open: the
 * job's outputs are named after it, and objects are shared by it. Variants that cannot be built get
 * no job; a warning names them. */
static int choose(struct cmd_context *c, const struct strlist *words, struct choices *ret,
		  struct err *e)
{
	struct selections chosen;
	struct cmd_root_group *const *groups = NULL;
	struct err why = {0};

	if (cmd_open(c, OPEN_TABLES, e) < 0 || cmd_select(c, words, &chosen, e) < 0)
		return -1;
	/* A world that cannot be is the error of a job:
	 * another machine may have what this one lacks. */
	if (cmd_root_each(c, &chosen, &groups, ERR_IGNORED) < 0)
		groups = NULL;
	ret->items = arena_array(c->arena, chosen.count, sizeof(*ret->items));
	ret->count = 0;
	for (size_t i = 0; i < chosen.count; i++) {
		struct selection *s = &chosen.items[i];
		const struct plan_request q = {.variant = &s->variant,
					       .release = s->release->name,
					       .options = cmd_plan_asked(c)};
		if (check_file(c, c->tables, &s->variant, e) < 0)
			return -1;
		if (profile_is_planned_only(&s->variant.profile))
			log_warn(c->run->log, "%s is left out: it can be planned and not built",
				 variant_name(&s->variant, c->arena));
		else if (plan_cuda(c->tables, &q, c->arena, &s->variant.cuda, &why) == 0)
			ret->items[ret->count++] =
				choice_of(c, s, groups ? groups[i]->world : NULL);
		else
			log_warn(c->run->log, "%s is left out: %s",
				 variant_name(&s->variant, c->arena), why.msg);
	}

	return ret->count ? 0
			  : err_set(e, ERR_POLICY, "none of these variants can be built%s%s",
				    *why.msg ? ": " : "", why.msg);
}

/* What is compiled is counted, not supposed. */
static json_t *waves_json(const struct ci_plan *p)
{
	json_t *waves = json_array();

	for (unsigned wave = 1; wave <= p->waves; wave++) {
		json_int_t jobs = 0, cpu = 0, gpu = 0;
		for (size_t i = 0; i < p->count; i++) {
			jobs += p->jobs[i].wave == wave;
			/* Shards compile one set together; what
			 * their last job would is compiled then. */
			const char *shard = p->jobs[i].shard;
			const bool first = p->jobs[i].wave == wave &&
					   (!*shard || strncmp(shard, "1/", 2) == 0);
			cpu += first && p->jobs[i].makes_cpu;
			gpu += first && p->jobs[i].makes_gpu;
		}

		json_array_append_new(waves, json_pack("{s:i, s:I, s:I, s:I, s:I, s:b}", "wave",
						       wave, "jobs", jobs, "cpu", cpu, "gpu", gpu,
						       "all", cpu + gpu, "one", jobs == 1));
	}

	return waves;
}

/* clang-format off */
#define JOB_TIME ">time=[{?makes_cpu}{estimate_seconds:time}][{!makes_cpu}{?makes_gpu}{estimate_seconds:time}]"
/* clang-format on */

static const struct show table_rows[] = {
	{.text = "wave {wave}: {jobs} job{jobs:s} compile[{?one}s] C++ units for {cpu} instruction "
		 "set{cpu:s} and GPU "
		 "units for {gpu} list{gpu:s}{?all}",
	 .each = "-waves"},
	{.text = "wave {wave}: {jobs} job{jobs:s} find[{?one}s] everything compiled{!all}",
	 .each = "-waves"},
	{.each = "jobs",
	 .columns = {"wave", "shares=[{gpu_cache}][{!gpu_cache}{cpu_cache}]", "runs on={runs_on}",
		     JOB_TIME, ">disk={disk_bytes:MiB}", "variants"}},
	{0}};

/* A single word that does not look like a variant names a matrix. */
static int take_words(struct cmd_context *c, const struct strlist *args, struct matrix_options *o,
		      struct strlist *words, struct err *e)
{
	strlist_append(words, c->arena, args);
	if (words->count == 1 && !variant_looks_like(words->items[0]) && !o->base.select.matrix) {
		o->base.select.matrix = words->items[0];
		*words = (struct strlist){0};
	}

	if (!o->file && !words->count && !o->base.select.matrix && !o->base.select.profile) {
		err_set(e, ERR_USAGE, "no matrix is named");
		return err_hint(e, "'ptbuild list --matrices' lists them");
	}

	if (!o->file)
		return 0;
	if (words->count || o->base.select.matrix || o->base.select.profile)
		return err_set(e, ERR_USAGE, "--file already names the variants");
	/* A name a line; empty lines and comments (#) are skipped. */
	AUTO_BUF struct buf text = {0};
	struct strlist lines = {0};
	if (fs_read(TRUSTED, o->file, LIST_MAX_BYTES, &text, e) < 0)
		return -1;
	if (strlen(buf_cstr(&text)) != text.len)
		return err_set(e, ERR_CONFIG, "not a text file: '%s'", o->file);
	strlist_split(&lines, c->arena, buf_cstr(&text), "\r\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i] + strspn(lines.items[i], " \t");
		if (*line && *line != '#')
			strlist_ref(words, c->arena,
				    arena_strndup(c->arena, line, strcspn(line, " \t")));
	}

	return words->count ? 0 : err_set(e, ERR_CONFIG, "no variant is named in '%s'", o->file);
}

/* An option that needs no quoting in a shell. */
static int add_option(struct buf *out, const char *option, const char *value, struct err *e)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,=/+:@%-";

	if (!*value || strspn(value, plain) != strlen(value))
		return err_set(e, ERR_USAGE,
			       "--%s '%s' cannot be written into a CI file: only letters, digits "
			       "and _.,=/+:@%%- can",
			       option, value);
	buf_printf(out, " --%s %s", option, value);
	return 0;
}

/* Options for the command line of a job. */
struct job_options {
	struct buf *text;
	bool here; /* one has a path below this directory */
};

/* The values of one option as the user gave them. */
static int add_values(struct job_options *j, const struct arg_def *d, const void *options,
		      struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist values = {0};

	args_values(d, options, &a, &values);
	for (size_t i = 0; i < values.count; i++) {
		const char *value = values.items[i];
		j->here = j->here || (*value != '/' && fs_exists(TRUSTED, value));
		if (add_option(j->text, d->name, value, e) < 0)
			return -1;
	}

	return 0;
}

/* The options that each build gets beside its variants. */
static int options_text(struct cmd_context *c, const char **ret, bool *ret_here, struct err *e)
{
	const struct cmd_select *o = &((const struct matrix_options *)c->options)->base.select;
	AUTO_BUF struct buf out = {0};
	struct job_options j = {.text = &out};

	for (const struct arg_def *d = cmd_plan_options; d->name; d++)
		if (add_values(&j, d, c->options, e) < 0)
			return -1;
	if (o->cuda_home && add_option(&out, "cuda-home", o->cuda_home, e) < 0)
		return -1;
	for (const struct arg_def *d = cmd_global_options; d->name; d++)
		if (strcmp(d->name, "cache") != 0 && strcmp(d->name, "out") != 0 &&
		    add_values(&j, d, c->global, e) < 0)
			return -1;
	if (c->global->no_drift)
		buf_printf(&out, " --no-drift");
	if (c->global->offline)
		buf_printf(&out, " --offline");
	*ret = arena_strdup(c->arena, buf_cstr(&out));
	*ret_here = j.here;
	return 0;
}

/* Every option of every command reaches the jobs, or is refused by name. */
static int check_globals(struct cmd_context *c, const struct ci_output *f, struct err *e)
{
	const struct matrix_options *o = c->options;
	const char *own = c->global->cache ? "--cache" : c->global->out ? "--out" : NULL;
	const enum ci_kind kind = f->kind;

	if (kind == CI_SERVICE && own) {
		err_set(e, ERR_USAGE,
			"%s has no effect here: each job has a store and a directory of its own",
			own);
		return err_hint(
			e,
			"leave it out; --lower-store and --store-url name stores that jobs share");
	}

	if (kind == CI_SCRIPT && c->global->out) {
		err_set(e, ERR_USAGE,
			"--out has no effect here: wheels go into the directory that the script is "
			"given");
		return err_hint(
			e, "leave it out; then 'bash FILE DIR', and the wheels are in DIR/dist");
	}

	if (kind == CI_VOLUME && !o->image) {
		err_set(e, ERR_USAGE, "--format %s requires --image", f->name);
		return err_hint(e, "name an image that has ptbuild, for example --image "
				   "registry.example/ptbuild:1");
	}

	if (o->wheels.count && kind != CI_SERVICE)
		return err_set(e, ERR_USAGE,
			       "--ptbuild has no effect here: jobs for github and gitlab alone "
			       "install ptbuild");
	if (o->wheels.count && o->image) {
		err_set(e, ERR_USAGE, "--ptbuild and --image cannot be used together");
		return err_hint(e, "leave one out: an image has its own ptbuild");
	}

	if (kind == CI_SCRIPT && o->image)
		return err_set(e, ERR_USAGE,
			       "--image has no effect here: jobs run on the nodes themselves");
	if (o->shards > 1 && kind == CI_SERVICE && !o->remote) {
		err_set(e, ERR_USAGE,
			"--shards needs a server here: jobs of this service cannot add to one "
			"cache");
		return err_hint(e, "add --ccache-remote URL");
	}

	if (o->shards > MOST_SHARDS)
		return err_set(e, ERR_USAGE, "--shards %u: at most %u", o->shards, MOST_SHARDS);
	if (o->remote && strchr(o->remote, '@')) {
		err_set(e, ERR_USAGE,
			"the password in --ccache-remote would be readable in the generated file");
		return err_hint(e, "set PTBUILD_CCACHE_REMOTE as a secret of the service, and "
				   "leave the option out");
	}

	return o->remote ? ccache_relay_check(o->remote, e) : 0;
}

/* A file of the repository is there, where the matrix is written. */
static int check_wheel(const struct ci_wheel *w, struct err *e)
{
	char found[DIGEST_HEX_LEN + 1];

	if (!fs_exists(TRUSTED, w->place))
		return err_set(e, ERR_USAGE, "--ptbuild: '%s' does not exist", w->place);
	if (digest_file(w->place, found, e) < 0)
		return -1;
	if (strcmp(found, w->sha256) == 0)
		return 0;
	err_set(e, ERR_INTEGRITY, "--ptbuild: '%s' has sha256 %s, not %s", w->place, found,
		w->sha256);
	return err_hint(e, "take the wheel and its digest from one release");
}

static int read_wheels(struct cmd_context *c, const struct strlist *values, struct ci_plan *p,
		       struct err *e)
{
	struct ci_wheel *wheels = arena_array(c->arena, values->count, sizeof(*wheels));

	p->wheels = wheels;
	for (size_t i = 0; i < values->count; i++) {
		struct ci_wheel *w = &wheels[i];
		if (ci_wheel_read(values->items[i], c->arena, w, e) < 0)
			return -1;
		if (w->here && check_wheel(w, e) < 0)
			return -1;
		if (ci_wheel_of(p, w->platform))
			return err_set(e, ERR_USAGE, "--ptbuild: two wheels are for %s",
				       w->platform);
		p->wheels_count = i + 1;
	}

	return 0;
}

static int wheels_fit(const struct ci_plan *p, struct err *e)
{
	for (size_t i = 0; p->wheels_count && i < p->count; i++) {
		const struct ci_job *j = &p->jobs[i];
		if (ci_wheel_of(p, j->platform))
			continue;
		err_set(e, ERR_USAGE, "--ptbuild: no wheel is for %s, which '%s' needs",
			j->platform, j->id);
		return err_hint(e, "add --ptbuild with a wheel for it, or choose variants with "
				   "--only GLOB");
	}

	return 0;
}

static int check_attest(const struct ci_plan *p, const char *format, struct err *e)
{
	const struct ci_format_row *f = ci_format(p->tables, format);
	const char *most = f ? f->attests : "";
	size_t wheels = 0;

	if (!*most)
		return err_set(e, ERR_USAGE,
			       "--attest has no effect here: only a workflow of GitHub attests "
			       "wheels");
	for (size_t i = 0; i < p->count; i++)
		wheels += p->jobs[i].shards ? 0 : p->jobs[i].variants.count;
	if (wheels <= strtoul(most, NULL, 10))
		return 0;
	err_set(e, ERR_USAGE, "--attest: at most %s wheels at once, and these are %zu", most,
		wheels);
	return err_hint(e, "write several workflows, each with a part by --only GLOB");
}

static int write_plan(struct cmd_context *c, const struct ci_output *f, const struct ci_plan *p,
		      struct err *e)
{
	AUTO_BUF struct buf script = {0};

	if (f->script)
		return f->script(p, &script, e) < 0 ? -1 : cmd_write_bytes(&script, e);
	if (!f->document) {
		json_t *table = ci_json(p);
		json_object_set_new(table, "-waves", waves_json(p));
		return cmd_show(c, table, table_rows, e);
	}

	AUTO_JSON json_t *doc = f->document(p);
	return json_print(doc, e);
}

static int run_ci(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	struct matrix_options *o = arena_alloc(c->arena, sizeof(*o));
	const struct ci_tables *t, *own = NULL;
	const char *format;
	struct strlist words = {0};
	struct choices chosen;
	struct ci_plan p;

	*o = *(const struct matrix_options *)c->options;
	c->options = o;
	format = o->format ? o->format : c->global->json ? "json" : "table";
	const struct ci_output *f = ci_output(format);
	if (c->global->json && !(f && f->document)) {
		err_set(e, ERR_USAGE, "--json and --format %s cannot be used together", format);
		return err_hint(e, "leave --format out: --json alone has the same as data");
	}

	if (o->status)
		return args->count
			       ? err_set(e, ERR_USAGE, "--status needs a directory and no names")
			       : matrix_status(c, o->status, format, e);
	if (!f)
		return err_set(e, ERR_USAGE,
			       "--format html shows a run: it goes with --status DIR");
	if (o->base.select.extensions.count) {
		err_set(e, ERR_USAGE,
			"--extension: the jobs of a matrix build packages, and no extension");
		return err_hint(e, "let a job call 'ptbuild bundle' with a file that names it");
	}

	if (check_globals(c, f, e) < 0 || take_words(c, args, o, &words, e) < 0)
		return -1;
	if (choose(c, &words, &chosen, e) < 0)
		return -1;
	if (ci_tables_load(c->profiles_dir, c->arena, &t, e) < 0)
		return -1;
	if (o->runner_map && ci_runners_load(o->runner_map, c->arena, &own, e) < 0)
		return -1;
	p = (struct ci_plan){
		.name = o->base.select.matrix ? o->base.select.matrix : "ptbuild",
		.image = o->image,
		.remote = o->remote,
		.shards = o->shards,
		.attest = o->attest,
		.store = c->global->cache ? path_from_here(c->arena, c->global->cache) : NULL,
		.out = c->global->out,
		.sandboxed = cmd_sandbox(c) != SANDBOX_NONE,
		.whole_proc = !strlist_contains(&c->global->without_protections, "processes")};
	if (f->kind == CI_VOLUME) {
		p.store = p.store ? p.store : "/shared/store";
		p.out = p.out ? p.out : "/shared/dist";
	}

	const struct ci_request q = {format, t, own, chosen.items, chosen.count};
	const bool service = f->kind == CI_SERVICE;
	if (read_wheels(c, &o->wheels, &p, e) < 0 ||
	    options_text(c, &p.options, &p.checkout, e) < 0 ||
	    ci_plan_make(&q, c->arena, &p, e) < 0 || wheels_fit(&p, e) < 0 ||
	    (p.attest && check_attest(&p, format, e) < 0) ||
	    matrix_cost(c, &p, service ? format : "slurm", o->base.select.plan.torch != NULL, e) <
		    0)
		return -1;
	if (service)
		matrix_warn(c, &p, format);
	for (size_t i = 0; f->runs && i < p.count; i++)
		if (!f->runs(&p.jobs[i]))
			log_warn(c->run->log, "%s is left out: Kubernetes has no nodes for %s",
				 p.jobs[i].id, p.jobs[i].platform);
	const char *root = c->global->root;
	const bool other_root = root && strncmp(root, "world:", 6) != 0;
	const bool no_world = cmd_sandbox(c) == SANDBOX_NONE || other_root;
	const bool needs_toolkit = p.has_cuda && !p.image && service;
	if (needs_toolkit && no_world)
		log_warn(c->run->log, "no world brings the toolkit here: jobs for CUDA need "
				      "--image with an image "
				      "that has it");
	return write_plan(c, f, &p, e);
}

#define CI(field) ARG_STRING, offsetof(struct matrix_options, field)

static const struct arg_def ci_defs[] = {
	{"format", 0, CI(format), "FORMAT",
	 "table (default), json, github, gitlab, kubernetes or slurm; with --status table, json or "
	 "html",
	 "table json github gitlab kubernetes slurm html"},
	{"runner-map", 0, CI(runner_map), "FILE", "YAML file that maps variants to runners",
	 "<file>"},
	{"image", 0, CI(image), "IMAGE",
	 "container image that the jobs run in; it has ptbuild (default: Debian 13, and ptbuild is "
	 "built from the "
	 "checkout)",
	 NULL},
	{"ptbuild", 0, ARG_EACH, offsetof(struct matrix_options, wheels), "URL=SHA256",
	 "wheel of a release of ptbuild that the jobs install, or PATH=SHA256 in the repository; "
	 "may "
	 "be repeated, once for each platform",
	 NULL},
	{"attest", 0, ARG_FLAG, offsetof(struct matrix_options, attest), NULL,
	 "attest where the wheels were built; for github", NULL},
	{"ccache-remote", 0, CI(remote), "URL",
	 "share compiled objects through a server, not the service's cache", NULL},
	{"shards", 0, ARG_UINT, offsetof(struct matrix_options, shards), "N",
	 "divide each compilation of a PyTorch among so many jobs, which share a compiler cache",
	 NULL},
	{"status", 0, CI(status), "DIR",
	 "say how far the run in this directory is, of a script for Slurm", "<dir>"},
	{"file", 0, CI(file), "FILE", "read the variants from a file, a name a line", "<file>"},
	{0},
};

const struct command command_matrix = {
	.name = "matrix",
	.summary = "write the jobs of a CI service or a cluster that build a matrix",
	.usage = "[NAME | VARIANT... | --file FILE] [--format FORMAT] [--runner-map FILE] | "
		 "--status DIR",
	.tables = {ci_defs, cmd_select_options, cmd_plan_options},
	.arguments = {{"NAME", "a matrix from 'ptbuild list --matrices', or names of variants",
		       "<matrix>"}},
	.options_size = sizeof(struct matrix_options),
	.run = run_ci,
};
