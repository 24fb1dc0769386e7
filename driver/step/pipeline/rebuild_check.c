#include "step/pipeline/pipeline.h"

#include <time.h>

#include "base/sys/json.h"
#include "base/sys/machine.h"

/* What a careless build could let into its bytes. */
#define OTHER_UMASK 077
#define OTHER_ZONE "Pacific/Kiritimati"
#define OTHER_LOCALE "tr_TR.UTF-8"
static const struct kv other_env[] = {{"TZ", OTHER_ZONE}, {"LC_ALL", OTHER_LOCALE}};

struct checking {
	const struct pipeline_request *q;
	const struct pipeline_item *items;
	size_t count;
	const struct run *run;
	struct arena *a;
	/* the one that is built again now */
	const struct selection *target;
	const char *dir; /* of the second build */
	unsigned jobs;
	struct store *to; /* its store */
};

/* ---- the other store ---- */

static int copy_object(const struct checking *c, const char *kind, const char *key, struct err *e)
{
	struct store *from = c->q->store, *to = c->to;
	struct arena *a = c->a;
	struct strlist names = {0};
	const char *dir, *stage, *made;

	if (store_find(from, kind, key, a, &dir, e) < 0)
		return -1;
	if (!dir)
		return 0;
	if (fs_list(TRUSTED, dir, a, &names, e) < 0 || store_stage(to, a, &stage, e) < 0)
		return -1;
	int rc = 0;
	for (size_t i = 0; i < names.count && rc == 0; i++) {
		const char *name = names.items[i], *path = path_join(a, dir, name);
		if (name[0] == '.') /* the store's own */
			continue;
		rc = fs_is_dir(TRUSTED, path)
			     ? fs_copy_tree(path, path_join(a, stage, name), e)
			     : fs_copy(TRUSTED, path, path_join(a, stage, name), e);
	}

	if (rc == 0)
		rc = store_publish(to, kind, key, stage, a, &made, e);
	if (rc < 0)
		store_drop_stage(to, stage);
	return rc;
}

/* Copies the package's sources, an official torch and the downloaded Python packages; everything
 * else is made again. */
static int copy_inputs(const struct checking *c, const struct plan *p, struct err *e)
{
	static const char wheel[] = "sha256:";
	struct store_object *objects;
	size_t count;

	if (strncmp(p->torch, wheel, strlen(wheel)) == 0 &&
	    copy_object(c, STORE_SOURCE, p->torch + strlen(wheel), e) < 0)
		return -1;
	for (unsigned i = 0; i < p->package_row->sources_count; i++) {
		if (copy_object(c, STORE_SOURCE, p->package_row->sources[i].sha256, e) < 0)
			return -1;
	}

	if (store_list(c->q->store, c->a, &objects, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(objects[i].kind, STORE_PYENV) == 0 &&
		    copy_object(c, STORE_PYENV, objects[i].key, e) < 0)
			return -1;
	}

	return 0;
}

/* ---- building again ---- */

/* The torch that the first one was built against, by its wheel. */
static const char *torch_of(const struct checking *c, const struct selection *t)
{
	struct selection own = *t;

	if (c->q->plan.torch || package_is_torch(t->variant.package))
		return c->q->plan.torch;
	own.variant.package = PACKAGE_TORCH;
	const struct pipeline_item *torch = pipeline_find(c->items, c->count, &own, 1);
	return torch ? torch->wheel : NULL;
}

static unsigned jobs_of(const struct pipeline_item *it)
{
	json_int_t jobs =
		json_integer_value(json_object_get(json_object_get(it->record, "build"), "jobs"));
	return jobs > 0 ? (unsigned)jobs : machine_processors();
}

static int build_again(struct checking *c, const struct plan *p, struct pipeline_results *ret,
		       struct err *e)
{
	const struct selection *t = c->target;
	struct pipeline_request q = *c->q;
	const char *before[ARRAY_LEN(other_env)]; /* NULL: not set */

	q.targets = t;
	q.count = 1;
	q.plan.torch = torch_of(c, t);
	q.world_store = c->q->store;
	q.out_dir = path_join(c->a, c->dir, "dist");
	q.jobs = c->jobs;
	q.fetch.offline = true;
	q.options.keep_tree = false;
	q.options.sign_key = NULL;
	const mode_t mask = umask(OTHER_UMASK);
	for (size_t i = 0; i < ARRAY_LEN(other_env); i++) {
		const char *value = getenv(other_env[i].key);
		before[i] = value ? arena_strdup(c->a, value) : NULL;
		setenv(other_env[i].key, other_env[i].value, 1);
	}

	tzset();
	int rc = store_open(path_join(c->a, c->dir, "cache"), c->run, &q.store, e);
	if (rc == 0) {
		c->to = q.store;
		rc = copy_inputs(c, p, e);
		if (rc == 0)
			rc = pipeline_build(&q, c->a, ret, e);
		store_close(q.store);
	}

	umask(mask);
	for (size_t i = 0; i < ARRAY_LEN(other_env); i++) {
		if (before[i])
			setenv(other_env[i].key, before[i], 1);
		else
			unsetenv(other_env[i].key);
	}

	tzset();
	return rc == 0 ? 0 : err_wrap(e, "the second build of %s", variant_name(&t->variant, c->a));
}

/* A wheel that differs is kept beside the first. */
static int keep_second(struct checking *c, const struct pipeline_item *first, const char *wheel,
		       struct err *e)
{
	const char *dir =
		path_join(c->a, path_join(c->a, c->q->out_dir, first->plan->variant), "second");
	const char *to = path_join(c->a, dir, path_base(wheel));

	if (fs_mkdirs(TRUSTED, dir, e) < 0 || fs_copy(TRUSTED, wheel, to, e) < 0)
		return -1;
	json_object_set_new(first->check, "second", json_or_null(to));
	return 0;
}

static int check_one(struct checking *c, struct pipeline_item *first, struct err *e)
{
	const unsigned jobs = c->jobs = jobs_of(first) + 1;
	struct pipeline_results again = {0};
	double start = log_seconds();

	log_info(c->run->log, "%s: building it again to compare", first->plan->variant);
	int rc = build_again(c, first->plan, &again, e);
	const char *second = rc < 0 ? NULL : again.items[again.count - 1].wheel;
	if (rc == 0)
		rc = compare_wheels(first->wheel, second, c->run, c->a, &first->check, e);
	pipeline_free(&again);
	if (rc < 0)
		return -1;
	const char *settings =
		arena_printf(c->a,
			     "%u job%s instead of %u, umask %03o, TZ %s, LC_ALL %s, another "
			     "directory and time, no compiler cache",
			     jobs, plural(jobs), jobs - 1, OTHER_UMASK, OTHER_ZONE, OTHER_LOCALE);
	json_object_set_new(first->check, "settings", json_string(settings));
	json_object_set_new(first->check, "second", json_null());
	json_object_set_new(first->check, "seconds", json_real(log_seconds() - start));
	return json_is_true(json_object_get(first->check, "same"))
		       ? 0
		       : keep_second(c, first, second, e);
}

int pipeline_check(const struct pipeline_request *q, size_t from, struct arena *a,
		   struct pipeline_results *results, struct err *e)
{
	struct pipeline_item *items = &results->items[from];
	struct checking c = {
		.q = q, .items = items, .count = results->count - from, .run = q->run, .a = a};

	for (size_t i = 0; i < q->count; i++) {
		const struct pipeline_item *first =
			pipeline_find(items, c.count, &q->targets[i], q->plan.metadata_rev);
		if (!first) /* it failed */
			continue;
		if (store_stage(q->store, a, &c.dir, e) < 0)
			return -1;
		c.target = &q->targets[i];
		int rc = check_one(&c, &items[first - items], e);
		store_drop_stage(q->store, c.dir);
		if (rc < 0)
			return -1;
	}

	return 0;
}
