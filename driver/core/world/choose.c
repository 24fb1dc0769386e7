#include "core/world/world.h"

static const struct world_row *fitting_row(const struct release_row *r, const struct world_wanted *want)
{
	for (unsigned i = 0; i < r->worlds_count; i++) {
		const struct world_row *w = &r->worlds[i];
		if (strings_allow(w->platforms, w->platforms_count, want->platform) &&
		    (!w->cuda_count || (want->cuda && strings_contain(w->cuda, w->cuda_count, want->cuda))))
			return w;
	}
	return NULL;
}

/* "python3_12": the part of a version. */
static const char *part_of(const char *kind, const char *version, struct arena *a)
{
	char *part = arena_printf(a, "%s%s", kind, version);
	for (char *dot = part; (dot = strchr(dot, '.'));)
		*dot = '_';
	return part;
}

struct wanted_part {
	const char *part;         /* NULL: none */
	const char *what, *which; /* in words: "Python", "3.12" */
};

/* ERR_POLICY where there is no such part. */
static int find_part(const struct tables *t, const struct strlist *names, const struct wanted_part *p,
		     const struct release_row *r, struct arena *a, const struct world_part **ret, struct err *e)
{
	if (strlist_contains(names, p->part))
		return world_part_load(t->dir, p->part, a, ret, e);
	err_set(e, ERR_POLICY, "no world of release %s has %s %s", r->name, p->what, p->which);
	return err_hint(e, "'ptbuild world list' shows the parts there are; with --root DIR a build stands on a root "
			   "of your own, with --root / on this machine's");
}

static bool wants_library(const struct world_wanted *want)
{
	return want->library && *want->library;
}

static int choose(const struct tables *t, const struct release_row *r, const struct world_wanted *want, struct arena *a,
		  struct world_choice *ret, struct err *e)
{
	const struct world_row *row = world_debian_arch(want->platform) ? fitting_row(r, want) : NULL;
	const char *cuda = want->cuda, *python = want->python;
	const struct world_part *base;
	struct strlist names = {0};
	*ret = (struct world_choice){0};
	if (!row)
		return 0;
	if (world_part_load(t->dir, row->base, a, &base, e) < 0 || world_part_names(t->dir, a, &names, e) < 0)
		return -1;
	if (!python)
		python = strings_contain(r->pythons, r->pythons_count, base->python) ? base->python
										     : r->pythons[r->pythons_count - 1];
	const struct wanted_part parts[] = {
		{strcmp(python, base->python) != 0 ? part_of("python", python, a) : NULL, "Python", python},
		{cuda ? part_of("cuda", cuda, a) : NULL, "CUDA", cuda},
		{wants_library(want) ? want->library : NULL, "the part", want->library}};
	struct world_piece pieces[1 + ARRAY_LEN(parts)] = {{.part = base}};
	size_t count = 1;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].part && find_part(t, &names, &parts[i], r, a, &pieces[count++].part, e) < 0)
			return -1;
	*ret = (struct world_choice){world_put_in_order(pieces, count, a), python};
	return 0;
}

/* What to do where a world is refused: name the Python of the one that fits with `any` Python, if there is such a one.
 * The version is a choice of --python, or of a variant's name: "python313". */
static int hint_python(const struct world_wanted *want, const struct world_choice *any, const char *otherwise,
		       struct err *e)
{
	if (!want->python || !any->python)
		return err_hint(e, "%s", otherwise);
	return err_hint(e,
			"leave --python out, or name python%c%s, for Python %s, which '%s' has; 'ptbuild world list' "
			"shows the parts there are, and --root DIR names a root of your own",
			*any->python, any->python + 2, any->python, any->name);
}

int world_choose(const struct tables *t, const struct release_row *r, const struct world_wanted *want, struct arena *a,
		 struct world_choice *ret, struct err *e)
{
	struct world_wanted any = *want;
	struct world_choice other = {0};
	if (choose(t, r, want, a, ret, e) == 0)
		return 0;
	any.python = NULL;
	if (e->kind != ERR_POLICY || choose(t, r, &any, a, &other, ERR_IGNORED) < 0)
		other = (struct world_choice){0};
	return hint_python(want, &other, e->hint, e);
}

/* "1:3.31.6-2" is 3.31.6. */
static const char *upstream_version(const char *version, struct arena *a)
{
	const char *colon = strchr(version, ':'), *from = colon ? colon + 1 : version;
	return arena_strndup(a, from, strspn(from, "0123456789."));
}

static int refuse_tool(const struct world *w, const struct release_row *r, const char *tool, const char *version,
		       const char *range, struct err *e)
{
	const char *arm = range == r->gcc_arm ? " on Arm" : "";
	err_set(e, ERR_POLICY, "'%s' has %s %s; release %s needs%s %s", w->pieces[0].part->part, tool, version, r->name,
		arm, range);
	return err_hint(e, "another release, or another toolkit (--cuda), may fit its base or stand on another; "
			   "--root DIR is a root of your own");
}

/* The wheel or the package of a base that has a tool; a wheel's is first in PATH. */
static const struct world_entry *find_tool(const struct world_lock *l, const char *package, const char *wheel)
{
	const struct world_entry *found = NULL;
	for (size_t i = 0; i < l->count; i++) {
		const struct world_entry *t = &l->entries[i];
		if (t->kind == WORLD_WHEEL && strcmp(t->name, wheel) == 0)
			return t;
		if (t->kind == WORLD_DEB && strcmp(t->name, package) == 0)
			found = t;
	}
	return found;
}

int world_check_tools(const struct world *w, const struct release_row *r, struct arena *a, struct err *e)
{
	const struct {
		const char *package, *wheel, *range;
	} tools[] = {{"cmake", "cmake", r->cmake},
		     {"ninja-build", "ninja", r->ninja},
		     {"gcc", "", tables_gcc(r, w->platform)}};
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		const struct world_entry *t = find_tool(&w->pieces[0].lock, tools[i].package, tools[i].wheel);
		bool fits = true;
		if (!t)
			continue;
		const char *version = upstream_version(t->version, a);
		if (version_in(version, tools[i].range, &fits, e) < 0)
			return -1;
		if (!fits)
			return refuse_tool(w, r, t->name, version, tools[i].range, e);
	}
	return 0;
}

const struct world_part *world_python_part(const struct world *w)
{
	const struct world_part *found = NULL;
	for (size_t i = 1; i < w->count; i++)
		if (*w->pieces[i].part->python)
			found = w->pieces[i].part;
	return found;
}

const char *world_python(const struct world *w)
{
	const struct world_part *part = world_python_part(w);
	return part ? part->python : w->pieces[0].part->python;
}

const char *world_python_program(const struct world *w, struct arena *a)
{
	const struct world_part *part = world_python_part(w);
	return part ? arena_printf(a, "/%s/bin/python3", part->prefix) : NULL;
}

static bool has_part(const struct world *w, const char *part)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->pieces[i].part->part, part) == 0)
			return true;
	return false;
}

/* What a build is told of a library is its prefix: another version there does as well. */
static int has_library(const struct tables *t, const struct world *w, const char *library, struct arena *a, bool *ret,
		       struct err *e)
{
	const struct world_part *part;
	*ret = true;
	if (has_part(w, library))
		return 0;
	if (world_part_load(t->dir, library, a, &part, e) < 0)
		return -1;
	for (size_t i = 1; i < w->count; i++)
		if (strcmp(w->pieces[i].part->kind, part->kind) == 0 &&
		    strcmp(w->pieces[i].part->prefix, part->prefix) == 0)
			return 0;
	*ret = false;
	return 0;
}

/* What of that is not in it, in words; NULL: it is all there. */
static int find_lack(const struct tables *t, const struct world *w, const struct world_wanted *want, struct arena *a,
		     const char **ret, struct err *e)
{
	const char *own = world_python(w);
	bool library = true;
	if (wants_library(want) && has_library(t, w, want->library, a, &library, e) < 0)
		return -1;
	*ret = want->python && strcmp(want->python, own) != 0
		       ? arena_printf(a, "has Python %s, not %s", own, want->python)
	       : want->cuda && !has_part(w, part_of("cuda", want->cuda, a))
		       ? arena_printf(a, "has no CUDA %s", want->cuda)
	       : !library ? arena_printf(a, "has no part '%s', which the BLAS is in", want->library)
			  : NULL;
	return 0;
}

/* The world itself with its own Python, if that is all that it does not have and the release builds for it. */
static int with_own_python(const struct tables *t, const struct world *w, const struct release_row *r,
			   const struct world_wanted *want, struct arena *a, struct world_choice *ret, struct err *e)
{
	struct world_wanted any = *want;
	const char *lacks, *own = world_python(w);
	any.python = NULL;
	if (find_lack(t, w, &any, a, &lacks, e) < 0)
		return -1;
	bool fits = !lacks && strings_contain(r->pythons, r->pythons_count, own);
	*ret = fits ? (struct world_choice){w->name, own} : (struct world_choice){0};
	return 0;
}

int world_check_parts(const struct tables *t, const struct world *w, const struct release_row *r,
		      const struct world_wanted *want, struct arena *a, struct err *e)
{
	struct world_wanted here = *want;
	struct world_choice fits = {0}, own;
	struct err none = {0};
	const char *lacks;
	here.platform = w->platform;
	if (find_lack(t, w, &here, a, &lacks, e) < 0)
		return -1;
	if (!lacks)
		return 0;
	if (with_own_python(t, w, r, &here, a, &own, e) < 0)
		return -1;
	if (choose(t, r, &here, a, &fits, &none) == 0 && fits.name) {
		err_set(e, ERR_POLICY, "the world '%s' %s; '%s' has it", w->name, lacks, fits.name);
		return err_hint(e, "--root world:%s names it; it is also what release %s stands on without --root",
				fits.name, r->name);
	}
	err_set(e, ERR_POLICY, "the world '%s' %s", w->name, lacks);
	return hint_python(&here, &own,
			   arena_printf(a, "%s; 'ptbuild world list' shows the parts there are",
					*none.msg ? none.msg : "the release's table names no world"),
			   e);
}
