#include "core/world/choose.h"

#include <string.h>

#include "base/strlist.h"
#include "core/world/part.h"

static const struct world_row *fitting_row(const struct release_row *r, const char *cuda)
{
	for (unsigned i = 0; i < r->worlds_count; i++) {
		const struct world_row *w = &r->worlds[i];
		if (!w->cuda_count || (cuda && strings_contain(w->cuda, w->cuda_count, cuda)))
			return w;
	}
	return NULL;
}

/* "+python3_12": the part of a version; ERR_POLICY if there is none. */
static int add_part(const struct strlist *parts, const char *what, const char *kind, const char *version,
		    const struct release_row *r, struct arena *a, const char **name, struct err *e)
{
	char *part = arena_printf(a, "%s%s", kind, version);
	for (char *dot = part; (dot = strchr(dot, '.'));)
		*dot = '_';
	if (strlist_contains(parts, part)) {
		*name = arena_printf(a, "%s+%s", *name, part);
		return 0;
	}
	err_set(e, ERR_POLICY, "no world of release %s has %s %s", r->name, what, version);
	return err_hint(e, "'ptbuild world list' shows the parts there are; with --root DIR a build stands on a root "
			   "of your own, with --root / on this machine's");
}

int world_choose(const struct tables *t, const struct release_row *r, const char *platform, const char *cuda,
		 const char *python, struct arena *a, struct world_choice *ret, struct err *e)
{
	const struct world_row *row = world_debian_arch(platform) ? fitting_row(r, cuda) : NULL;
	const struct world_part *base;
	struct strlist parts = {0};
	*ret = (struct world_choice){0};
	if (!row)
		return 0;
	if (world_part_load(t->dir, row->base, a, &base, e) < 0 || world_part_names(t->dir, a, &parts, e) < 0)
		return -1;
	const char *name = base->part;
	if (!python)
		python = strings_contain(r->pythons, r->pythons_count, base->python) ? base->python
										     : r->pythons[r->pythons_count - 1];
	if (strcmp(python, base->python) != 0 && add_part(&parts, "Python", "python", python, r, a, &name, e) < 0)
		return -1;
	if (cuda && add_part(&parts, "CUDA", "cuda", cuda, r, a, &name, e) < 0)
		return -1;
	*ret = (struct world_choice){name, python};
	return 0;
}
