#include "step/python/pyenv.h"

#include "core/wheel/requirement.h"

bool marker_holds(const char *marker, const char *python)
{
	AUTO_ARENA struct arena a = {0};
	const struct marker_env env = {.python = python};
	return marker_eval(marker, &env, &a) != HOLDS_NEVER;
}

bool locked_has(const struct locked_list *l, const char *python, const char *requirement,
		struct arena *a)
{
	struct requirement r;

	if (requirement_parse(requirement, a, &r, ERR_IGNORED) < 0)
		return false;
	for (size_t i = 0; i < l->count; i++) {
		const struct locked *k = &l->items[i];
		if (strcmp(wheel_normalize(k->name, a), r.name) == 0 &&
		    marker_holds(k->marker, python) && specifier_takes(r.specifier, k->version, a))
			return true;
	}

	return false;
}

struct look {
	const struct covers_request *q;
	const struct package_row *row;
	struct locked_list list;
	struct arena *a;
};

static bool wants(const struct look *l, const struct need_row *row)
{
	return *row->module && !*row->toggle &&
	       (!*row->package || strcmp(row->package, l->q->package) == 0) &&
	       (!*row->release || strcmp(row->release, l->q->release->name) == 0);
}

static void find_missing(const struct look *l, const char *python, struct strlist *ret)
{
	const struct tables *t = l->q->tables;

	/* What else an extension asks for is locked when it is built. */
	const bool later = l->row->name && !requirements_is_lock(l->row->requirements);

	for (unsigned i = 0; i < l->row->python_requires_count; i++) {
		const char *text = l->row->python_requires[i];
		if (later &&
		    !strings_contain(t->extension_requires, t->extension_requires_count, text))
			continue;
		if (!locked_has(&l->list, python, text, l->a))
			strlist_ref(ret, l->a, text);
	}

	for (unsigned i = 0; i < t->needs_count; i++) {
		const struct need_row *row = &t->needs[i];
		if (wants(l, row) &&
		    !locked_has(&l->list, python, wheel_requires_name(tables_need_wheel(row), l->a),
				l->a))
			strlist_ref(ret, l->a, tables_need_wheel(row));
	}
}

/* Those of the release for which nothing is missing. */
static const char *served(const struct look *l)
{
	const struct release_row *r = l->q->release;
	struct strlist good = {0};

	for (unsigned i = 0; i < r->pythons_count; i++) {
		struct strlist missing = {0};
		find_missing(l, r->pythons[i], &missing);
		if (strcmp(r->pythons[i], l->q->own) == 0 || missing.count == 0)
			strlist_ref(&good, l->a, r->pythons[i]);
	}

	return good.count ? strlist_join(&good, l->a, ", ") : NULL;
}

static int refuse(const struct look *l, const struct strlist *missing, struct err *e)
{
	const struct covers_request *q = l->q;
	const char *good = served(l), *file = l->row->requirements;
	const char *what = *file ? arena_printf(l->a, "the locked list '%s' of %s has no %s for it",
						file, q->package, strlist_join(missing, l->a, ", "))
				 : arena_printf(l->a, "%s has no locked list of what it needs (%s)",
						q->package, strlist_join(missing, l->a, ", "));

	err_set(e, ERR_POLICY,
		"release %s cannot be built for Python %s: '%s' brings no packages, and %s",
		q->release->name, q->python, q->part, what);
	return err_hint(e, "%s%s; --root DIR is a root of your own",
			good ? "it has what is needed for Python "
			     : "it has what is needed for no Python",
			good ? good : "");
}

int covers_check(const struct covers_request *q, struct arena *a, struct err *e)
{
	struct look l = {.q = q, .row = tables_package(q->release, q->package), .a = a};
	struct strlist missing = {0};

	if (!l.row)
		return 0;
	const char *const files[] = {l.row->requirements, l.row->tried_with};
	if (locked_lists_read(path_join(a, q->tables->dir, "requirements"), files, ARRAY_LEN(files),
			      a, &l.list, e) < 0)
		return -1;
	find_missing(&l, q->python, &missing);
	return missing.count ? refuse(&l, &missing, e) : 0;
}
