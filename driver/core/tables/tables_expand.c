#include "core/tables/tables_expand.h"

#include "core/tables/row_check.h"

/* How many rows one with these names makes; -1 when it has none, or both forms. */
static int names_of(const struct row_place *at, const char *name, unsigned names_count, struct err *e)
{
	if (*name && names_count)
		return row_bad(at, e, "'%s' stands beside 'names': use one of them", name);
	if (!*name && !names_count)
		return row_bad(at, e, "neither 'name' nor 'names'");
	return *name ? 1 : (int)names_count;
}

static int settle_value(const struct row_place *at, struct toggle_row *row, struct err *e)
{
	if (!*row->value)
		return 0;
	if (*row->cpu || *row->cuda || *row->mps)
		return row_bad(at, e, "'value' is for cpu, cuda and mps alike, but one of them is given as well");
	row->cpu = row->cuda = row->mps = row->value;
	return 0;
}

static int expand_toggle(const char *file, struct toggle_row *row, int *ret_rows, struct err *e)
{
	static const char *on_off[] = {"ON", "OFF"};
	const struct row_place at = {file, row->line};
	int n = names_of(&at, row->name, row->names_count, e);
	if (n < 0 || settle_value(&at, row, e) < 0)
		return -1;
	if (!*row->package)
		row->package = "pytorch";
	if (!row->values_count) {
		row->values = on_off;
		row->values_count = ARRAY_LEN(on_off);
	}
	*ret_rows += n;
	return 0;
}

int tables_expand_toggles(const char *file, struct arena *a, struct tables *f, struct err *e)
{
	int rows = 0;
	unsigned n = 0;
	for (unsigned i = 0; i < f->toggles_count; i++)
		if (expand_toggle(file, &f->toggles[i], &rows, e) < 0)
			return -1;
	struct toggle_row *all = arena_array(a, (size_t)rows, sizeof(*all));
	for (unsigned i = 0; i < f->toggles_count; i++) {
		const struct toggle_row *row = &f->toggles[i];
		all[n] = *row;
		if (*row->name)
			n++;
		for (unsigned k = 0; k < row->names_count; k++) {
			all[n] = *row;
			all[n++].name = row->names[k];
		}
	}
	f->toggles = all;
	f->toggles_count = n;
	for (unsigned i = 0; i < f->retired_count; i++)
		if (!*f->retired[i].package)
			f->retired[i].package = "pytorch";
	return 0;
}

int tables_expand_settings(const char *file, const char *package, struct arena *a, struct table_setting **settings,
			   unsigned *count, struct err *e)
{
	const struct table_setting *rows = *settings;
	unsigned n = 0, total = 0;
	for (unsigned i = 0; i < *count; i++) {
		int names =
			names_of(&(const struct row_place){file, rows[i].line}, rows[i].name, rows[i].names_count, e);
		if (names < 0)
			return -1;
		total += (unsigned)names;
	}
	struct table_setting *all = arena_array(a, total, sizeof(*all));
	for (unsigned i = 0; i < *count; i++) {
		unsigned names = *rows[i].name ? 1 : rows[i].names_count;
		for (unsigned k = 0; k < names; k++) {
			all[n] = rows[i];
			all[n].name = *rows[i].name ? rows[i].name : rows[i].names[k];
			if (!*all[n].package)
				all[n].package = package;
			n++;
		}
	}
	*settings = all;
	*count = n;
	return 0;
}
