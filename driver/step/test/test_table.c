#include "step/test/test.h"

#include <fnmatch.h>

#include "base/sys/fs.h"
#include "base/yaml/yaml.h"

#define F struct test_row
ROW(file, F, NEED(F, file), NEED_LIST(F, levels), LIST(F, select), NUMBER(F, sample),
    NUMBER(F, parts), NUMBER(F, limit), NUMBER(F, minutes));
#define E struct test_expected_row
PLAIN(expected, E, NEED(E, test), LIST(E, wheels), NEED(E, reason), NEED(E, source));
#define N struct test_need
PLAIN(need, N, NEED(N, module), NEED(N, debian));
#define P struct test_package
PLAIN(package, P, NEED(P, package), NEED(P, dir), ROWS(P, needs, need), NEED_ROWS(P, files, file),
      ROWS(P, expected, expected));
#define T struct test_table
PLAIN(table, T, NEED(T, sources), MAY(T, world), NEED_ROWS(T, packages, package));

static const char *const levels[] = {"smoke", "core"};

const char *test_table_path(const char *profiles_dir, const char *release, struct arena *a)
{
	return path_join(a, profiles_dir, arena_printf(a, "tests/%s.yaml", release));
}

static bool share_level(const struct test_row *x, const struct test_row *y)
{
	for (unsigned i = 0; i < x->levels_count; i++)
		if (strings_contain(y->levels, y->levels_count, x->levels[i]))
			return true;
	return false;
}

static int check_files(const char *path, const struct test_package *p, struct err *e)
{
	for (unsigned i = 0; i < p->files_count; i++) {
		const struct test_row *r = &p->files[i];
		if (!path_is_safe_relative(r->file) || !path_has_suffix(r->file, ".py"))
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is not a file of tests", path,
				       r->line, r->file);
		for (unsigned k = 0; k < r->levels_count; k++)
			if (!strings_contain(levels, ARRAY_LEN(levels), r->levels[k]))
				return err_set(e, ERR_CONFIG, "%s:%u: unknown level '%s'", path,
					       r->line, r->levels[k]);
		for (unsigned k = 0; k < i; k++)
			if (strcmp(p->files[k].file, r->file) == 0 && share_level(&p->files[k], r))
				return err_set(e, ERR_CONFIG, "%s:%u: '%s' is in the level twice",
					       path, r->line, r->file);
	}

	return 0;
}

static int load(const char *path, struct arena *a, struct test_table *ret, struct err *e)
{
	if (yaml_load(path, &table_schema, a, ret, NULL, e) < 0)
		return -1;
	for (unsigned i = 0; i < ret->packages_count; i++)
		if (check_files(path, &ret->packages[i], e) < 0)
			return -1;
	return 0;
}

int test_table_world(const char *profiles_dir, const char *release, struct arena *a,
		     const char **ret, struct err *e)
{
	const char *path = test_table_path(profiles_dir, release, a);
	struct test_table *t = arena_alloc(a, sizeof(*t));

	*ret = "";
	if (!fs_exists(path_dir(a, path), path_base(path)))
		return 0;
	if (load(path, a, t, e) < 0)
		return -1;
	*ret = t->world ? t->world : "";
	return 0;
}

int test_table_load(const char *profiles_dir, const char *release, const char *package,
		    const char *wheel, struct arena *a, const struct test_package **ret,
		    struct err *e)
{
	const char *path = test_table_path(profiles_dir, release, a);
	struct test_table *t = arena_alloc(a, sizeof(*t));

	if (!fs_exists(path_dir(a, path), path_base(path))) {
		err_set(e, ERR_POLICY, "no table says which tests of release '%s' to run", release);
		return err_hint(e, "it would be '%s'", path);
	}

	if (load(path, a, t, e) < 0)
		return -1;
	for (unsigned i = 0; i < t->packages_count; i++) {
		if (strcmp(t->packages[i].package, package) != 0)
			continue;
		unsigned kept = 0;
		for (unsigned n = 0; n < t->packages[i].expected_count; n++) {
			const struct test_expected_row *r = &t->packages[i].expected[n];
			bool of_it = !r->wheels_count;
			for (unsigned k = 0; k < r->wheels_count; k++)
				of_it |= fnmatch(r->wheels[k], wheel, 0) == 0;
			if (of_it)
				t->packages[i].expected[kept++] = *r;
		}

		t->packages[i].expected_count = kept;
		*ret = &t->packages[i];
		return 0;
	}

	return err_set(e, ERR_POLICY, "'%s' has no tests of %s", path, package);
}

bool test_row_in(const struct test_row *r, const char *level)
{
	return strcmp(level, "full") == 0 || strings_contain(r->levels, r->levels_count, level);
}

const struct test_expected_row *test_expected(const struct test_package *p, const char *test)
{
	for (unsigned i = 0; i < p->expected_count; i++)
		if (fnmatch(p->expected[i].test, test, 0) == 0)
			return &p->expected[i];
	return NULL;
}
