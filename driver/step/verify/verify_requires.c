/* What METADATA requires: whether installers take it, whether the wheel's own
 * tags and label agree with it, and whether what it is installed with does. */
#include <strings.h>

#include "core/plan/cuda_libraries.h"
#include "step/verify/verify_parts.h"

struct requiring {
	struct verifying *v;
	const char *file; /* METADATA */
	struct dist *self;
};

static void tell(const struct requiring *c, enum finding_level level, const char *text)
{
	verify_add(c->v, level, RULE_REQUIRES, c->file, "%s", text);
}

/* ---- each by itself ---- */

/* A file is there on the machine that the wheel was
 * made on; other addresses no package index takes. */
static void check_url(const struct requiring *c, const struct requirement *r)
{
	const bool file = strncasecmp(r->url, "file:", 5) == 0 || !strstr(r->url, "://");

	if (*r->url)
		verify_add(c->v, file ? FINDING_ERROR : FINDING_WARNING, RULE_METADATA, c->file,
			   "has the Requires-Dist '%s', which %s", r->line,
			   file ? "names a file of the machine that it was made on"
				: "names an address: package indexes refuse it");
}

/* Where it applies. What it brings is more than its name. */
static void sort_requirement(const struct requiring *c, const struct requirement *r)
{
	struct verifying *v = c->v;
	const bool plain = requirement_holds(r, &c->self->scope, "", v->a) != HOLDS_NEVER;
	const bool extra = requirement_holds(r, &c->self->scope, NULL, v->a) != HOLDS_NEVER;
	struct strlist *to = plain ? &v->brought : extra ? &v->optional : &v->off;

	if (v->q->tables)
		cuda_brings(v->q->tables, r, v->a, to);
	else
		strlist_once(to, v->a, r->name);
	if (!plain)
		return;
	strlist_once(&v->requires, v->a, r->name);
	verify_requires_cuda(v, r);
	if (!*v->report.requires_torch && strcmp(r->name, "torch") == 0)
		v->report.requires_torch = r->line;
}

static void read_requirements(const struct requiring *c, const struct wheel_headers *h)
{
	struct verifying *v = c->v;
	struct strlist lines = {0};

	wheel_headers_all(h, "Requires-Dist", v->a, &lines);
	for (size_t i = 0; i < lines.count; i++) {
		struct requirement r;
		struct err why = {0};
		if (requirement_parse(lines.items[i], v->a, &r, &why) < 0) {
			verify_add(v, FINDING_ERROR, RULE_METADATA, c->file,
				   "has the Requires-Dist '%s', which pip refuses: %s",
				   lines.items[i], why.msg);
			continue;
		}

		check_url(c, &r);
		sort_requirement(c, &r);
	}

	const char *expected = v->q->expect_requires;
	if (expected && !strlist_contains(&lines, expected))
		verify_add(v, FINDING_ERROR, RULE_METADATA, c->file, "does not require '%s'",
			   expected);
}

/* ---- with each other ---- */

/* All that it requires of a distribution for one Python and platform, as one specifier. */
static const char *specifier_for(const struct requiring *c, const char *name,
				 const struct wheel_scope *one, struct strlist *ret_lines)
{
	struct arena *a = c->v->a;
	struct strlist clauses = {0};

	for (size_t i = 0; i < c->self->requires_count; i++) {
		const struct requirement *r = &c->self->requires[i];
		if (strcmp(r->name, name) != 0 || *r->url || !*r->specifier ||
		    requirement_holds(r, one, "", a) != HOLDS_ALWAYS)
			continue;
		strlist_once(ret_lines, a, r->line);
		strlist_ref(&clauses, a, r->specifier);
	}

	return strlist_join(&clauses, a, ",");
}

/* The lines that no version meets for a Python and platform; NULL: there are none. */
static const char *refuted(const struct requiring *c, const char *name,
			   const struct wheel_scope *one)
{
	struct strlist lines = {0};
	const char *all = specifier_for(c, name, one, &lines);

	return specifier_takes_some(all, c->v->a) ? NULL : strlist_join(&lines, c->v->a, "' and '");
}

/* "torch>=2.5" and "torch<2.4": installers find no version. */
static void check_contradictions(const struct requiring *c)
{
	const struct wheel_scope *s = &c->self->scope;
	const size_t pythons = s->pythons.count ? s->pythons.count : 1;
	struct strlist names = {0};

	for (size_t i = 0; i < c->self->requires_count; i++)
		strlist_once(&names, c->v->a, c->self->requires[i].name);
	for (size_t i = 0; i < names.count; i++) {
		const char *lines = NULL;
		for (size_t k = 0; k < pythons && !lines; k++) {
			struct wheel_scope one = {.platforms = s->platforms};
			if (s->pythons.count)
				strlist_ref(&one.pythons, c->v->a, s->pythons.items[k]);
			lines = refuted(c, names.items[i], &one);
		}

		if (lines)
			verify_add(c->v, FINDING_ERROR, RULE_METADATA, c->file,
				   "has the Requires-Dist '%s', which no version of '%s' meets: "
				   "installers refuse the wheel",
				   lines, wheel_index_name(names.items[i], c->v->a));
	}
}

/* ---- with its own tags and label ---- */

/* For Python 2, too, which is no part of a scope. */
static bool takes_python2(const struct verifying *v)
{
	const struct wheel_name *n = &v->report.name;
	struct strlist parts = {0};
	enum wheel_python_fit fit;
	bool tagged = false;

	strlist_split(&parts, v->a, n->python, ".");
	for (size_t i = 0; i < parts.count; i++)
		tagged |= strncmp(parts.items[i], "py2", 3) == 0 ||
			  strncmp(parts.items[i], "cp2", 3) == 0;
	return tagged &&
	       wheel_requires_python(v->requires_python, "2.7", v->a, &fit, ERR_IGNORED) == 0 &&
	       fit != WHEEL_PYTHON_NEVER;
}

/* A wheel for certain Pythons may exclude none of them;
 * one for a Python and later ones may exclude some. */
static void check_python(const struct requiring *c)
{
	struct verifying *v = c->v;
	const struct wheel_name *n = &v->report.name;
	struct wheel_scope all;
	struct strlist excluded = {0};
	bool newer;

	if (!v->requires_python || !v->named)
		return;
	wheel_scope_of(n, NULL, v->a, &all);
	(void)wheel_name_pythons(n, v->a, &newer);
	for (size_t i = 0; i < all.pythons.count; i++)
		if (!strlist_contains(&c->self->scope.pythons, all.pythons.items[i]))
			strlist_ref(&excluded, v->a, all.pythons.items[i]);
	const bool none =
		all.pythons.count && excluded.count == all.pythons.count && !takes_python2(v);
	if (none || (excluded.count && !newer))
		verify_add(v, none ? FINDING_ERROR : FINDING_WARNING, RULE_METADATA, c->file,
			   "has the Requires-Python '%s', which excludes %s of '%s-%s'%s",
			   v->requires_python,
			   none ? "all Pythons" : strlist_join(&excluded, v->a, ", "), n->python,
			   n->abi, none ? ": installers refuse the wheel" : "");
}

/* "2.6" in the label beside "torch==2.4"; "cpu" beside
 * "torch==2.6.0+cu124" and "nvidia-cublas-cu12". */
static void check_label(const struct requiring *c)
{
	struct verifying *v = c->v;
	const char *plus = strchr(c->self->version, '+'), *label = plus ? plus + 1 : "";
	const char *series = label_torch(label, v->a), *own = label_accelerator(label, v->a);

	for (size_t i = 0; i < c->self->requires_count; i++) {
		const struct requirement *r = &c->self->requires[i];
		if (requirement_holds(r, &c->self->scope, "", v->a) == HOLDS_NEVER)
			continue;
		const bool torch = strcmp(r->name, "torch") == 0;
		if (torch && series && !*r->url &&
		    !specifier_takes_series(r->specifier, series, v->a))
			tell(c, v->ours ? FINDING_ERROR : FINDING_WARNING,
			     arena_printf(v->a, "requires '%s', but its label '%s' is for torch %s",
					  r->line, label, series));
		if (own && !requirement_serves(r, own, v->a))
			tell(c, FINDING_WARNING,
			     arena_printf(v->a, "requires '%s', but its label '%s' is for %s",
					  r->line, label, own));
	}
}

/* Package indexes for everybody take no wheels with labels. */
static void check_pins(const struct requiring *c)
{
	struct verifying *v = c->v;

	for (size_t i = 0; i < c->self->requires_count && !v->ours; i++) {
		const struct requirement *r = &c->self->requires[i];
		const char *pin = specifier_pin(r->specifier, v->a);
		if (pin && strchr(pin, '+') && !strlist_contains(&v->q->given, r->name) &&
		    requirement_holds(r, &c->self->scope, "", v->a) != HOLDS_NEVER)
			tell(c, FINDING_NOTE,
			     arena_printf(v->a,
					  "requires '%s': only an index of its own has a version "
					  "with a label",
					  r->line));
	}
}

/* ---- with what it is installed with ---- */

static void check_pair(const struct requiring *c, const struct dist *other)
{
	struct verifying *v = c->v;
	const struct wheel_scope *s = &c->self->scope;
	const struct requirement *own = dist_refuses(c->self, other, s, v->a);
	const struct requirement *its = dist_refuses(other, c->self, s, v->a);
	const char *mixed = dist_mixed(c->self, other, s, v->a);

	if (strcmp(c->self->name, other->name) == 0)
		return;
	if (own)
		tell(c, FINDING_ERROR,
		     arena_printf(v->a, "requires '%s', not %s", own->line, other->title));
	if (its)
		tell(c, FINDING_ERROR,
		     arena_printf(v->a, "is %s, and %s requires '%s'", c->self->title, other->title,
				  its->line));
	/* Code for the processor alone runs beside a torch that has more. */
	if (mixed) {
		const char *built = dist_accelerator(
			strcmp(c->self->name, "torch") == 0 ? other : c->self, s, v->a);
		tell(c, strcmp(built, "cpu") == 0 ? FINDING_WARNING : FINDING_ERROR, mixed);
	}
}

static bool check_paths(const struct requiring *c, const struct dist *x, const struct dist *y)
{
	size_t count = 0;
	/* two versions, of which one replaces the other */
	const bool same = strcmp(x->name, y->name) == 0;
	const char *path = same ? NULL : dist_shares(x, y, &count);

	if (path)
		verify_add(c->v, FINDING_WARNING, RULE_SHARED, path + strspn(path, "./"),
			   "is in both %s and %s, with other contents: the one installed last has "
			   "it%s",
			   x->title, y->title,
			   count > 1 ? arena_printf(c->v->a, "; it is the first of %zu", count)
				     : "");
	return path != NULL;
}

/* Packages of two CUDA lines, that this wheel and those beside it require, or that are there. */
static void check_lines(const struct requiring *c)
{
	struct verifying *v = c->v;
	struct strlist all = {0};
	const char *clash[2];

	strlist_append(&all, v->a, &v->brought);
	strlist_once(&all, v->a, c->self->name);
	for (size_t i = 0; i < v->q->with_count; i++)
		strlist_once(&all, v->a, v->q->with[i].name);
	if (v->q->tables && cuda_clash(v->q->tables, &all, v->a, clash))
		verify_add(v, FINDING_WARNING, RULE_SHARED, c->file,
			   "'%s' and '%s' are installed together, which own the same files: one "
			   "overwrites the other",
			   clash[0], clash[1]);
}

static void bring(const struct requiring *c, const struct dist *other)
{
	struct verifying *v = c->v;

	for (size_t i = 0; i < other->requires_count && v->q->tables; i++)
		if (requirement_holds(&other->requires[i], &c -> self -> scope, "", v->a) !=
		    HOLDS_NEVER)
			cuda_brings(v->q->tables, &other->requires[i], v -> a, &v -> brought);
}

static void check_others(const struct requiring *c)
{
	const struct verify_request *q = c->v->q;
	bool told = false;

	for (size_t i = 0; i < q->with_count; i++) {
		check_pair(c, &q->with[i]);
		bring(c, &q->with[i]);
		told |= check_paths(c, c->self, &q->with[i]);
		for (size_t k = 0; k < i; k++)
			told |= check_paths(c, &q->with[k], &q->with[i]);
	}

	if (!told)
		check_lines(c);
}

void verify_requires(struct verifying *v, const char *file, const struct wheel_headers *h)
{
	struct dist *self = arena_alloc(v->a, sizeof(*self));
	const struct requiring c = {v, file, self};

	dist_of_headers(h, v->named ? &v->report.name : NULL, v->a, self);
	dist_set_rows(self, v->rows, v->rows_read ? v->rows_count : 0, v->entry_points, v->a);
	read_requirements(&c, h);
	check_contradictions(&c);
	check_python(&c);
	check_label(&c);
	check_pins(&c);
	check_others(&c);
}
