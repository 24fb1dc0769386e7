#include "core/variant/variant.h"

#include "base/sys/fs.h"
#include "core/tables/tables_parts.h"

#define SUFFIX ".yaml"
#define VIEWS_MAX 8 /* views of views */

struct loader {
	const struct tables *t;
	struct arena *a;
	const char *path;
	struct matrix_file *file;
	unsigned depth; /* a view of a view is one deeper */
};

static const char *matrices_dir(const struct tables *t, struct arena *a)
{
	return path_join(a, t->dir, "matrices");
}

int matrix_names(const struct tables *t, struct arena *a, struct strlist *ret, struct err *e)
{
	const char *dir = matrices_dir(t, a);
	struct strlist files = {0};

	if (!fs_is_dir(TRUSTED, dir))
		return 0;
	if (fs_list_tree(TRUSTED, dir, a, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++) {
		const char *file = files.items[i];
		if (path_has_suffix(file, SUFFIX) && path_base(file)[0] != '.')
			strlist_ref(ret, a, arena_strndup(a, file, strlen(file) - strlen(SUFFIX)));
	}

	strlist_sort(ret);
	return 0;
}

static int unknown_matrix(const struct tables *t, const char *name, struct arena *a, struct err *e)
{
	struct strlist names = {0};

	if (matrix_names(t, a, &names, e) < 0)
		return -1;
	const char *near = suggest_nearest(name, names.items, names.count);
	err_set(e, ERR_CONFIG, "unknown matrix '%s'", name);
	if (near)
		return err_hint(e, "did you mean '%s'? 'ptbuild list --matrices' shows all", near);
	return err_hint(e, "'ptbuild list --matrices' shows all; the path of a YAML file may be "
			   "given as well");
}

/* A name is a file below matrices/; what ends in .yaml is a path. */
static int find_file(struct loader *l, const char *name, struct err *e)
{
	const struct tables *t = l->t;
	struct arena *a = l->a;
	const char *path =
		path_has_suffix(name, SUFFIX) ? name
		: path_is_safe_relative(name) && *name
			? path_join(a, matrices_dir(t, a), arena_printf(a, "%s" SUFFIX, name))
			: NULL;

	if (!path || !fs_exists(TRUSTED, path))
		return unknown_matrix(t, name, a, e);
	l->path = path;
	return 0;
}

static int check_toolkits(const struct loader *l, const struct matrix_row *row, bool cuda,
			  struct err *e)
{
	const struct yaml_place at = {l->path, row->line};

	if (!cuda && row->toolkits_count)
		return row_bad(&at, e, "'toolkits' with '%s': it has no CUDA", row->gpus[0]);
	if (cuda && !row->toolkits_count)
		return row_bad(&at, e, "no 'toolkits' with '%s'", row->gpus[0]);
	for (unsigned i = 0; i < row->toolkits_count; i++)
		if (!tables_toolkit(l->t, row->toolkits[i]))
			return row_bad(&at, e, "unknown CUDA toolkit '%s'", row->toolkits[i]);
	return 0;
}

static int check_pythons(const struct loader *l, const struct matrix_row *row, struct err *e)
{
	const struct yaml_place at = {l->path, row->line};

	if (!row->pythons_count)
		return row_bad(&at, e, "no 'pythons', here or in the file");
	for (unsigned i = 0; i < row->pythons_count; i++)
		if (!tables_python_known(l->t, row->pythons[i]))
			return row_bad(&at, e, "unknown Python '%s'", row->pythons[i]);
	return 0;
}

/* The targets of a row are of one kind, which decides what else it may have. */
static int settle_gpus(const struct loader *l, struct matrix_row *row, struct err *e)
{
	const struct yaml_place at = {l->path, row->line};
	struct profile first = {0};

	for (unsigned i = 0; i < row->gpus_count; i++) {
		struct profile p = {.file = "", .platform = ""};
		if (profile_set_gpu(l->t, row->gpus[i], l->a, &p, e) < 0)
			return err_wrap(e, "%s:%u", l->path, row->line);
		if (i && p.gpu != first.gpu)
			return row_bad(&at, e,
				       "'%s' and '%s' in one row: give each kind a row of its own",
				       row->gpus[0], row->gpus[i]);
		row->gpus[i] = profile_gpu_name(&p, l->a);
		first = p;
	}

	if (first.gpu == GPU_MPS && row->isas_count)
		return row_bad(
			&at, e,
			"'isas' with 'mps': every Mac with that GPU has the same instruction set");
	if (first.gpu != GPU_MPS && !row->isas_count)
		return row_bad(&at, e, "no 'isas' with '%s'", row->gpus[0]);
	return check_toolkits(l, row, first.gpu == GPU_CUDA, e);
}

/* Groups are taken apart, and aliases become names. */
static int settle_isas(const struct loader *l, struct matrix_row *row, struct err *e)
{
	const struct yaml_place at = {l->path, row->line};
	struct strlist isas = {0};

	for (unsigned i = 0; i < row->isas_count; i++) {
		const struct isa_group *group = tables_isa_group(l->t, row->isas[i]);
		const struct isa_row *isa = tables_isa(l->t, row->isas[i]);
		if (group)
			strlist_refs(&isas, l->a, group->isas, group->isas_count);
		if (!group && !isa)
			return row_bad(&at, e, "unknown instruction set or group '%s'",
				       row->isas[i]);
		if (!group)
			strlist_ref(&isas, l->a, isa->name);
	}

	row->isas = isas.items;
	row->isas_count = (unsigned)isas.count;
	return 0;
}

static int settle_row(const struct loader *l, struct matrix_row *row, struct err *e)
{
	static const char *pytorch[] = {PACKAGE_TORCH};

	if (!row->packages_count) {
		row->packages = pytorch;
		row->packages_count = 1;
	}

	if (!row->pythons_count) {
		row->pythons = l->file->pythons;
		row->pythons_count = l->file->pythons_count;
	}

	return settle_isas(l, row, e) < 0 || settle_gpus(l, row, e) < 0 ||
			       check_pythons(l, row, e) < 0
		       ? -1
		       : 0;
}

static int load(struct loader l, const char *name, const struct matrix **ret, struct err *e);

static int settle(struct loader *l, struct matrix *m, struct err *e)
{
	struct matrix_file *f = l->file;
	const struct yaml_place at = {l->path, f->line};

	strlist_refs(&m->only, l->a, f->only, f->only_count);
	strlist_refs(&m->except, l->a, f->except, f->except_count);
	if (*f->of) {
		if (*f->release || f->rows_count || f->pythons_count)
			return row_bad(
				&at, e,
				"a view of '%s' has no release, no pythons and no rows of its own",
				f->of);
		if (l->depth >= VIEWS_MAX)
			return row_bad(&at, e,
				       "'%s' is a view too deep: are they views of each other?",
				       f->of);
		if (load((struct loader){.t = l->t, .a = l->a, .depth = l->depth + 1}, f->of,
			 &m->base, e) < 0)
			return err_wrap(e, "%s:%u", l->path, f->line);
		m->release = m->base->release;
		return 0;
	}

	if (!f->rows_count)
		return row_bad(&at, e, "no 'rows', and no 'of'");
	if (tables_need_release(l->t, f->release, &m->release, e) < 0)
		return err_wrap(e, "%s:%u", l->path, f->line);
	for (unsigned i = 0; i < f->rows_count; i++)
		if (settle_row(l, &f->rows[i], e) < 0)
			return -1;
	m->rows = f->rows;
	m->rows_count = f->rows_count;
	/* Two rows that make the same variant are a mistake in the file. */
	AUTO_ARENA struct arena scratch = {0};
	struct strlist names = {0};
	struct matrix_walk w = {0};
	const char *name;
	while ((name = matrix_next(m, &w, &scratch)))
		strlist_ref(&names, &scratch, name);
	strlist_sort(&names);
	for (size_t i = 1; i < names.count; i++)
		if (strcmp(names.items[i], names.items[i - 1]) == 0)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is in two rows", l->path,
				       l->file->line, names.items[i]);
	return 0;
}

static int load(struct loader l, const char *name, const struct matrix **ret, struct err *e)
{
	struct arena *a = l.a;
	struct matrix *m = arena_alloc(a, sizeof(*m));

	l.file = arena_alloc(a, sizeof(*l.file));
	if (find_file(&l, name, e) < 0 || yaml_load(l.path, &schema_matrix, a, l.file, NULL, e) < 0)
		return -1;
	*m = (struct matrix){.name = arena_strdup(a, name), .note = l.file->note, .file = l.path};
	if (settle(&l, m, e) < 0)
		return -1;
	*ret = m;
	return 0;
}

int matrix_load(const struct tables *t, const char *name, struct arena *a,
		const struct matrix **ret, struct err *e)
{
	return load((struct loader){.t = t, .a = a}, name, ret, e);
}

static unsigned at_least_one(unsigned n)
{
	return n ? n : 1;
}

/* The number of a cell says its place on each axis, the instruction set changing fastest. */
static const char *cell_name(const struct matrix_row *r, unsigned long cell, struct arena *a)
{
	unsigned isas = at_least_one(r->isas_count), toolkits = at_least_one(r->toolkits_count);
	const char *isa = r->isas_count ? r->isas[cell % isas] : NULL;

	cell /= isas;
	const char *gpu = r->gpus[cell % r->gpus_count];
	cell /= r->gpus_count;
	const char *cuda = r->toolkits_count ? r->toolkits[cell % toolkits] : NULL;
	cell /= toolkits;
	const char *python = r->pythons[cell % r->pythons_count];
	const char *package = r->packages[cell / r->pythons_count];
	const char *profile = isa ? arena_printf(a, "%s-%s", gpu, isa) : "darwin-mps";
	return variant_spell(package, python, cuda, profile, a);
}

static const char *next_of_rows(const struct matrix *m, struct matrix_walk *w, struct arena *a)
{
	while (w->row < m->rows_count) {
		const struct matrix_row *r = &m->rows[w->row];
		if (w->cell <
		    ((unsigned long)r->packages_count * r->pythons_count *
		     at_least_one(r->toolkits_count) * r->gpus_count * at_least_one(r->isas_count)))
			return cell_name(r, w->cell++, a);
		w->row++;
		w->cell = 0;
	}

	return NULL;
}

const char *matrix_next(const struct matrix *m, struct matrix_walk *w, struct arena *a)
{
	const char *name;

	while ((name = m->base ? matrix_next(m->base, w, a) : next_of_rows(m, w, a)))
		if ((!m->only.count || strings_match(m->only.items, m->only.count, name)) &&
		    !strings_match(m->except.items, m->except.count, name))
			return name;
	return NULL;
}
