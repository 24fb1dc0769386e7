#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cmd/build.h"
#include "cmd/slim_gpus.h"
#include "core/plan/torch_fits.h"
#include "core/variant/variant.h"
#include "core/wheel/application.h"
#include "core/wheel/wheel.h"
#include "step/index/index.h"
#include "step/pipeline/make.h"

struct bundle_options {
	struct cmd_build_base base;
	bool dry_run;
	const char *gpu, *platform; /* of an application */
};

/* A wheel of the bundle: what it will be made of, then what was made. */
struct bundle_item {
	const char *name, *version;
	const char *how; /* "built", "cut", "fetched", "captured", "copied" */
	const char *from, *note;
	const struct official_wheel *official;
	const char *wheel;
	bool hit;
};

struct bundle {
	struct cmd_context *c;
	struct bundle_file file;
	struct bundle_item *items;
	size_t count;
	const struct application_row *app; /* NULL: the bundle is a file's */
	struct official pins;              /* of `app` */
	struct selection first; /* what all have in common: Python, CUDA, profile, release */
	const char *release;    /* its name; of an application the version of torch */
	struct cmd_root_group *group;
	struct strlist install; /* "torch==2.11.0" */
	bool lacks;             /* a row, which is no matter of two */
};

static bool is_official(const struct bundle *s)
{
	return s->file.torch == BUNDLE_OFFICIAL || s->file.torch == BUNDLE_SLIM;
}

/* ---- what the rows ask for ---- */

/* The options of a build of the bundle without the rows that are `off`. */
static void ask(const struct bundle *s, const bool *off, struct cmd_select *o)
{
	struct arena *a = s->c->arena;
	const struct bundle_file *f = &s->file;
	const char *version;

	for (size_t i = 0; i < f->count; i++) {
		const struct bundle_row *r = &f->rows[i];
		if (off[i])
			continue;
		if (r->kind == BUNDLE_PROFILE)
			o->profile = r->value;
		else if (r->kind == BUNDLE_PYTHON)
			o->python = r->value;
		else if (r->kind == BUNDLE_CUDA)
			o->cuda = r->value;
		else if (r->kind == BUNDLE_EXTENSION)
			strlist_ref(&o->extensions, a, r->value);
		else if (r->kind == BUNDLE_COMPANION && !is_official(s))
			strlist_ref(&o->packages, a, text_pin(r->text, a, &version));
		else if (r->kind == BUNDLE_TORCH && f->torch == BUNDLE_RELEASE)
			o->release = r->value;
		else if (r->kind == BUNDLE_TORCH)
			o->plan.torch = is_official(s) && f->version
						? arena_printf(a, "official==%s", f->version)
					: is_official(s) ? "official"
							 : r->value;
	}

	if (f->torch == BUNDLE_RELEASE)
		strlist_ref(&o->packages, a, PACKAGE_TORCH);
	o->follow_torch = o->plan.torch != NULL;
	if (!o->extensions.count && is_official(s)) /* nothing is built: it is only looked for */
		strlist_ref(&o->packages, a, "torchvision");
}

/* Whether a package of a release has this version and fits this torch. */
static bool fits_torch(const struct package_row *p, const char *version, const char *torch)
{
	bool in = false;

	if (!p || !*p->torch || strcmp(version, p->version) != 0)
		return false;
	return version_in(torch, p->torch, &in, ERR_IGNORED) == 0 && in;
}

/* The release whose companion of that version, on
 * torch's stable ABI, takes this torch; NULL: none. */
static const struct release_row *by_abi(const struct bundle *s, const char *torch, const char *name,
					const char *version)
{
	const struct tables *t = s->c->tables;

	if (!version || !is_official(s))
		return NULL;
	for (unsigned i = 0; i < t->releases_count; i++) {
		const struct package_row *p = tables_package(&t->releases[i], name);
		if (fits_torch(p, version, torch))
			return &t->releases[i];
	}

	return NULL;
}

/* That the release has them, in the versions that rows name. */
static int check_companions(const struct bundle *s, const bool *off, const struct release_row *r,
			    struct err *e)
{
	struct strlist names = {0};

	for (size_t i = 0; i < s->file.count; i++) {
		const struct bundle_row *row = &s->file.rows[i];
		const char *version, *name = text_pin(row->text, s->c->arena, &version);
		if (row->kind != BUNDLE_COMPANION || off[i])
			continue;
		const struct package_row *p = tables_package(r, name);
		if (!p)
			return err_set(e, ERR_CONFIG, "release %s has no companion '%s'", r->name,
				       name);
		if (version && strcmp(version, p->version) != 0 &&
		    !by_abi(s, r->base, name, version))
			return err_set(e, ERR_POLICY, "torch %s is paired with %s %s, not %s",
				       r->base, name, p->version, version);
		if (strlist_contains(&names, name))
			return err_set(e, ERR_CONFIG, "two rows are both '%s'", name);
		strlist_ref(&names, s->c->arena, name);
	}

	return 0;
}

static int check_slim(const struct bundle *s, const struct profile *p, struct err *e)
{
	if (s->file.torch != BUNDLE_SLIM || p->gpu == GPU_CUDA)
		return 0;
	return err_set(e, ERR_POLICY, "a torch is slimmed for GPUs, and profile '%s' has none",
		       p->name);
}

/* What extensions import of each other; no index has those built for this torch. */
static int check_beside(struct bundle *s, const struct tables *t, const struct selections *chosen,
			struct err *e)
{
	for (size_t i = 0; i < chosen->count; i++) {
		const struct package_row *p =
			tables_package(chosen->items[i].release, chosen->items[i].variant.package);
		for (unsigned k = 0; p && p->name && k < p->install_requires_count; k++) {
			const char *wants =
				wheel_requires_name(p->install_requires[k], s->c->arena);
			const struct package_row *known = tables_extension(t, wants, "");
			bool there = !known;
			for (size_t n = 0; n < chosen->count; n++)
				there |= strcmp(chosen->items[n].variant.package, wants) == 0;
			if (there)
				continue;
			s->lacks = true;
			err_set(e, ERR_POLICY, "%s imports %s, which the bundle does not have",
				p->name, wants);
			return err_hint(e, "add %s==%s to its extensions", known->name,
					known->version);
		}
	}

	return 0;
}

/* ---- what will be made of what ---- */

static void add_item(struct bundle *s, const struct bundle_item *it)
{
	s->items[s->count++] = *it;
}

/* `cut`: slimmed to the GPUs of the profile. */
static void add_wheel(struct bundle *s, const struct official_wheel *w, bool cut, const char *note)
{
	struct arena *a = s->c->arena;
	const struct profile *p = &s->first.variant.profile;
	const char *version = w->name.version;

	if (cut)
		version = arena_printf(
			a, "%s+%s", version,
			profile_label(p, strcmp(w->cuda, "-") == 0 ? NULL : w->cuda, a));
	/* the code for the processor stays upstream's */
	const char *isa = cut ? strrchr(version, '.') : NULL;
	if (isa && p->isa)
		version = arena_strndup(a, version, (size_t)(isa - version));
	add_item(s, &(struct bundle_item){.name = w->name.dist,
					  .version = version,
					  .how = cut ? "cut" : "fetched",
					  .from = w->file,
					  .note = note,
					  .official = w});
}

static int add_official(struct bundle *s, const struct official *all, const char *package,
			struct err *e)
{
	struct arena *a = s->c->arena;
	const struct variant *v = &s->first.variant;
	const struct official_wheel *w;

	if (official_find(all, tables_distribution(package), v->python, v->profile.platform,
			  v->cuda, a, &w, e) < 0)
		return -1;
	add_wheel(s, w, s->file.torch == BUNDLE_SLIM, NULL);
	return 0;
}

/* `c`: in the root of the plans. */
static int add_torch(struct bundle *s, struct cmd_context *c, const bool *off, struct err *e)
{
	struct official all;
	struct wheel_name n;
	const char *profiles = c->profiles_dir, *version, *path = NULL;

	for (size_t i = 0; i < s->file.count; i++)
		path = s->file.rows[i].kind == BUNDLE_TORCH && !off[i] ? s->file.rows[i].value
								       : path;
	if (!path)
		return 0;
	if (s->file.torch == BUNDLE_ROOT) {
		if (cmd_root_torch(c, s->first.release, &version, e) < 0)
			return -1;
		add_item(s, &(struct bundle_item){.name = "torch",
						  .version = version,
						  .how = "captured",
						  .from = "the root"});
	}

	if (s->file.torch == BUNDLE_WHEEL) {
		if (wheel_name_parse(path, c->arena, &n, e) < 0)
			return -1;
		add_item(s, &(struct bundle_item){.name = "torch",
						  .version = n.version,
						  .how = "copied",
						  .from = path,
						  .wheel = path});
	}

	if (!is_official(s))
		return 0;
	if (official_read(profiles, s->file.version ? s->file.version : s->first.release->base,
			  c->arena, &all, e) < 0 ||
	    add_official(s, &all, PACKAGE_TORCH, e) < 0)
		return -1;
	for (size_t i = 0; i < s->file.count; i++) {
		if (s->file.rows[i].kind != BUNDLE_COMPANION || off[i])
			continue;
		const char *name = text_pin(s->file.rows[i].text, c->arena, &version);
		const struct release_row *r = by_abi(s, s->first.release->base, name, version);
		struct official of = all;
		if ((r && official_read(profiles, r->base, c->arena, &of, e) < 0) ||
		    add_official(s, &of, name, e) < 0)
			return -1;
	}

	return 0;
}

/* ---- an application ---- */

static void add_row(struct bundle *s, enum set_kind kind, const char *text, const char *place)
{
	if (text)
		s->file.rows[s->file.count++] = (struct bundle_row){kind, text, text, place};
}

/* The row of an application as the entries of a file: what the options say, and its wheels. */
static int load_application(struct bundle *s, const char *asked, struct err *e)
{
	struct arena *a = s->c->arena;
	const struct bundle_options *o = s->c->options;
	const struct cmd_select *select = &o->base.base.select;
	const char *gpu = o->gpu, *platform = o->platform ? o->platform : machine_platform(a);
	struct profile *p = &s->first.variant.profile;
	const struct hardware *machine;
	struct application_file f;

	if (cmd_open(s->c, OPEN_TABLES, e) < 0 ||
	    applications_load(s->c->profiles_dir, a, &f, e) < 0 ||
	    applications_find(&f, asked, a, &s->app, e) < 0)
		return -1;
	if (!gpu) {
		err_set(e, ERR_USAGE, "bundle needs the GPUs that '%s' is for", asked);
		return err_hint(e, "name them, for example 'ptbuild bundle %s --gpu sm90'", asked);
	}

	if (strcmp(gpu, "native") == 0 && slim_native(s->c, &gpu, &machine, e) < 0)
		return -1;
	if (cmd_gpu_profile(s->c, gpu, p, e) < 0 ||
	    application_pins(s->c->profiles_dir, s->app, a, &s->pins, e) < 0)
		return -1;
	p->platform = platform;
	s->file = (struct bundle_file){
		.name = arena_printf(a, "%s-%s", s->app->name, s->app->version),
		.torch = BUNDLE_SLIM,
		.rows = arena_array(a, BUNDLE_PART + s->app->parts_count, sizeof(*s->file.rows))};
	for (unsigned i = 0; i < s->app->parts_count; i++)
		add_row(s, BUNDLE_PART, s->app->parts[i].wheel,
			arena_printf(a, "%s:%u", f.path, s->app->parts[i].line));
	add_row(s, BUNDLE_PROFILE, gpu, "--gpu");
	add_row(s, BUNDLE_PYTHON, select->python, "--python");
	add_row(s, BUNDLE_CUDA, select->cuda, "--cuda");
	return 0;
}

static int resolve_application(struct bundle *s, const bool *off, struct err *e)
{
	struct arena *a = s->c->arena;
	struct variant *v = &s->first.variant;
	const struct official_wheel **wheels;
	struct application_query q = {.tables = s->c->tables,
				      .row = s->app,
				      .pins = &s->pins,
				      .platform = v->profile.platform,
				      .off = off}; /* the rows of parts are the first */
	struct cmd_python python = {.platform = q.platform, .wheels = true};

	for (size_t i = s->app->parts_count; i < s->file.count; i++) {
		const struct bundle_row *r = &s->file.rows[i];
		if (r->kind == BUNDLE_PYTHON && !off[i])
			q.python = r->value;
		else if (r->kind == BUNDLE_CUDA && !off[i])
			q.cuda = r->value;
	}

	for (unsigned i = 0; i < v->profile.targets_count; i++)
		strlist_ref(&q.gpus, a, v->profile.targets[i].row->capability);
	if (!q.python) {
		struct application_query any = {q.tables, q.row, q.pins, .platform = q.platform,
						.off = off};
		q.python = "3.13"; /* application_choose says what it lacks */
		application_pythons(&any, a, &python.pythons);
		if (python.pythons.count && cmd_python(s->c, &python, &q.python, e) < 0)
			return -1;
	}

	if (application_choose(&q, a, &wheels, e) < 0)
		return -1;
	v->python = q.python;
	v->cuda = q.cuda;
	s->items = arena_array(a, s->app->parts_count, sizeof(*s->items));
	s->count = 0;
	for (unsigned i = 0; i < s->app->parts_count; i++) {
		const struct application_part *p = &s->app->parts[i];
		if (!wheels[i])
			continue;
		add_wheel(s, wheels[i], application_cuts(&q, p, wheels[i]),
			  *p->why ? p->why : NULL);
		if (strcmp(p->name, "torch") == 0) {
			s->release = p->version;
			v->cuda = strcmp(wheels[i]->cuda, "-") == 0 ? NULL : wheels[i]->cuda;
		}
	}

	return 0;
}

/* The bundle, without the rows that are `off`, as plans and
 * what they make; nothing is built, fetched or kept. */
static int resolve(struct bundle *s, const bool *off, struct err *e)
{
	if (s->app)
		return resolve_application(s, off, e);
	const struct strlist none = {0};
	struct store *store; /* opened for the copy of the context as well */

	if (cmd_store_look(s->c, &store, e) < 0)
		return -1;
	struct cmd_context own = *s->c;
	struct bundle_options *o = arena_alloc(own.arena, sizeof(*o));
	struct selections chosen;
	struct cmd_root_group *const *groups;
	*o = *(const struct bundle_options *)own.options;
	own.options = o;
	ask(s, off, &o->base.base.select);
	if (cmd_select(&own, &none, &chosen, e) < 0 ||
	    check_companions(s, off, chosen.items[0].release, e) < 0 ||
	    check_slim(s, &chosen.items[0].variant.profile, e) < 0 ||
	    cmd_root_each(&own, &chosen, &groups, e) < 0)
		return -1;
	const struct plan **plans = arena_array(own.arena, chosen.count, sizeof(struct plan *));
	for (size_t i = 0; i < chosen.count; i++) {
		if (*groups[i]->why.msg)
			return err_take(e, &groups[i]->why);
		cmd_root_enter(&own, groups[i]);
		if (cmd_plan(&own, &chosen.items[i], false, &plans[i], e) < 0 ||
		    cmd_needs_plan(&own, plans[i], own.world, e) < 0)
			return -1;
	}

	const char *torch = o->base.base.select.plan.torch;
	if (torch && s->file.torch == BUNDLE_WHEEL) {
		const struct torch_asked q = {.plan = plans[chosen.count - 1], .wheel = torch};
		if (torch_fits(&q, TORCH_GPUS, own.arena, e) < 0)
			return -1;
	}

	s->group = groups[0];
	s->items = arena_array(s->c->arena, s->file.count + TABLES_PACKAGES, sizeof(*s->items));
	s->count = 0;
	s->first = chosen.items[0];
	s->release = s->first.release->name;
	if (!s->first.variant.cuda)
		s->first.variant.cuda = plans[0]->cuda;
	cmd_root_enter(&own, groups[0]);
	if (add_torch(s, &own, off, e) < 0)
		return -1;
	const bool looked = is_official(s) && !plans[0]->package_row->name;
	for (size_t i = 0; i < chosen.count && !looked; i++) {
		const struct package_row *p = plans[i]->package_row;
		const char *url =
			p->sources_count && p->sources[0].urls_count ? p->sources[0].urls[0] : "";
		const char *from = p->sources_count ? p->sources[0].name : "";
		if (strncmp(url, "folder:", 7) == 0)
			from = url + 7;
		add_item(s,
			 &(struct bundle_item){.name = plans[i]->distribution,
					       .version = plan_full_version(plans[i], s->c->arena),
					       .how = "built",
					       .from = from});
	}

	return check_beside(s, own.tables, &chosen, e);
}

/* Which rows are in each other's way: those that
 * cannot be left out without the error going away. */
static void name_rows(const struct bundle *given, struct err *e)
{
	struct bundle s = *given;
	struct cmd_context c = *s.c;
	struct log quiet = *c.run->log;
	struct run run = *c.run;
	bool *off = arena_array(c.arena, s.file.count, sizeof(*off));
	struct strlist places = {0};
	const char *profile = "";

	quiet.level = LOG_QUIET;
	run.log = &quiet;
	c.run = &run;
	s.c = &c;
	for (size_t i = 0; i < s.file.count; i++) {
		const struct bundle_row *r = &s.file.rows[i];
		struct err why = {0};
		if (r->kind == BUNDLE_PROFILE) {
			profile = bundle_row_text(r, c.arena);
			continue;
		}

		off[i] = true;
		off[i] = resolve(&s, off, &why) < 0 && strcmp(why.msg, e->msg) == 0;
		if (!off[i])
			strlist_ref(&places, c.arena, bundle_row_text(r, c.arena));
	}

	/* No bundle is without a profile: it is meant where fewer than two others are. */
	if (places.count < 2 && !given->lacks)
		strlist_ref(&places, c.arena, profile);
	if (e->kind == ERR_USAGE)
		e->kind = ERR_CONFIG;
	err_wrap(e, "%s", strlist_join(&places, c.arena, " and "));
}

/* ---- making it ---- */

/* A wheel that is not made here, beside the others. */
static int put(struct bundle *s, struct bundle_item *it, const char *from, const char *dir,
	       struct err *e)
{
	const char *to = path_join(s->c->arena, dir, path_base(from));
	char sha256[DIGEST_HEX_LEN + 1];

	it->wheel = to;
	return digest_file(from, sha256, e) < 0
		       ? -1
		       : publish_wheel(from, to, sha256, s->c->run, s->c->arena, e);
}

static int put_official(struct bundle *s, const char *dir, struct err *e)
{
	struct arena *a = s->c->arena;
	const struct official_wheel **wanted =
		arena_array(a, s->count, sizeof(struct official_wheel *));
	struct strlist files = {0};
	size_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].official)
			wanted[n++] = s->items[i].official;
	if (cmd_official_fetch(s->c, wanted, n, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct bundle_item *it = &s->items[i];
		const char *cut = NULL;
		struct wheel_name name;
		if (strcmp(it->how, "cut") == 0) {
			log_info(s->c->run->log, "slimming %s for the GPUs of '%s'", it->from,
				 s->first.variant.profile.name);
			if (cmd_slim(s->c, files.items[i], &s->first.variant.profile, dir, &cut,
				     e) < 0)
				return -1;
		}

		if (!cut)
			it->how = "fetched"; /* of what has no GPU code nothing is cut */
		it->wheel = cut;
		if ((!cut && put(s, it, files.items[i], dir, e) < 0) ||
		    wheel_name_parse(it->wheel, a, &name, e) < 0)
			return -1;
		it->version = name.version;
	}

	return 0;
}

static void take_results(struct bundle *s, const struct pipeline_results *r)
{
	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < s->count; k++)
			if (strcmp(s->items[k].name, r->items[i].plan->distribution) == 0) {
				s->items[k].wheel = r->items[i].wheel;
				s->items[k].version =
					plan_full_version(r->items[i].plan, s->c->arena);
				s->items[k].hit = r->items[i].hit;
			}
}

/* The torch first, then what is built against it. */
static int make(struct bundle *s, const char *dir, struct err *e)
{
	const struct strlist none = {0};
	struct cmd_context *c = s->c;
	struct bundle_options *o = arena_alloc(c->arena, sizeof(*o));
	struct pipeline_results r = {0};

	*o = *(const struct bundle_options *)c->options;
	if (cmd_open(c, OPEN_NETWORK, e) < 0 || fs_mkdirs(TRUSTED, dir, e) < 0)
		return -1;
	if (is_official(s) && put_official(s, dir, e) < 0)
		return -1;
	if (s->file.torch == BUNDLE_WHEEL && put(s, &s->items[0], s->items[0].wheel, dir, e) < 0)
		return -1;
	c->options = o;
	if (s->file.torch == BUNDLE_ROOT) {
		int rc = cmd_root_make(c, s->group, e) < 0 ? -1 : cmd_capture(c, &r, e);
		take_results(s, &r);
		pipeline_free(&r);
		if (rc < 0)
			return -1;
	}

	if (s->items[s->count - 1].how[0] != 'b')
		return 0;
	struct cmd_select *select = &o->base.base.select;
	ask(s, arena_array(c->arena, s->file.count, sizeof(bool)), select);
	if (s->file.torch == BUNDLE_SLIM || s->file.torch == BUNDLE_WHEEL)
		select->plan.torch = s->items[0].wheel;
	select->release = s->first.release->name;
	select->python = s->first.variant.python;
	select->cuda = s->first.variant.cuda;
	r = (struct pipeline_results){0};
	int rc = cmd_build(c, &none, &r, e);
	take_results(s, &r);
	pipeline_free(&r);
	return rc;
}

/* The index lists all wheels in its directory. */
static int check_dir(const struct bundle *s, const char *dir, struct err *e)
{
	struct strlist names = {0};

	if (fs_list(TRUSTED, dir, s->c->arena, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		bool own = names.items[i][0] == '.' || !path_has_suffix(names.items[i], ".whl");
		for (size_t k = 0; k < s->count && !own; k++)
			own = s->items[k].wheel &&
			      strcmp(path_base(s->items[k].wheel), names.items[i]) == 0;
		if (own)
			continue;
		err_set(e, ERR_POLICY, "'%s/%s' does not belong to the bundle", dir,
			names.items[i]);
		return err_hint(e,
				"remove it, or give the bundle a directory of its own with --out; "
				"what was built is in "
				"the store");
	}

	return 0;
}

/* Where an installer finds a bundle. */
struct bundle_place {
	const char *index; /* URL */
	const char *constraints;
};

/* The words of pip or uv. */
static void install_words(const struct bundle *s, bool uv, const struct bundle_place *at,
			  struct strlist *ret)
{
	install_argv(NULL, uv, at->index, &s->install, s->c->arena, ret);
	strlist_ref(ret, s->c->arena, "-c");
	strlist_ref(ret, s->c->arena, at->constraints);
}

static int write_bundle(struct bundle *s, const struct tables *t, const char *dir, struct err *e)
{
	struct arena *a = s->c->arena;
	const struct index_request index = {.run = s->c->run, .dir = dir};
	struct bundle_wheel *wheels = arena_array(a, s->count, sizeof(*wheels));
	struct index_result made;
	struct strlist words = {0}, pip = {0};
	const char *platform = s->first.variant.profile.platform;

	for (size_t i = 0; i < s->count; i++) {
		char *hex = arena_alloc(a, DIGEST_HEX_LEN + 1);
		const struct bundle_item *it = &s->items[i];
		if (digest_file(it->wheel, hex, e) < 0)
			return -1;
		wheels[i] = (struct bundle_wheel){it->wheel, it->name, it->version, hex};
		strlist_addf(&s->install, a, "%s==%s", it->name, it->version);
	}

	static const struct bundle_place in_image = {"file:///bundle/" INDEX_ALL "/",
						     "/bundle/" BUNDLE_CONSTRAINTS};
	install_words(s, false, &in_image, &pip);
	strlist_split(&words, a, "python3 -m", " ");
	strlist_append(&words, a, &pip);
	const struct bundle_request q = {.dir = dir,
					 .name = s->file.name,
					 .python = s->first.variant.python,
					 .machine =
						 arena_strndup(a, platform, strcspn(platform, "-")),
					 .wheels = wheels,
					 .count = s->count,
					 .install = &words,
					 .tables = t};
	return index_write(&index, a, &made, e) < 0 ? -1 : bundle_write(&q, a, e);
}

/* ---- the command ---- */

static const struct show rows[] = {
	{.text = "{name}: {profile}, Python {python}[, CUDA {cuda}], release {release}"},
	{.each = "wheels", .columns = {"package={name}", "version", "made", "from"}, .indent = 2},
	{.text = "{?note}{name}: {note}", .each = "wheels"},
	{.text = "{!out}what of these the store has already is taken from it"},
	SHOW("out", "\n{out}: {files:, }"),
	SHOW("pip", "{-pip}"),
	SHOW("uv", "{-uv}"),
	{0}};

static json_t *document(struct bundle *s, const char *dir, bool made)
{
	struct arena *a = s->c->arena;
	const struct variant *v = &s->first.variant;
	json_t *wheels = json_array();

	for (size_t i = 0; i < s->count; i++) {
		const struct bundle_item *it = &s->items[i];
		json_array_append_new(wheels, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "name",
							it->name, "version", it->version, "made",
							it->hit ? "from the store" : it->how,
							"from", json_or_null(it->from), "note",
							json_or_null(it->note), "wheel",
							json_or_null(made ? it->wheel : NULL)));
	}

	json_t *doc =
		json_pack("{s:i, s:s, s:s, s:s, s:o, s:s, s:o}", "schema", 1, "name", s->file.name,
			  "profile", v->profile.name, "python", v->python, "cuda",
			  json_or_null(v->cuda), "release", s->release, "wheels", wheels);
	if (!made)
		return doc;
	const struct bundle_place here = {install_url(a, dir, INDEX_ALL),
					  shell_quoted(path_join(a, dir, BUNDLE_CONSTRAINTS), a)};
	for (unsigned uv = 0; uv < 2; uv++) {
		struct strlist words = {0};
		install_words(s, uv, &here, &words);
		const char *line = strlist_join(&words, a, " ");
		json_object_set_new(doc, uv ? "uv" : "pip", json_or_null(line));
		json_object_set_new(doc, uv ? "-uv" : "-pip",
				    json_or_null(strchr(line, '\'') ? line : help_line(line, a)));
	}

	json_object_set_new(doc, "out", json_or_null(dir));
	json_object_set_new(doc, "files",
			    json_pack("[s, s, s, s]", INDEX_ALL "/", BUNDLE_CONSTRAINTS,
				      BUNDLE_SBOM, BUNDLE_DOCKERFILE));
	return doc;
}

/* A word that names no file is the name of an application. */
static bool is_application(const char *word)
{
	if (strstr(word, "=="))
		return true;
	return !fs_exists(TRUSTED, word) && !strchr(word, '/') && !path_has_suffix(word, ".yaml");
}

static int load(struct bundle *s, const char *word, struct err *e)
{
	struct cmd_context *c = s->c;

	if (is_application(word))
		return cmd_refuse(c, "an application", " gpu python cuda platform dry-run ", e) < 0
			       ? -1
			       : load_application(s, word, e);
	return cmd_refuse(c, "a file", " sign-key dry-run ", e) < 0
		       ? -1
		       : bundle_file_load(word, c->arena, &s->file, e);
}

static int bundle_main(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct bundle_options *o = c->options;
	struct bundle s = {.c = c};
	const char *dir = c->out_dir;

	if (words->count != 1) {
		err_set(e, ERR_USAGE, "bundle needs one file or application, not %zu",
			words->count);
		return err_hint(e, "for example 'ptbuild bundle bundle.yaml --dry-run'");
	}

	if (load(&s, words->items[0], e) < 0)
		return -1;
	bool *off = arena_array(c->arena, s.file.count, sizeof(*off));
	if (resolve(&s, off, e) < 0) {
		name_rows(&s, e);
		return -1;
	}

	if (!o->dry_run && (make(&s, dir, e) < 0 || check_dir(&s, dir, e) < 0 ||
			    write_bundle(&s, c->tables, dir, e) < 0))
		return -1;
	return cmd_show(c, document(&s, dir, !o->dry_run), rows, e);
}

#define OPTION(field) ARG_STRING, offsetof(struct bundle_options, field)

static const struct arg_def bundle_options[] = {
	{"gpu", 0, OPTION(gpu), "TARGETS",
	 "of an application: GPUs whose code stays: native, sm90, or sm80+sm90", "<gpu>"},
	{"python", 0, OPTION(base.base.select.python), "VERSION",
	 "of an application: Python version (default: the user's, where it has wheels for it)",
	 "<python>"},
	{"cuda", 0, OPTION(base.base.select.cuda), "VERSION",
	 "of an application: refuse a torch of another CUDA toolkit", "<cuda>"},
	{"platform", 0, OPTION(platform), "NAME",
	 "of an application: the wheels' platform (default: this machine's)",
	 "x86_64-linux aarch64-linux"},
	{"dry-run", 0, ARG_FLAG, offsetof(struct bundle_options, dry_run), NULL,
	 "show what would be built from what, or which entries conflict, and build nothing", NULL},
	{0},
};

const struct command command_bundle = {
	.name = "bundle",
	.summary = "make torch, companions and extensions that fit together",
	.usage = "FILE | NAME==VERSION --gpu TARGETS [--dry-run] [--out DIR] [OPTION...]",
	.tables = {cmd_build_options, bundle_options},
	.arguments = {{"FILE|NAME==VERSION", "the rows of the bundle, or an application",
		       "<bundle>"}},
	.options_size = sizeof(struct bundle_options),
	.run = bundle_main,
};
