#include "cmd/select.h"

#include "base/sys/digest.h"
#include "base/sys/machine.h"
#include "core/plan/torch_fits.h"
#include "core/wheel/wheel.h"
#include "core/world/world.h"
#include "step/fetch/fetch.h"
#include "step/pipeline/make.h"
#include "step/python/pyenv.h"
#include "step/source/source.h"

int cmd_source(struct cmd_context *c, const char *path, const char *name, const char *version,
	       struct source_row *ret, struct err *e)
{
	const char **urls = arena_array(c->arena, 1, sizeof(*urls));
	char *hex = arena_alloc(c->arena, DIGEST_HEX_LEN + 1);
	const bool folder = fs_is_dir(TRUSTED, path);

	if ((folder ? folder_pack(path, name, -1, hex, e) : digest_file(path, hex, e)) < 0)
		return -1;
	urls[0] = arena_printf(c->arena, "%s%s", folder ? "folder:" : "", path);
	*ret = (struct source_row){
		.name = folder ? arena_printf(c->arena, "%s-%s.tar", name, version)
			       : path_base(path),
		.sha256 = hex,
		.unproven = "",
		.urls = urls,
		.urls_count = 1,
		.into = ""};
	return 0;
}

/* ---- extensions ---- */

/* What the tables know of an extension of this name, whichever version it is. */
static void add_known(const struct tables *t, struct package_row *row)
{
	const struct package_row *same = tables_extension(t, row->name, row->version);
	const struct package_row *known = same ? same : tables_extension(t, row->name, "");

	if (!known)
		return;
	if (!row->settings_count) {
		row->settings = known->settings;
		row->settings_count = known->settings_count;
	}

	row->memory = known->memory;
	row->cuda_only = known->cuda_only;
	row->note = known->note;
	row->requirements = known->requirements;
	if (!same)
		return;
	row->prepare = known->prepare;
	row->prepare_count = known->prepare_count;
	row->python_requires = known->python_requires;
	row->python_requires_count = known->python_requires_count;
	row->install_requires = known->install_requires;
	row->install_requires_count = known->install_requires_count;
}

static int no_row(struct cmd_context *c, const struct tables *t, const char *word, struct err *e)
{
	struct strlist names = {0};

	for (unsigned i = 0; i < t->torch_extensions_count; i++)
		strlist_addf(&names, c->arena, "%s==%s", t->torch_extensions[i].name,
			     t->torch_extensions[i].version);
	if (!strstr(word, "==")) {
		err_set(e, ERR_USAGE, "no folder or sdist '%s'", word);
		return err_hint(e, "pass --extension a folder, an sdist, or NAME==VERSION, as %s",
				names.count ? names.items[0] : "torch-scatter==2.1.2");
	}

	err_set(e, ERR_CONFIG, "extension '%s' is not pinned", word);
	return err_hint(e, "download its sdist and give that file; pinned are %s",
			strlist_join(&names, c->arena, ", "));
}

static int add_source(struct cmd_context *c, const char *path, struct package_row *row,
		      struct err *e)
{
	struct source_row *s = arena_alloc(c->arena, sizeof(*s));

	if (cmd_source(c, path, row->name, row->version, s, e) < 0)
		return -1;
	row->sources = s;
	row->sources_count = 1;
	return 0;
}

static int find_row(struct cmd_context *c, const char *word, struct package_row *ret, struct err *e)
{
	const struct tables *t = c->tables;
	const char *version, *name = text_pin(word, c->arena, &version),
			     *path = path_from_here(c->arena, word);

	if (fs_exists(TRUSTED, path)) {
		const struct extension_asked q = {path, cmd_selected(c)->version};
		if (extension_read(&q, c->run, c->arena, ret, e) < 0 ||
		    add_source(c, path, ret, e) < 0)
			return -1;
		add_known(t, ret);
		return 0;
	}

	const struct package_row *row =
		version ? tables_extension(t, wheel_normalize(name, c->arena), version) : NULL;
	if (!row)
		return no_row(c, t, word, e);
	*ret = *row;
	return 0;
}

/* Whether a wheel's glibc is there in the world that a release builds in. */
static bool lands(struct cmd_context *c, const struct release_row *r, const struct wheel_name *n,
		  const struct world_wanted *want)
{
	struct world_choice w = {0};
	const struct world_part *base;

	if (world_choose(&(struct world_question){c->tables, r, want, c->arena}, &w, ERR_IGNORED) <
		    0 ||
	    !w.name ||
	    world_part_load(c->tables->dir, arena_strndup(c->arena, w.name, strcspn(w.name, "+")),
			    c->arena, &base, ERR_IGNORED) < 0 ||
	    strncmp(base->glibc, "2.", 2) != 0)
		return false;
	const char *machine = arena_strndup(c->arena, want->platform, strcspn(want->platform, "-"));
	return wheel_name_lands(
		n, &(struct wheel_machine){machine, (unsigned)strtoul(base->glibc + 2, NULL, 10)},
		c->arena);
}

static int torch_facts(struct cmd_context *c, const char *torch, const struct profile *p,
		       struct cmd_extension *ret, struct err *e)
{
	const char *version = NULL;

	if (!torch)
		return 0;
	if (strcmp(text_pin(torch, c->arena, &version), "official") == 0) {
		struct official all;
		ret->release = version;
		if (!version || p->gpu != GPU_CUDA)
			return 0;
		if (official_read(c->tables->dir, version, c->arena, &all, e) < 0)
			return -1;
		for (size_t i = 0; i < all.count && !ret->cuda; i++) {
			const struct official_wheel *w = &all.wheels[i];
			if (strcmp(w->name.dist, "torch") == 0 && strcmp(w->cuda, "-") != 0 &&
			    official_machine(w->name.platform) == machine_is_arm(p->platform))
				ret->cuda = w->cuda;
		}

		return 0;
	}

	if (strcmp(torch, "root") != 0) {
		/* Python, CUDA and release of a wheel, by its name and what is in it. */
		struct wheel_name n;
		const char *cuda = NULL;
		const struct tables *t = c->tables;
		if (!fs_exists(TRUSTED, torch)) /* refused with what there is to name, later */
			return 0;
		if (wheel_name_parse(torch, c->arena, &n, e) < 0 ||
		    torch_cuda(torch, c->arena, &cuda, e) < 0)
			return -1;
		if (strncmp(n.python, "cp3", 3) == 0)
			ret->python = arena_printf(c->arena, "3.%s", n.python + 3);
		if (p->gpu == GPU_CUDA && cuda && *cuda)
			ret->cuda = cuda;
		const char *base = arena_strndup(c->arena, n.version, strcspn(n.version, "+"));
		const struct world_wanted want = {
			.platform = p->platform, .cuda = ret->cuda, .python = ret->python};
		for (unsigned i = 0; i < t->releases_count; i++) {
			const struct release_row *r = &t->releases[i];
			if (strcmp(r->base, base) != 0 || (ret->release && !lands(c, r, &n, &want)))
				continue;
			ret->release = r->name;
			if (lands(c, r, &n, &want))
				return 0;
		}

		return 0;
	}

	/* The release of a distribution, whose torch is in its root; of several the newest. */
	for (unsigned i = 0; i < c->tables->releases_count; i++)
		if (strcmp(c->tables->releases[i].name, c->tables->releases[i].base) != 0)
			ret->release = c->tables->releases[i].name;
	return 0;
}

int cmd_extension_cuda(struct cmd_context *c, const struct cmd_select *o, struct selection *s,
		       struct err *e)
{
	const struct variant *v = &s->variant;
	const char *torch = o->plan.torch, *cuda = NULL;
	struct torch_source of = {0};

	if (!torch || v->profile.gpu != GPU_CPU || strcmp(torch, "root") == 0)
		return 0;
	const struct torch_official q = {c->tables->dir, s->release->base, v->python,
					 v->profile.platform, NULL};
	const int rc = torch_find_official(torch, &q, c->arena, &of, e);
	if (rc < 0)
		return -1;
	if (rc > 0)
		cuda = of.official->cuda;
	else if (fs_exists(TRUSTED, torch) && torch_cuda(torch, c->arena, &cuda, e) < 0)
		return -1;
	s->torch_cuda = cuda && version_valid(cuda) ? cuda : NULL;
	return 0;
}

int cmd_extension(struct cmd_context *c, const struct cmd_select *o, const struct profile *p,
		  struct cmd_extension *ret, struct err *e)
{
	const struct tables *t = c->tables;
	struct package_row *rows = arena_array(c->arena, o->extensions.count, sizeof(*rows));
	struct cmd_extension out = {0};

	for (size_t i = 0; i < o->extensions.count; i++) {
		if (find_row(c, o->extensions.items[i], &rows[i], e) < 0)
			return -1;
		for (size_t k = 0; k < i; k++)
			if (strcmp(rows[k].name, rows[i].name) == 0)
				return err_set(e, ERR_USAGE,
					       "--extension %s and --extension %s are both '%s'",
					       o->extensions.items[k], o->extensions.items[i],
					       rows[i].name);
		strlist_ref(&out.packages, c->arena, rows[i].name);
		if (o->requirements)
			rows[i].requirements = path_from_here(c->arena, o->requirements);
	}

	c->tables = tables_extend(t, rows, o->extensions.count, c->arena);
	if (torch_facts(c, o->plan.torch, p, &out, e) < 0)
		return -1;
	*ret = out;
	return 0;
}

/* ---- sources of the user's own for packages of a release ---- */

/* One value of --source, taken apart. */
struct given {
	const char *text;
	const char *place;  /* a URL or a path as it was written */
	const char *sha256; /* NULL: none was given */
};

static bool is_url(const char *text)
{
	return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0 ||
	       strncmp(text, "file://", 7) == 0;
}

/* PLACE=SHA256, or a PLACE that may have '=' in it. */
static struct given take_apart(struct cmd_context *c, const char *text)
{
	const char *equals = strrchr(text, '=');
	const bool pair = equals && !fs_exists(TRUSTED, path_from_here(c->arena, text));

	return (struct given){.text = text,
			      .place = pair ? arena_strndup(c->arena, text, (size_t)(equals - text))
					    : text,
			      .sha256 = pair ? equals + 1 : NULL};
}

/* Whether some release has a source of this name: it is then that source, whose
 * digest the user gives. What neither is there nor a URL is left to the plan, too. */
static bool is_of_release(struct cmd_context *c, const struct given *g)
{
	if (!g->sha256)
		return false;
	for (unsigned i = 0; i < c->tables->releases_count; i++)
		for (size_t k = 0; k < TABLES_PACKAGES; k++) {
			const struct package_row *p =
				tables_package(&c->tables->releases[i], tables_packages[k]);
			if (p && text_search(path_base(g->place), p->sources, p->sources_count,
					     sizeof(*p->sources)))
				return true;
		}
	return !is_url(g->place) && !fs_exists(TRUSTED, path_from_here(c->arena, g->place));
}

/* An archive that is somewhere else: downloaded now, as its version is in it. Returns the file. */
static const char *fetch_given(struct cmd_context *c, const struct given *g, struct source_row *ret,
			       struct err *e)
{
	const char **urls = arena_array(c->arena, 1, sizeof(*urls));
	const size_t end = strcspn(g->place, "?#");
	struct store *store;

	urls[0] = g->place;
	*ret = (struct source_row){.name = path_base(arena_strndup(c->arena, g->place, end)),
				   .sha256 = g->sha256,
				   .unproven = "",
				   .urls = urls,
				   .urls_count = 1,
				   .into = ""};
	struct fetch_source s = fetch_source_of(ret, c->arena);
	if (cmd_store(c, &store, e) < 0 || cmd_open(c, OPEN_NETWORK, e) < 0 ||
	    fetch_all(&(struct fetcher){store, c->fetch, c->run, c->arena}, &s, 1, NULL, e) < 0)
		return NULL;
	return s.path;
}

static int read_given(struct cmd_context *c, const struct given *g, struct own_row *ret,
		      struct err *e)
{
	const bool fetched = is_url(g->place);
	struct own_source s;

	if (g->sha256 && !digest_valid_hex(g->sha256)) {
		err_set(e, ERR_USAGE, "--source %s: not a sha256: '%s'", g->place, g->sha256);
		return err_hint(e, "64 lower-case hex digits, as sha256sum prints them");
	}

	if (fetched && !g->sha256) {
		err_set(e, ERR_USAGE, "--source %s: a URL needs the digest of its file", g->text);
		return err_hint(e, "write --source URL=SHA256");
	}

	const char *path =
		fetched ? fetch_given(c, g, &ret->source, e) : path_from_here(c->arena, g->place);
	if (!path)
		return -1;
	if (own_read(path, cmd_selected(c)->version, c->run, c->arena, &s, e) < 0)
		return -1;
	ret->package = s.package;
	ret->version = s.version;
	ret->state = fetched ? arena_printf(c->arena, "the file of '%s'",
					    transfer_shown_url(c->arena, g->place))
			     : s.state;
	if (fetched)
		return 0;
	/* The name of the package is the directory in the archive of a folder. */
	if (cmd_source(c, path, *s.package ? s.package : "source", s.version, &ret->source, e) < 0)
		return -1;
	if (!g->sha256 || strcmp(g->sha256, ret->source.sha256) == 0)
		return 0;
	return err_set(e, ERR_INTEGRITY, "'%s' has the sha256 %s, not %s", g->place,
		       ret->source.sha256, g->sha256);
}

/* The packages that are asked for: by --package, or in the name of a variant. */
static void asked_packages(struct cmd_context *c, const struct strlist *words, struct strlist *ret)
{
	const struct cmd_select *o = cmd_selected(c);
	const bool all = strlist_contains(&o->packages, "all");

	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		const char *name = tables_packages[i];
		bool asked = all || strlist_contains(&o->packages, name);
		for (size_t k = 0; k < words->count; k++)
			asked = asked || (strncmp(words->items[k], name, strlen(name)) == 0 &&
					  words->items[k][strlen(name)] == '-');
		if (asked)
			strlist_ref(ret, c->arena, name);
	}

	if (!ret->count && !o->extensions.count)
		strlist_ref(ret, c->arena, PACKAGE_TORCH);
}

/* The one package that the source is of. */
static int choose_package(struct cmd_context *c, const struct strlist *words, const char *text,
			  struct own_row *own, struct err *e)
{
	struct strlist asked = {0};

	asked_packages(c, words, &asked);
	const char *names = strlist_join(&asked, c->arena, ", ");
	if (*own->package && !strlist_contains(&asked, own->package)) {
		err_set(e, ERR_USAGE, "--source %s is a source of %s, and %s is built", text,
			own->package, asked.count ? names : "an extension");
		return err_hint(e, "add --package %s", own->package);
	}

	if (!*own->package && asked.count != 1) {
		err_set(e, ERR_USAGE, "--source %s: its files do not show which of %s it is", text,
			asked.count ? names : "the packages");
		return err_hint(e, "build one package with it: --package torchaudio");
	}

	own->package = *own->package ? own->package : asked.items[0];
	return 0;
}

/* Without a release the newest would be the base, whatever the source is: the one that has its
 * version, of which "2.11.0a0" is an early state. */
static int find_base(struct cmd_context *c, const struct own_row *own, struct err *e)
{
	const struct cmd_select *o = cmd_selected(c);
	size_t n = strspn(own->version, "0123456789.");

	while (n && own->version[n - 1] == '.') /* of "2.12.0.dev20261101" */
		n--;
	const char *base = arena_strndup(c->arena, own->version, n);

	for (unsigned i = 0; i < c->tables->releases_count && !c->own_release; i++) {
		const struct release_row *r = &c->tables->releases[i];
		const struct package_row *p = tables_package(r, own->package);
		if (p && strcmp(p->version, base) == 0)
			c->own_release = r->name;
	}

	if (o->release || o->plan.torch || c->own_release)
		return 0;
	err_set(e, ERR_USAGE, "no release has %s %s, so how to build it is not known", own->package,
		base);
	return err_hint(e, "name the release whose options fit, such as --release %s",
			c->tables->releases[c->tables->releases_count - 1].name);
}

static int use_own(struct cmd_context *c, const struct strlist *words, const struct given *g,
		   struct err *e)
{
	struct own_row own = {0};

	if (read_given(c, g, &own, e) < 0 || choose_package(c, words, g->text, &own, e) < 0 ||
	    find_base(c, &own, e) < 0)
		return -1;
	for (unsigned i = 0; i < c->tables->releases_count; i++) {
		const struct package_row *p = tables_package(&c->tables->releases[i], own.package);
		if (p && p->own_version)
			return err_set(e, ERR_USAGE, "--source names two sources of %s",
				       own.package);
	}

	log_info(c->run->log, "%s: version %s, from %s", own.package, own.version, own.state);
	c->tables = tables_own(c->tables, &own, c->arena);
	c->own_source = true;
	return 0;
}

int cmd_own_sources(struct cmd_context *c, const struct strlist *words, struct err *e)
{
	const struct cmd_select *o = cmd_selected(c);
	bool used = o->extensions.count > 0;

	c->sources = (struct kvlist){0};
	for (size_t i = 0; i < o->sources.count; i++) {
		const struct given g = take_apart(c, o->sources.items[i]);
		if (is_of_release(c, &g)) {
			kvlist_set(&c->sources, c->arena, g.place, g.sha256);
			continue;
		}

		used = true;
		if (o->matrix) {
			err_set(e, ERR_USAGE, "--source %s and --matrix cannot be used together",
				g.text);
			return err_hint(e, "name one profile: --profile PROFILE");
		}

		if (use_own(c, words, &g, e) < 0)
			return -1;
	}

	if (!o->version || used)
		return 0;
	err_set(e, ERR_USAGE, "--version %s without a source that could have it", o->version);
	return err_hint(e, "it is the version of --source or --extension; 'ptbuild --version' "
			   "prints that of ptbuild");
}

struct plan_options cmd_plan_asked(const struct cmd_context *c)
{
	struct plan_options o = cmd_selected(c)->plan;

	o.sources = c->sources;
	return o;
}

/* ---- what the build of an extension needs from Python ---- */

int cmd_requirements(struct cmd_context *c, const struct plan *p, const struct root *root,
		     const char **ret, struct err *e)
{
	struct arena *a = c->arena;
	struct pyenv_request q = {.plan = p, .root = root, .kind = cmd_sandbox(c)};
	struct lock_look l;
	const char *out;

	*ret = NULL;
	if (!plan_is_extension(p))
		return 0;
	q.profiles_dir = c->profiles_dir;
	if (cmd_out_dir(c, &out, e) < 0 || cmd_store_look(c, &q.store, e) < 0 ||
	    requirements_look(&q, a, &l, e) < 0)
		return -1;
	const char *pins = arena_printf(a, "%zu package%s: %s", l.pins.count, plural(l.pins.count),
					strlist_join(&l.pins, a, ", "));
	if (l.state == LOCK_GIVEN)
		*ret = arena_printf(a, "'%s' pins %s", l.path, pins);
	else if (l.state == LOCK_KEPT)
		*ret = arena_printf(a, "the lock of an earlier build pins %s", pins);
	else if (l.state == LOCK_TO_MAKE)
		*ret = arena_printf(a,
				    "%s%s, resolved by the first build and locked in "
				    "'%s/%s/requirements.txt'",
				    strlist_join(&l.wants, a, ", "),
				    root ? "" : " unless the root has them", out, p->variant);
	return 0;
}
