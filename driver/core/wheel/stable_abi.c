#include "core/wheel/stable_abi.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/yaml/schema.h"
#include "core/tables/tables_schema.h"

struct version_row {
	const char *python;
	const char **names;
	unsigned names_count;
};

struct stable_file {
	struct version_row *versions;
	unsigned versions_count;
};

struct stable_abi {
	struct stable_symbol {
		const char *name;
		unsigned since;
	} * symbols; /* by name */
	size_t count;
};

ROW(version, struct version_row, NEED(struct version_row, python), NEED_LIST(struct version_row, names));
FIELDS(file, NEED_ROWS(struct stable_file, versions, &version_entry));
static const cyaml_schema_value_t file_schema = TOP(struct stable_file, file_fields);

static int by_name(const void *a, const void *b)
{
	const struct stable_symbol *x = a, *y = b;
	return strcmp(x->name, y->name);
}

int stable_abi_load(const char *profiles_dir, struct arena *a, const struct stable_abi **ret, struct err *e)
{
	const char *path = path_join(a, profiles_dir, "stable_abi.yaml");
	struct stable_abi *s = arena_alloc(a, sizeof(*s));
	struct yaml_lines *lines;
	void *data;
	size_t total = 0;
	if (yaml_load(path, &file_schema, a, &data, &lines, e) < 0)
		return -1;
	schema_settle(&file_schema, data, lines);
	const struct stable_file *f = data;
	for (unsigned i = 0; i < f->versions_count; i++)
		total += f->versions[i].names_count;
	s->symbols = arena_array(a, total, sizeof(*s->symbols));
	for (unsigned i = 0; i < f->versions_count; i++) {
		const char *python = f->versions[i].python;
		unsigned since = strncmp(python, "3.", 2) == 0 ? (unsigned)strtoul(python + 2, NULL, 10) : 0;
		if (!since)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a version of Python 3", path,
				       yaml_line(lines, "versions/%u", i), python);
		for (unsigned k = 0; k < f->versions[i].names_count; k++)
			s->symbols[s->count++] = (struct stable_symbol){f->versions[i].names[k], since};
	}
	if (s->count)
		qsort(s->symbols, s->count, sizeof(*s->symbols), by_name);
	*ret = s;
	return 0;
}

unsigned stable_abi_since(const struct stable_abi *s, const char *symbol)
{
	const struct stable_symbol key = {symbol, 0}, *found = NULL;
	if (s->count)
		found = bsearch(&key, s->symbols, s->count, sizeof(key), by_name);
	return found ? found->since : 0;
}
