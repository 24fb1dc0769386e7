/* The shipped tables, and copies of them with another file in the place of one. */
#pragma once
#include "support.h"

#include "base/sys/fs.h"
#include "core/code/code.h"
#include "core/tables/tables.h"

static inline const struct tables *shipped_tables(struct arena *a)
{
	const struct tables *t = NULL;
	struct err e = {0};
	assert_ok(tables_load(PROFILES_DIR, a, &t, &e), &e);
	return t;
}

static inline const struct isa_rules *shipped_rules(struct arena *a)
{
	const struct isa_rules *r = NULL;
	struct err e = {0};
	assert_ok(isa_rules_new(shipped_tables(a), a, &r, &e), &e);
	return r;
}

/* Loads a copy, below the test's directory, in which the file holds `text`. */
static inline int load_changed(const char *file, const char *text, struct arena *a,
			       const struct tables **ret, struct err *e)
{
	test_dir();
	const char *dir = arena_strdup(a, test_path("profiles"));
	assert_ok(fs_copy_tree(PROFILES_DIR, dir, e), e);
	test_write(arena_printf(a, "%s/%s", dir, file), text);
	return tables_load(dir, a, ret, e);
}
