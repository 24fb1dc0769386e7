#include "core/wheel/wheel.h"

#include "base/yaml/yaml.h"

struct version_row {
	const char *python;
	const char **names;
	unsigned names_count;
	unsigned line;
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
PLAIN(file, struct stable_file, NEED_ROWS(struct stable_file, versions, version));

int stable_abi_load(const char *profiles_dir, struct arena *a, const struct stable_abi **ret, struct err *e)
{
	const char *path = path_join(a, profiles_dir, "stable_abi.yaml");
	struct stable_abi *s = arena_alloc(a, sizeof(*s));
	const struct yaml_tree *tree;
	struct stable_file f;
	size_t total = 0;
	if (yaml_load(path, &file_schema, a, &f, &tree, e) < 0)
		return -1;
	for (unsigned i = 0; i < f.versions_count; i++)
		total += f.versions[i].names_count;
	s->symbols = arena_array(a, total, sizeof(*s->symbols));
	for (unsigned i = 0; i < f.versions_count; i++) {
		const struct version_row *row = &f.versions[i];
		unsigned since = strncmp(row->python, "3.", 2) == 0 ? (unsigned)strtoul(row->python + 2, NULL, 10) : 0;
		if (!since)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a version of Python 3", path, row->line,
				       row->python);
		for (unsigned k = 0; k < row->names_count; k++)
			s->symbols[s->count++] = (struct stable_symbol){row->names[k], since};
	}
	array_sort(s->symbols, s->count, sizeof(*s->symbols), text_cmp);
	*ret = s;
	return 0;
}

unsigned stable_abi_since(const struct stable_abi *s, const char *symbol)
{
	const struct stable_symbol *found = text_find(symbol, s->symbols, s->count, sizeof(*found));
	return found ? found->since : 0;
}
