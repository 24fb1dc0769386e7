#include "core/ci/ci.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/json.h"

static const char *gpu_part(const struct profile *p, struct arena *a)
{
	struct strlist l = {0};
	if (p->gpu != GPU_CUDA)
		return p->gpu == GPU_CPU ? "cpu" : "mps";
	for (unsigned i = 0; i < p->targets_count; i++)
		strlist_addf(&l, a, "sm%s%s%s", p->targets[i].row->sm, p->targets[i].suffix,
			     p->targets[i].ptx ? "+ptx" : "");
	return strlist_join(&l, a, "+");
}

/* A word for a cache's name: services take letters, digits, '.', '_' and '-'. */
static const char *word(const char *text, struct arena *a)
{
	char *s = arena_strdup(a, text);
	for (char *c = s; *c; c++)
		if (*c == '+')
			*c = '-';
	return s;
}

static bool goes_with(const struct ci_job *j, const struct ci_choice *c, const char *profile)
{
	return strcmp(j->release, c->release->name) == 0 && strcmp(j->python, c->variant.python) == 0 &&
	       strcmp(j->cuda, c->variant.cuda ? c->variant.cuda : "") == 0 &&
	       strcmp(profile, c->variant.profile.name) == 0;
}

/* GPU objects depend on the GPU list alone, C++ objects on the instruction set alone; a toolkit changes both, a Python
 * neither (but for a few units). */
static void fill_job(struct ci_job *j, const struct ci_choice *c, struct arena *a)
{
	const struct profile *p = &c->variant.profile;
	j->release = c->release->name;
	j->python = c->variant.python;
	j->cuda = c->variant.cuda ? c->variant.cuda : "";
	j->gpu = gpu_part(p, a);
	j->isa = p->isa ? p->isa->name : "";
	j->platform = p->platform;
	const char *base =
		arena_printf(a, "ptbuild-%s-%s%s%s", j->release, j->platform, *j->cuda ? "-cuda" : "", j->cuda);
	j->cpu_cache = arena_printf(a, "%s-%s", base, *j->isa ? j->isa : "mps");
	j->gpu_cache = p->gpu == GPU_CUDA ? arena_printf(a, "%s-%s", base, word(j->gpu, a)) : "";
}

/* Whether a key is among those of the jobs of wave 1. */
static bool is_taken(const struct ci_plan *p, const char *cpu, const char *gpu)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->jobs[i].wave == 1 && ((cpu && strcmp(p->jobs[i].cpu_cache, cpu) == 0) ||
					     (gpu && *gpu && strcmp(p->jobs[i].gpu_cache, gpu) == 0)))
			return true;
	return false;
}

/* Wave 1 compiles every unit once: first jobs that share nothing with each other, then what is still missing. All
 * others find everything compiled. */
static void set_waves(struct ci_plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (!is_taken(p, p->jobs[i].cpu_cache, p->jobs[i].gpu_cache))
			p->jobs[i].wave = 1;
	for (size_t i = 0; i < p->count; i++) {
		struct ci_job *j = &p->jobs[i];
		if (j->wave == 0 &&
		    (!is_taken(p, j->cpu_cache, NULL) || (*j->gpu_cache && !is_taken(p, NULL, j->gpu_cache))))
			j->wave = 1;
	}
	for (size_t i = 0; i < p->count; i++)
		if (p->jobs[i].wave == 0)
			p->jobs[i].wave = 2;
}

/* By wave, then jobs with the same GPU code together, then those with the same C++ code, then by name. */
static int by_sharing(const void *a, const void *b)
{
	const struct ci_job *x = a, *y = b;
	int order = (int)x->wave - (int)y->wave;
	if (!order)
		order = strcmp(x->gpu_cache, y->gpu_cache);
	if (!order)
		order = strcmp(x->cpu_cache, y->cpu_cache);
	return order ? order : strcmp(x->variants.items[0], y->variants.items[0]);
}

static int set_runner(struct ci_job *j, const char *format, const struct ci_tables *t, const struct ci_tables *own,
		      struct err *e)
{
	const char *variant = j->variants.items[0];
	j->runner = ci_runner(own ? own : t, format, j->platform, variant);
	if (j->runner)
		return 0;
	err_set(e, ERR_CONFIG, "no row of the runner map fits '%s' (%s)", variant, j->platform);
	return err_hint(e, "add a row to it: {match: \"%s\", labels: [...]}", variant);
}

static int by_package(const void *a, const void *b)
{
	const struct ci_choice *x = *(const struct ci_choice *const *)a, *y = *(const struct ci_choice *const *)b;
	size_t rx = tables_package_rank(x->variant.package), ry = tables_package_rank(y->variant.package);
	return rx != ry ? (rx < ry ? -1 : 1) : (x < y ? -1 : 1);
}

int ci_plan_make(const char *format, const struct ci_tables *t, const struct ci_tables *own,
		 const struct ci_choice *choices, size_t count, struct arena *a, struct ci_plan *ret, struct err *e)
{
	struct ci_plan p = {.name = ret->name, .options = ret->options, .jobs = arena_array(a, count, sizeof(*p.jobs))};
	const struct ci_choice **sorted = arena_array(a, count, sizeof(const struct ci_choice *));
	const char **profiles = arena_array(a, count, sizeof(char *));
	for (size_t i = 0; i < count; i++)
		sorted[i] = &choices[i];
	if (count)
		qsort(sorted, count, sizeof(const struct ci_choice *), by_package);
	for (size_t i = 0; i < count; i++) {
		const struct ci_choice *c = sorted[i];
		const char *variant = variant_name(&c->variant, a);
		size_t at = 0;
		while (at < p.count && !goes_with(&p.jobs[at], c, profiles[at]))
			at++;
		if (at == p.count) {
			profiles[p.count++] = c->variant.profile.name;
			fill_job(&p.jobs[at], c, a);
		}
		if (!strlist_contains(&p.jobs[at].variants, variant))
			strlist_ref(&p.jobs[at].variants, a, variant);
	}
	for (size_t i = 0; i < p.count; i++) {
		struct ci_job *j = &p.jobs[i];
		j->command = arena_printf(a, "ptbuild build %s --release %s%s", strlist_join(&j->variants, a, " "),
					  j->release, p.options);
		if (set_runner(j, format, t, own, e) < 0)
			return -1;
	}
	set_waves(&p);
	if (p.count)
		qsort(p.jobs, p.count, sizeof(*p.jobs), by_sharing);
	*ret = p;
	return 0;
}

static json_t *labels_json(const struct ci_runner_row *r)
{
	json_t *l = json_array();
	for (unsigned i = 0; i < r->labels_count; i++)
		json_array_append_new(l, json_or_null(r->labels[i]));
	return l;
}

json_t *ci_json(const struct ci_plan *p)
{
	json_t *doc = json_object(), *jobs = json_array();
	json_object_set_new(doc, "schema", json_integer(1));
	json_object_set_new(doc, "matrix", json_or_null(p->name));
	for (size_t i = 0; i < p->count; i++) {
		const struct ci_job *j = &p->jobs[i];
		json_t *o = json_object();
		json_object_set_new(o, "wave", json_integer(j->wave));
		json_object_set_new(o, "variants", json_from_strlist(&j->variants));
		json_object_set_new(o, "release", json_or_null(j->release));
		json_object_set_new(o, "python", json_or_null(j->python));
		json_object_set_new(o, "cuda", json_or_null(*j->cuda ? j->cuda : NULL));
		json_object_set_new(o, "gpu", json_or_null(j->gpu));
		json_object_set_new(o, "isa", json_or_null(*j->isa ? j->isa : NULL));
		json_object_set_new(o, "platform", json_or_null(j->platform));
		json_object_set_new(o, "cpu_cache", json_or_null(j->cpu_cache));
		json_object_set_new(o, "gpu_cache", json_or_null(*j->gpu_cache ? j->gpu_cache : NULL));
		json_object_set_new(o, "runs_on", labels_json(j->runner));
		json_object_set_new(o, "command", json_or_null(j->command));
		json_array_append_new(jobs, o);
	}
	json_object_set_new(doc, "jobs", jobs);
	return doc;
}
