#include "cmd/list_matrices.h"

#include <string.h>

#include "core/plan/plan.h"
#include "core/variant/matrix.h"

struct counts {
	size_t variants;
	size_t refused;
	size_t of_package[TABLES_PACKAGES];
};

static int count_one(const struct tables *t, const struct matrix *m, const char *name, struct arena *a,
		     struct counts *ret, struct err *e)
{
	struct variant v;
	struct err refusal = {0};
	if (variant_parse(t, name, a, &v, e) < 0)
		return err_wrap(e, "matrix '%s'", m->name);
	struct plan_request q = {.variant = &v, .release = m->release->name};
	ret->variants++;
	ret->refused += plan_possible(t, &q, a, &refusal) < 0;
	for (size_t p = 0; p < TABLES_PACKAGES; p++)
		ret->of_package[p] += strcmp(tables_packages[p], v.package) == 0;
	return 0;
}

static int add_row(const struct tables *t, const char *name, json_t *rows, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct matrix *m;
	struct matrix_walk w = {0};
	struct counts n = {0};
	const char *variant;
	if (matrix_load(t, name, &a, &m, e) < 0)
		return -1;
	while ((variant = matrix_next(m, &w, &a)))
		if (count_one(t, m, variant, &a, &n, e) < 0)
			return -1;
	json_t *row = json_object();
	json_array_append_new(rows, row);
	json_object_set_new(row, "name", json_string(name));
	json_object_set_new(row, "release", json_string(m->release->name));
	json_object_set_new(row, "variants", json_integer((json_int_t)n.variants));
	json_object_set_new(row, "refused", json_integer((json_int_t)n.refused));
	for (size_t p = 0; p < TABLES_PACKAGES; p++)
		json_object_set_new(row, tables_packages[p], json_integer((json_int_t)n.of_package[p]));
	json_object_set_new(row, "view_of", m->base ? json_string(m->base->name) : json_null());
	json_object_set_new(row, "note", json_string(m->note));
	return 0;
}

int list_matrices(const struct tables *t, struct arena *a, json_t **ret, struct err *e)
{
	struct strlist names = {0};
	json_t *rows = json_array();
	int rc = matrix_names(t, a, &names, e);
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = add_row(t, names.items[i], rows, e);
	if (rc < 0)
		json_decref(rows);
	else
		*ret = rows;
	return rc;
}
