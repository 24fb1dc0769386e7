#include "core/wheel/application.h"

#include "base/sys/fs.h"
#include "base/yaml/yaml.h"
#include "core/tables/gpu_runs.h"
#include "core/wheel/dist.h"

#define TABLE "bundles.yaml"
#define PINS "bundles"

/* clang-format off */
ROW(application_part, struct application_part,
	NEED(struct application_part, wheel),
	MAY(struct application_part, python),
	LIST(struct application_part, requires),
	LIST(struct application_part, gpus),
	LIST(struct application_part, platforms, .words = "x86_64-linux aarch64-linux"),
	FLAG(struct application_part, optional),
	MAY(struct application_part, why));
ROW(application, struct application_row,
	NEED(struct application_row, name),
	NEED(struct application_row, version),
	NEED(struct application_row, source),
	MAY(struct application_row, note),
	NEED_ROWS(struct application_row, parts, application_part));
PLAIN(application_file, struct application_file,
	NEED_ROWS(struct application_file, applications, application));
/* clang-format on */

static int bad(const struct application_file *f, unsigned line, const char *what, const char *text,
	       struct err *e)
{
	return err_set(e, ERR_CONFIG, "%s:%u: %s: '%s'", f->path, line, what, text);
}

static const struct application_part *part_of(const struct application_row *row, const char *name,
					      size_t count, struct arena *a)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(wheel_normalize(row->parts[i].name, a), name) == 0)
			return &row->parts[i];
	return NULL;
}

static int check_requires(const struct application_file *f, const struct application_row *row,
			  const struct application_part *p, struct arena *a, struct err *e)
{
	for (unsigned i = 0; i < p->requires_count; i++) {
		struct requirement r;
		struct err why = {0};
		if (requirement_parse(p->requires[i], a, &r, &why) < 0)
			return bad(f, p->line, why.msg, p->requires[i], e);
		if (!part_of(row, r.name, row->parts_count, a))
			return bad(f, p->line, "no part meets the requirement", p->requires[i], e);
	}

	for (unsigned i = 0; i < p->gpus_count; i++)
		if (!gpu_code_parse(p->gpus[i]).number)
			return bad(f, p->line, "not a GPU target", p->gpus[i], e);
	if (*p->python && specifier_check(p->python, a, ERR_IGNORED) < 0)
		return bad(f, p->line, "not a range of versions", p->python, e);
	return 0;
}

static int check_row(const struct application_file *f, struct application_row *row, struct arena *a,
		     struct err *e)
{
	for (unsigned i = 0; i < row->parts_count; i++) {
		struct application_part *p = &row->parts[i];
		p->name = text_pin(p->wheel, a, &p->version);
		if (!p->version || !wheel_version_key(p->version, a))
			return bad(f, p->line, "not NAME==VERSION", p->wheel, e);
		if (part_of(row, wheel_normalize(p->name, a), i, a))
			return bad(f, p->line, "two parts are both", p->name, e);
	}

	const char *own = arena_printf(a, "%s==%s", row->name, row->version);
	if (strcmp(row->parts[0].wheel, own) != 0)
		return bad(f, row->line, "the first part is not the application", own, e);
	if (!path_is_safe_relative(row->name) || strchr(row->name, '/'))
		return bad(f, row->line, "not a name", row->name, e);
	for (unsigned i = 0; i < row->parts_count; i++)
		if (check_requires(f, row, &row->parts[i], a, e) < 0)
			return -1;
	return 0;
}

int applications_load(const char *profiles, struct arena *a, struct application_file *ret,
		      struct err *e)
{
	struct application_file f = {.path = path_join(a, profiles, TABLE)};

	if (!fs_exists(TRUSTED, f.path)) {
		*ret = f;
		return 0;
	}

	if (yaml_load(f.path, &application_file_schema, a, &f, NULL, e) < 0)
		return -1;
	for (unsigned i = 0; i < f.applications_count; i++) {
		struct application_row *row = &f.applications[i];
		for (unsigned k = 0; k < i; k++)
			if (strcmp(f.applications[k].name, row->name) == 0 &&
			    strcmp(f.applications[k].version, row->version) == 0)
				return bad(&f, row->line, "listed twice", row->parts[0].wheel, e);
		if (check_row(&f, row, a, e) < 0)
			return -1;
	}

	*ret = f;
	return 0;
}

int applications_find(const struct application_file *f, const char *asked, struct arena *a,
		      const struct application_row **ret, struct err *e)
{
	const char *version, *name = text_pin(asked, a, &version);
	const struct application_row *newest = NULL;
	struct strlist names = {0}, versions = {0};

	for (unsigned i = 0; i < f->applications_count; i++) {
		const struct application_row *row = &f->applications[i];
		strlist_once(&names, a, row->name);
		if (strcmp(wheel_normalize(row->name, a), wheel_normalize(name, a)) != 0)
			continue;
		strlist_ref(&versions, a, row->version);
		if (version && !wheel_same_version(row->version, version, a))
			continue;
		if (!newest || pep440_cmp(row->version, newest->version, a) > 0)
			newest = row;
	}

	*ret = newest;
	if (newest)
		return 0;
	const struct strlist *known = versions.count ? &versions : &names;
	const char *word = versions.count ? version : name;
	if (versions.count)
		err_set(e, ERR_USAGE, "no bundle of %s %s is in the tables", name, version);
	else
		err_set(e, ERR_USAGE, "unknown application '%s'", name);
	return suggest_known(e, suggest_nearest(word, known->items, known->count), known);
}

int application_pins(const char *profiles, const struct application_row *row, struct arena *a,
		     struct official *ret, struct err *e)
{
	const char *dir = path_join(a, profiles, PINS);
	const char *path = path_join(a, dir, arena_printf(a, "%s-%s", row->name, row->version));

	if (official_read_file(path, a, ret, e) < 0)
		return -1;
	for (unsigned i = 0; i < row->parts_count; i++) {
		const struct application_part *p = &row->parts[i];
		bool any = false;
		for (size_t k = 0; k < ret->count && !any; k++)
			any = strcmp(wheel_normalize(ret->wheels[k].name.dist, a),
				     wheel_normalize(p->name, a)) == 0 &&
			      wheel_same_version(ret->wheels[k].name.version, p->version, a);
		if (!any)
			return err_set(e, ERR_CONFIG, "'%s' has no wheel of %s", path, p->wheel);
	}

	return 0;
}

/* ---- one consistent answer ---- */

static bool is_needed(const struct application_query *q, unsigned i)
{
	const struct application_part *p = &q->row->parts[i];

	return !(q->off && q->off[i]) &&
	       strings_allow(p->platforms, p->platforms_count, q->platform);
}

static const char *title_of(const struct application_part *p, struct arena *a)
{
	return arena_printf(a, "%s %s", p->name, p->version);
}

static int check_python(const struct application_query *q, const struct application_part *p,
			struct arena *a, struct err *e)
{
	enum wheel_python_fit fit = WHEEL_PYTHON_ALWAYS;

	if (*p->python && wheel_requires_python(p->python, q->python, a, &fit, e) < 0)
		return -1;
	if (fit != WHEEL_PYTHON_NEVER)
		return 0;
	err_set(e, ERR_POLICY, "%s requires Python %s, not %s", title_of(p, a), p->python,
		q->python);
	return err_hint(e, "use another --python");
}

/* As official_find, but what is not there is a conflict, not a mistake in a table. */
static int find_wheel(const struct application_query *q, const struct application_part *p,
		      struct arena *a, const struct official_wheel **ret, struct err *e)
{
	struct err why = {0};

	if (official_find(q->pins, wheel_normalize(p->name, a), q->python, q->platform, q->cuda, a,
			  ret, &why) == 0)
		return 0;
	err_set(e, ERR_POLICY, "%s has no wheel for Python %s, %s%s%s", title_of(p, a), q->python,
		q->platform, q->cuda ? ", CUDA " : "", q->cuda ? q->cuda : "");
	return err_hint(e, "%s", why.hint);
}

/* The first GPU for which a part has no code; NULL: none. */
static const char *lacking(const struct application_query *q, const struct application_part *p)
{
	for (size_t i = 0; i < q->gpus.count; i++) {
		bool runs = false;
		for (unsigned k = 0; k < p->gpus_count && !runs; k++)
			runs = gpu_target_runs(q->tables, p->gpus[k], q->gpus.items[i], "") !=
			       GPU_RUNS_NO;
		if (!runs)
			return q->gpus.items[i];
	}

	return NULL;
}

bool application_cuts(const struct application_query *q, const struct application_part *p,
		      const struct official_wheel *w)
{
	return strcmp(w->name.platform, "any") != 0 && p->gpus_count && !lacking(q, p);
}

static int check_gpus(const struct application_query *q, const struct application_part *p,
		      struct arena *a, struct err *e)
{
	const char *gpu = p->gpus_count && !p->optional ? lacking(q, p) : NULL;
	struct strlist have = {0};

	if (!gpu)
		return 0;
	for (unsigned k = 0; k < p->gpus_count; k++)
		strlist_addf(&have, a, "sm%s", p->gpus[k]);
	err_set(e, ERR_POLICY, "%s has no GPU code for compute capability %s", title_of(p, a), gpu);
	return err_hint(e, "it has code for %s", strlist_join(&have, a, ", "));
}

static struct dist dist_of_part(const struct application_query *q, const struct application_part *p,
				struct arena *a)
{
	struct dist d = {.title = title_of(p, a),
			 .name = wheel_normalize(p->name, a),
			 .version = p->version};

	strlist_ref(&d.scope.pythons, a, q->python);
	strlist_ref(&d.scope.platforms, a, q->platform);
	d.requires = arena_array(a, p->requires_count + 1, sizeof(*d.requires));
	for (unsigned i = 0; i < p->requires_count; i++)
		if (requirement_parse(p->requires[i], a, &d.requires[d.requires_count],
				      ERR_IGNORED) == 0)
			d.requires_count++;
	return d;
}

/* That what each part requires of another is what the row has. */
static int check_pairs(const struct application_query *q, struct arena *a, struct err *e)
{
	const struct application_row *row = q->row;
	struct dist *all = arena_array(a, row->parts_count, sizeof(*all));

	for (unsigned i = 0; i < row->parts_count; i++)
		all[i] = dist_of_part(q, &row->parts[i], a);
	for (unsigned i = 0; i < row->parts_count; i++)
		for (unsigned k = 0; k < row->parts_count; k++) {
			const struct requirement *r =
				is_needed(q, i) && is_needed(q, k)
					? dist_refuses(&all[i], &all[k], &all[i].scope, a)
					: NULL;
			if (r)
				return err_set(e, ERR_POLICY, "%s requires '%s', not %s",
					       all[i].title, r->line, all[k].title);
		}
	return 0;
}

int application_choose(const struct application_query *q, struct arena *a,
		       const struct official_wheel ***ret, struct err *e)
{
	const struct application_row *row = q->row;
	const struct official_wheel **chosen =
		arena_array(a, row->parts_count, sizeof(struct official_wheel *));

	for (unsigned i = 0; i < row->parts_count; i++)
		if (is_needed(q, i) && check_python(q, &row->parts[i], a, e) < 0)
			return -1;
	for (unsigned i = 0; i < row->parts_count; i++)
		if (is_needed(q, i) && find_wheel(q, &row->parts[i], a, &chosen[i], e) < 0)
			return -1;
	for (unsigned i = 0; i < row->parts_count; i++)
		if (chosen[i] && check_gpus(q, &row->parts[i], a, e) < 0)
			return -1;
	if (check_pairs(q, a, e) < 0)
		return -1;
	*ret = chosen;
	return 0;
}

void application_pythons(const struct application_query *q, struct arena *a, struct strlist *ret)
{
	enum { FIRST = 8, LAST = 30 };

	for (unsigned minor = FIRST; minor <= LAST; minor++) {
		struct application_query one = *q;
		const struct official_wheel **chosen;
		one.python = arena_printf(a, "3.%u", minor);
		if (application_choose(&one, a, &chosen, ERR_IGNORED) == 0)
			strlist_ref(ret, a, one.python);
	}
}
