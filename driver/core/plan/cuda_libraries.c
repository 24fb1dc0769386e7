#include "core/plan/cuda_libraries.h"

#include "base/sys/fs.h"
#include "core/elf/elf.h"
#include "core/wheel/wheel.h"

/* The first version that may break what was built against this one: the next major one, with which
 * NVIDIA changes the SONAME; of a 0.x, which promises less, the next minor one. (cuSPARSELt 0.6 and
 * 0.8 have one SONAME, and structures of other sizes and alignment.) */
static char *first_break(const char *version, struct arena *a)
{
	char *end;
	unsigned long major = strtoul(version, &end, 10);

	if (major == 0 && *end == '.')
		return arena_printf(a, "0.%lu", strtoul(end + 1, NULL, 10) + 1);
	return arena_printf(a, "%lu", major + 1);
}

/* ">=12.4.5.8,<13": what was built against, up to what may not fit any more. */
static char *range_of(const struct plan *p, const struct cuda_library_row *row, struct arena *a)
{
	const struct toolkit_part *part =
		*row->part && p->toolkit ? toolkit_part_of(p->toolkit, row->part) : NULL;
	const char *version = part && *part->version ? part->version : *row->part ? "" : p->cuda;

	if (!*version)
		return arena_strdup(a, "");
	const char *below = first_break(version, a);
	if (*row->below && version_cmp(row->below, below) < 0)
		below = row->below;
	/* A toolkit may still have what the wheel of its version has not. */
	return version_cmp(version, below) < 0 ? arena_printf(a, ">=%s,<%s", version, below)
					       : arena_printf(a, "<%s", below);
}

static const struct cuda_library_row *find_package(const struct toolkit_row *k, const char *package)
{
	return text_search(package, k->libraries, k->libraries_count, sizeof(*k->libraries));
}

void cuda_needs(const struct plan *p, const struct strlist *needed, struct arena *a,
		struct cuda_needs *ret)
{
	const struct toolkit_row *k = p->toolkit_row;

	*ret = (struct cuda_needs){0};
	if (!k)
		return;
	bool *searched = arena_array(a, k->libraries_count, sizeof(*searched));
	strlist_append(&ret->names, a, &p->driver_libraries);
	for (unsigned i = 0; i < k->libraries_count; i++) {
		const struct cuda_library_row *row = &k->libraries[i];
		bool used = false;
		strlist_refs(&ret->names, a, row->names, row->names_count);
		for (size_t n = 0; n < needed->count && !used; n++)
			used = strings_match(row->names, row->names_count, needed->items[n]);
		if (!used)
			continue;
		strlist_addf(&ret->requires, a, "%s%s", row->package, range_of(p, row, a));
		searched[i] = true;
		for (unsigned n = 0; n < row->needs_count; n++)
			searched[find_package(k, row->needs[n]) - k->libraries] = true;
	}

	strlist_sort(&ret->requires);
	for (unsigned i = 0; i < k->libraries_count; i++) {
		const char *dir = path_join(a, "nvidia", k->libraries[i].dir);
		if (searched[i])
			strlist_once(&ret->dirs, a, dir);
		if (searched[i] && *k->libraries[i].older)
			strlist_ref(&ret->dirs, a, k->libraries[i].older);
	}

	if (strcmp(p->cuda_libraries, "system") == 0)
	ret->requires = ret->dirs = (struct strlist){0};
}

int cuda_needed(const char *tree, struct arena *a, struct strlist *ret, struct err *e)
{
	AUTO_ARENA struct arena own = {0};
	struct strlist files = {0};

	if (fs_list_tree(TRUSTED, tree, &own, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++) {
		AUTO_ARENA struct arena scratch = {0};
		struct elf_info info;
		int rc = elf_try(path_join(&scratch, tree, files.items[i]), &scratch, &info, e);
		if (rc < 0)
			return -1;
		for (size_t k = 0; rc > 0 && k < info.needed.count; k++)
			if (!strlist_contains(ret, info.needed.items[k]))
				strlist_add(ret, a, info.needed.items[k]);
	}

	return 0;
}

enum cuda_source cuda_source(const struct tables *t, const struct strlist *distributions,
			     const char *name, struct arena *a)
{
	struct strlist holders = {0};

	if (strings_match(t->driver_libraries, t->driver_libraries_count, name))
		return CUDA_DRIVER;
	cuda_holders(t, name, a, &holders);
	for (size_t i = 0; i < holders.count; i++)
		if (strlist_contains(distributions, wheel_normalize(holders.items[i], a)))
			return CUDA_PACKAGE;
	return holders.count ? CUDA_SYSTEM : CUDA_UNKNOWN;
}

void cuda_holders(const struct tables *t, const char *name, struct arena *a, struct strlist *ret)
{
	for (unsigned i = 0; i < t->layouts_count; i++)
		for (unsigned k = 0; k < t->layouts[i].libraries_count; k++) {
			const struct cuda_library_row *row = &t->layouts[i].libraries[k];
			if (strings_match(row->names, row->names_count, name))
				strlist_once(ret, a, row->package);
		}
}

/* With what its METADATA requires, which ends: nothing needs what needs it. */
static void add_package(const struct layout_row *l, const char *package, struct arena *a,
			struct strlist *ret)
{
	const struct cuda_library_row *row =
		text_search(package, l->libraries, l->libraries_count, sizeof(*row));
	const char *name = wheel_normalize(package, a);

	if (strlist_contains(ret, name))
		return;
	strlist_ref(ret, a, name);
	for (unsigned i = 0; row && i < row->needs_count; i++)
		add_package(l, row->needs[i], a, ret);
}

/* "12" of the layout "cu12". */
static bool is_of_line(const struct layout_row *l, const struct requirement *r, struct arena *a)
{
	return strcmp(r->name, wheel_normalize(l->bundle, a)) == 0 &&
	       specifier_takes_series(r->specifier, l->name + strcspn(l->name, "0123456789"), a);
}

void cuda_brings(const struct tables *t, const struct requirement *r, struct arena *a,
		 struct strlist *ret)
{
	for (unsigned i = 0; i < t->layouts_count; i++) {
		const struct layout_row *l = &t->layouts[i];
		const bool bundle = *l->bundle && is_of_line(l, r, a),
			   all = strlist_contains(&r->extras, "all");
		for (unsigned k = 0; k < l->libraries_count; k++) {
			const struct cuda_library_row *row = &l->libraries[k];
			const bool extra =
				*row->extra && (all || strlist_contains(&r->extras, row->extra));
			if ((bundle && extra) ||
			    strcmp(r->name, wheel_normalize(row->package, a)) == 0)
				add_package(l, row->package, a, ret);
		}
	}

	strlist_once(ret, a, r->name);
}

/* Whether two rows are for the same files. */
static bool is_same_place(const struct cuda_library_row *x, const struct cuda_library_row *y)
{
	return strcmp(x->dir, y->dir) == 0 &&
	       strings_contain(y->names, y->names_count, x->names[0]);
}

static const struct cuda_library_row *find_clash(const struct layout_row *l,
						 const struct cuda_library_row *row,
						 const struct strlist *distributions,
						 struct arena *a)
{
	for (unsigned k = 0; k < l->libraries_count; k++)
		if (is_same_place(row, &l->libraries[k]) &&
		    strlist_contains(distributions, wheel_normalize(l->libraries[k].package, a)))
			return &l->libraries[k];
	return NULL;
}

bool cuda_clash(const struct tables *t, const struct strlist *distributions, struct arena *a,
		const char *ret[2])
{
	for (unsigned i = 0; i < t->layouts_count; i++)
		for (unsigned k = 0; k < t->layouts[i].libraries_count; k++) {
			const struct cuda_library_row *row = &t->layouts[i].libraries[k];
			if (!strlist_contains(distributions, wheel_normalize(row->package, a)))
				continue;
			for (unsigned n = i + 1; n < t->layouts_count; n++) {
				const struct cuda_library_row *other =
					find_clash(&t->layouts[n], row, distributions, a);
				if (!other)
					continue;
				ret[0] = row->package;
				ret[1] = other->package;
				return true;
			}
		}
	return false;
}
