#include "step/python/pyenv.h"

#include "core/wheel/wheel.h"

#define MAX_DEPTH 32

struct reader {
	const char *at;
	const char *python;
	struct arena *a;
	unsigned depth;
	bool bad; /* what was read is not a marker */
};

static void skip(struct reader *r)
{
	r->at += strspn(r->at, " \t");
}

static bool take_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	skip(r);
	if (strncmp(r->at, word, n) != 0 || !strchr(" \t('\"", r->at[n]))
		return false;
	r->at += n;
	return true;
}

/* A name or a quoted text. */
static const char *operand(struct reader *r, bool *ret_quoted)
{
	skip(r);
	char end = *r->at;
	*ret_quoted = end == '\'' || end == '"';
	if (*ret_quoted) {
		const char *from = r->at + 1, *to = strchr(from, end);
		r->bad |= !to;
		r->at = to ? to + 1 : from + strlen(from);
		return arena_strndup(r->a, from, (size_t)((to ? to : r->at) - from));
	}
	size_t n = strspn(r->at, "abcdefghijklmnopqrstuvwxyz_.");
	r->bad |= n == 0;
	r->at += n;
	return arena_strndup(r->a, r->at - n, n);
}

static bool any_of(struct reader *r);

static bool term(struct reader *r)
{
	skip(r);
	if (*r->at != '(') {
		bool quoted, value_quoted, in = true;
		const char *name = operand(r, &quoted);
		skip(r);
		size_t n = strspn(r->at, "<>=!~");
		const char *op = arena_strndup(r->a, r->at, n);
		r->at += n;
		if (n == 0 && !take_word(r, "in") && !(take_word(r, "not") && take_word(r, "in")))
			r->bad = true;
		const char *value = operand(r, &value_quoted);
		if (r->bad || n == 0 || quoted || !value_quoted ||
		    (strcmp(name, "python_version") != 0 && strcmp(name, "python_full_version") != 0))
			return true;
		return version_in(r->python, arena_printf(r->a, "%s%s", op, value), &in, ERR_IGNORED) < 0 || in;
	}
	if (++r->depth > MAX_DEPTH) {
		r->bad = true;
		return true;
	}
	r->at++;
	bool holds = any_of(r);
	skip(r);
	if (*r->at == ')')
		r->at++;
	else
		r->bad = true;
	r->depth--;
	return holds;
}

static bool all_of(struct reader *r)
{
	bool holds = term(r);
	while (!r->bad && take_word(r, "and"))
		holds &= term(r);
	return holds;
}

static bool any_of(struct reader *r)
{
	bool holds = all_of(r);
	while (!r->bad && take_word(r, "or"))
		holds |= all_of(r);
	return holds;
}

bool marker_holds(const char *marker, const char *python)
{
	AUTO_ARENA struct arena a = {0};
	struct reader r = {.at = marker, .python = python, .a = &a};
	skip(&r);
	if (!*r.at)
		return true;
	bool holds = any_of(&r);
	skip(&r);
	return holds || r.bad || *r.at;
}

bool locked_has(const struct locked_list *l, const char *python, const char *requirement, struct arena *a)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	const char *name = wheel_requires_name(requirement, a), *range = requirement + strspn(requirement, letters);
	for (size_t i = 0; i < l->count; i++) {
		const struct locked *k = &l->items[i];
		bool in = false;
		if (strcmp(wheel_requires_name(k->name, a), name) == 0 && marker_holds(k->marker, python) &&
		    version_in(k->version, range, &in, ERR_IGNORED) == 0 && in)
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
	return *row->module && !*row->toggle && (!*row->package || strcmp(row->package, l->q->package) == 0) &&
	       (!*row->release || strcmp(row->release, l->q->release->name) == 0);
}

static void find_missing(const struct look *l, const char *python, struct strlist *ret)
{
	const struct tables *t = l->q->tables;
	for (unsigned i = 0; i < l->row->python_requires_count; i++) {
		const char *text = l->row->python_requires[i];
		if (!locked_has(&l->list, python, text, l->a))
			strlist_ref(ret, l->a, text);
	}
	for (unsigned i = 0; i < t->needs_count; i++) {
		const struct need_row *row = &t->needs[i];
		if (wants(l, row) &&
		    !locked_has(&l->list, python, wheel_requires_name(tables_need_wheel(row), l->a), l->a))
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
	const char *what = *file ? arena_printf(l->a, "the locked list '%s' of %s has no %s for it", file, q->package,
						strlist_join(missing, l->a, ", "))
				 : arena_printf(l->a, "%s has no locked list of what it needs (%s)", q->package,
						strlist_join(missing, l->a, ", "));
	err_set(e, ERR_POLICY, "release %s cannot be built for Python %s: '%s' brings no packages, and %s",
		q->release->name, q->python, q->part, what);
	return err_hint(e, "%s%s; --root DIR is a root of your own",
			good ? "it has what is needed for Python " : "it has what is needed for no Python",
			good ? good : "");
}

int covers_check(const struct covers_request *q, struct arena *a, struct err *e)
{
	struct look l = {.q = q, .row = tables_package(q->release, q->package), .a = a};
	struct strlist missing = {0};
	if (!l.row)
		return 0;
	const char *const files[] = {l.row->requirements, l.row->tried_with};
	if (locked_lists_read(path_join(a, q->tables->dir, "requirements"), files, ARRAY_LEN(files), a, &l.list, e) < 0)
		return -1;
	find_missing(&l, q->python, &missing);
	return missing.count ? refuse(&l, &missing, e) : 0;
}
