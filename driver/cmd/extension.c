#include "cmd/select.h"

#include "base/sys/machine.h"
#include "core/plan/torch_fits.h"
#include "core/wheel/wheel.h"
#include "core/world/world.h"
#include "step/fetch/fetch.h"
#include "step/pipeline/make.h"
#include "step/source/source.h"

/* The one file that it is made of: the sdist, or the archive that the folder makes. */
static int add_source(struct cmd_context *c, const char *path, struct package_row *row,
		      struct err *e)
{
	struct source_row *s = arena_alloc(c->arena, sizeof(*s));
	const char **urls = arena_array(c->arena, 1, sizeof(*urls));
	char *hex = arena_alloc(c->arena, DIGEST_HEX_LEN + 1);
	const bool folder = fs_is_dir(TRUSTED, path);
	const char *name = folder ? arena_printf(c->arena, "%s-%s.tar", row->name, row->version)
				  : path_base(path);

	if ((folder ? folder_pack(path, row->name, -1, hex, e) : digest_file(path, hex, e)) < 0)
		return -1;
	urls[0] = arena_printf(c->arena, "%s%s", folder ? "folder:" : "", path);
	*s = (struct source_row){.name = name,
				 .sha256 = hex,
				 .unproven = "",
				 .urls = urls,
				 .urls_count = 1,
				 .into = ""};
	row->sources = s;
	row->sources_count = 1;
	return 0;
}

/* What the tables know of an extension of this name, whichever version it is. */
static void add_known(const struct tables *t, struct package_row *row)
{
	const struct package_row *same = tables_extension(t, row->name, row->version);
	const struct package_row *known = same ? same : tables_extension(t, row->name, "");

	if (!known)
		return;
	row->settings = known->settings;
	row->settings_count = known->settings_count;
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

static int find_row(struct cmd_context *c, const struct tables *t, const char *word,
		    struct package_row *ret, struct err *e)
{
	const char *version, *name = text_pin(word, c->arena, &version),
			     *path = path_from_here(c->arena, word);

	if (fs_exists(TRUSTED, path)) {
		if (extension_read(path, c->run, c->arena, ret, e) < 0 ||
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

	if (world_choose(c->tables, r, want, c->arena, &w, ERR_IGNORED) < 0 || !w.name ||
	    world_part_load(c->tables->dir, arena_strndup(c->arena, w.name, strcspn(w.name, "+")),
			    c->arena, &base, ERR_IGNORED) < 0 ||
	    strncmp(base->glibc, "2.", 2) != 0)
		return false;
	const char *machine = arena_strndup(c->arena, want->platform, strcspn(want->platform, "-"));
	return wheel_name_lands(n, machine, (unsigned)strtoul(base->glibc + 2, NULL, 10), c->arena);
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
	const struct tables *t;
	struct package_row *rows = arena_array(c->arena, o->extensions.count, sizeof(*rows));
	struct cmd_extension out = {0};

	if (cmd_tables(c, &t, e) < 0)
		return -1;
	for (size_t i = 0; i < o->extensions.count; i++) {
		if (find_row(c, t, o->extensions.items[i], &rows[i], e) < 0)
			return -1;
		for (size_t k = 0; k < i; k++)
			if (strcmp(rows[k].name, rows[i].name) == 0)
				return err_set(e, ERR_USAGE,
					       "--extension %s and --extension %s are both '%s'",
					       o->extensions.items[k], o->extensions.items[i],
					       rows[i].name);
		strlist_ref(&out.packages, c->arena, rows[i].name);
	}

	c->tables = tables_extend(t, rows, o->extensions.count, c->arena);
	if (torch_facts(c, o->plan.torch, p, &out, e) < 0)
		return -1;
	*ret = out;
	return 0;
}
