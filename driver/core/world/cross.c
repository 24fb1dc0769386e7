#include "core/world/cross.h"

#include "base/sys/fs.h"

#define EMULATOR "qemu-user" /* the package */

int world_cross_names(const char *profiles, struct arena *a, struct strlist *ret, struct err *e)
{
	struct strlist all = {0};

	*ret = (struct strlist){0};
	if (world_part_names(profiles, a, &all, e) < 0)
		return -1;
	strlist_sort(&all);
	for (size_t i = 0; i < all.count; i++) {
		const struct world_part *p;
		if (world_part_load(profiles, all.items[i], a, &p, ERR_IGNORED) == 0 &&
		    strcmp(p->kind, "cross") == 0)
			strlist_add(ret, a, p->part);
	}

	return 0;
}

static bool answers(const struct cross_query *q, const struct world_part *p)
{
	if (strcmp(p->target, q->target) != 0)
		return false;
	if (q->suite && strcmp(p->suite, q->suite) != 0)
		return false;
	return strings_allow(p->platforms, p->platforms_count, q->host);
}

int world_cross_find(const struct cross_query *q, struct arena *a, const struct world **ret,
		     struct err *e)
{
	const char *found = NULL;

	*ret = NULL;
	for (size_t i = 0; i < q->names->count; i++) {
		const struct world_part *p;
		if (world_part_load(q->profiles, q->names->items[i], a, &p, e) < 0)
			return -1;
		if (answers(q, p))
			found = p->part;
	}

	return found ? world_load(q->profiles, found, q->host, a, ret, e) : 0;
}

void world_cross_take(const struct world_part *cross, struct world_piece *toolkit, struct arena *a)
{
	struct world_part *part = arena_alloc(a, sizeof(*part));
	struct world_lock *l = &toolkit->lock;
	size_t kept = 0;

	*part = (struct world_part){.sources = toolkit->part->sources,
				    .part = toolkit->part->part,
				    .kind = cross->kind,
				    .suite = "",
				    .python = "",
				    .glibc = "",
				    .prefix = cross->prefix,
				    .manifest = "",
				    .target = "",
				    .emulator = "",
				    .cpu = "",
				    .places = cross->programs,
				    .places_count = cross->programs_count};
	for (size_t i = 0; i < l->count; i++)
		if (l->entries[i].kind == WORLD_WHEEL && world_part_place(part, l->entries[i].name))
			l->entries[kept++] = l->entries[i];
	l->count = kept;
	l->tree = NULL; /* that of the whole toolkit */
	toolkit->part = part;
}

int world_cross_with(const char *profiles, const struct world *cross, const struct world *w,
		     struct arena *a, const struct world **ret, struct err *e)
{
	const struct world *with = NULL;
	const char *toolkit = NULL;

	*ret = cross;
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->pieces[i].part->kind, "toolkit") == 0)
			toolkit = w->pieces[i].part->part;
	if (!toolkit || !fs_exists(TRUSTED, world_lock_path(profiles, toolkit, cross->platform, a)))
		return 0;
	const char *name = arena_printf(a, "%s+%s", cross->pieces[0].part->part, toolkit);
	if (world_load(profiles, name, cross->platform, a, &with, e) < 0)
		return -1;
	if (with->pieces[1].lock.count)
		*ret = with;
	return 0;
}

/* "14.2.0-19cross1" is as "14.2.0-19". */
static bool same_version(const char *cross, const char *base)
{
	static const char mark[] = "cross";
	const size_t len = strlen(base);

	if (strncmp(cross, base, len) != 0)
		return false;
	const char *rest = cross + len;
	if (!*rest)
		return true;
	if (strncmp(rest, mark, sizeof(mark) - 1) != 0)
		return false;
	rest += sizeof(mark) - 1;
	return *rest && !rest[strspn(rest, "0123456789")];
}

int world_cross_fits(const struct world *cross, const struct world *w, struct err *e)
{
	const struct world_part *p = cross->pieces[0].part;
	const struct world_part *base = w->pieces[0].part;

	for (unsigned i = 0; i < p->same_count; i++) {
		const struct world_entry *own =
			world_lock_find(&cross->pieces[0].lock, WORLD_DEB, p->same[i].package);
		const struct world_entry *of =
			world_lock_find(&w->pieces[0].lock, WORLD_DEB, p->same[i].as);
		if (own && of && same_version(own->version, of->version))
			continue;
		err_set(e, ERR_POLICY,
			"'%s' has '%s' %s, and '%s' %s: they may compile to different bytes",
			p->part, p->same[i].package, own ? own->version : "nowhere", base->part,
			of ? of->version : "has none");
		return err_hint(e,
				"lock both from one index: ptbuild world lock %s --platform %s "
				"--write, and ptbuild world lock %s --platform %s --write",
				base->part, w->platform, p->part, cross->platform);
	}

	return 0;
}

const struct world_slower *world_cross_slower(const struct world *cross, bool native)
{
	const struct world_part *p = cross->pieces[0].part;
	const char *compilers = native ? "native" : "emulated";

	for (unsigned i = 0; i < p->slower_count; i++)
		if (strcmp(p->slower[i].compilers, compilers) == 0)
			return &p->slower[i];
	return NULL;
}

char *world_cross_version(const struct world *cross, struct arena *a)
{
	const struct world_entry *q = world_lock_find(&cross->pieces[0].lock, WORLD_DEB, EMULATOR);
	const char *v = q ? q->version : "", *colon = strchr(v, ':');

	v = colon ? colon + 1 : v;
	return arena_strndup(a, v, strspn(v, "0123456789."));
}
