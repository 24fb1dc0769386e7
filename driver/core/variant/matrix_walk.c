#include <fnmatch.h>

#include "core/tables/matrix_rows.h"
#include "core/variant/matrix.h"

bool matrix_globs_match(const struct strlist *globs, const char *name)
{
	for (size_t i = 0; i < globs->count; i++)
		if (fnmatch(globs->items[i], name, 0) == 0)
			return true;
	return false;
}

static unsigned at_least_one(unsigned n)
{
	return n ? n : 1;
}

static unsigned long row_cells(const struct matrix_row *r)
{
	return (unsigned long)r->packages_count * r->pythons_count * at_least_one(r->toolkits_count) * r->gpus_count *
	       at_least_one(r->isas_count);
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
		if (w->cell < row_cells(r))
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
		if ((!m->only.count || matrix_globs_match(&m->only, name)) && !matrix_globs_match(&m->except, name))
			return name;
	return NULL;
}
