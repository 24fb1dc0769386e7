#include "core/ci/ci.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys/json.h"
#include "core/variant/profile_parts.h"

static bool goes_with(const struct ci_job *j, const struct ci_choice *c, const char *profile)
{
	return strcmp(j->release, c->release->name) == 0 && strcmp(j->python, c->variant.python) == 0 &&
	       strcmp(j->cuda, c->variant.cuda ? c->variant.cuda : "") == 0 &&
	       strcmp(profile, c->variant.profile.name) == 0;
}

/* GPU objects depend on the GPU list alone, C++ objects on the instruction set alone; a toolkit changes both, a Python
 * version neither (but for a few units). */
static void fill_job(struct ci_job *j, const struct ci_choice *c, struct arena *a)
{
	const struct profile *p = &c->variant.profile;
	j->release = c->release->name;
	j->python = c->variant.python;
	j->cuda = c->variant.cuda ? c->variant.cuda : "";
	j->gpu = profile_gpu_name(p, a);
	j->isa = p->isa ? p->isa->name : "";
	j->platform = p->platform;
	const char *base =
		arena_printf(a, "ptbuild-%s-%s%s%s", j->release, j->platform, *j->cuda ? "-cuda" : "", j->cuda);
	j->cpu_cache = arena_printf(a, "%s-%s", base, *j->isa ? j->isa : "mps");
	/* Names of caches take letters, digits, '.', '_' and '-' only. */
	struct strlist targets = {0};
	strlist_split(&targets, a, j->gpu, "+");
	j->gpu_cache = p->gpu == GPU_CUDA ? arena_printf(a, "%s-%s", base, strlist_join(&targets, a, "-")) : "";
}

/* Whether a job of wave 1 has one of these caches. */
static bool is_taken(const struct ci_plan *p, const char *cpu, const char *gpu)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->jobs[i].wave == 1 && ((cpu && strcmp(p->jobs[i].cpu_cache, cpu) == 0) ||
					     (gpu && *gpu && strcmp(p->jobs[i].gpu_cache, gpu) == 0)))
			return true;
	return false;
}

/* Wave 1 compiles every unit once: first jobs that share nothing with each other, then those with a cache that none of
 * these has. All other jobs find everything compiled. */
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
	err_set(e, ERR_CONFIG, "no row of the runner map matches '%s' (%s)", variant, j->platform);
	return err_hint(e, "add a row to it: {match: \"%s\", labels: [...]}", variant);
}

static void add_choice(struct ci_plan *p, const struct ci_choice *c, const char **profiles, struct arena *a)
{
	const char *variant = variant_name(&c->variant, a);
	size_t at = 0;
	while (at < p->count && !goes_with(&p->jobs[at], c, profiles[at]))
		at++;
	if (at == p->count) {
		profiles[p->count++] = c->variant.profile.name;
		fill_job(&p->jobs[at], c, a);
	}
	if (!strlist_contains(&p->jobs[at].variants, variant))
		strlist_ref(&p->jobs[at].variants, a, variant);
}

int ci_plan_make(const char *format, const struct ci_tables *t, const struct ci_tables *own,
		 const struct ci_choice *choices, size_t count, struct arena *a, struct ci_plan *ret, struct err *e)
{
	struct ci_plan p = {.name = ret->name, .options = ret->options, .jobs = arena_array(a, count, sizeof(*p.jobs))};
	const char **profiles = arena_array(a, count, sizeof(*profiles));
	for (size_t k = 0; k < TABLES_PACKAGES; k++)
		for (size_t i = 0; i < count; i++)
			if (strcmp(choices[i].variant.package, tables_packages[k]) == 0)
				add_choice(&p, &choices[i], profiles, a);
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

char *ci_script(const struct ci_plan *p, struct arena *a)
{
	return arena_printf(a, "ptbuild build $VARIANTS --release \"$RELEASE\"%s --cache " CI_CACHE_DIR " --out dist",
			    p->options);
}

json_t *ci_labels(const struct ci_runner_row *r)
{
	return json_from_strlist(&(struct strlist){.items = r->labels, .count = r->labels_count});
}

json_t *ci_json(const struct ci_plan *p)
{
	json_t *jobs = json_array();
	for (size_t i = 0; i < p->count; i++) {
		const struct ci_job *j = &p->jobs[i];
		json_array_append_new(
			jobs, json_pack("{s:i, s:o, s:s, s:s, s:s?, s:s, s:s?, s:s, s:s, s:s?, s:o, s:o}", "wave",
					j->wave, "variants", json_from_strlist(&j->variants), "release", j->release,
					"python", j->python, "cuda", *j->cuda ? j->cuda : NULL, "gpu", j->gpu, "isa",
					*j->isa ? j->isa : NULL, "platform", j->platform, "cpu_cache", j->cpu_cache,
					"gpu_cache", *j->gpu_cache ? j->gpu_cache : NULL, "runs_on",
					ci_labels(j->runner), "command", json_or_null(j->command)));
	}
	return json_pack("{s:i, s:o, s:o}", "schema", 1, "matrix", json_or_null(p->name), "jobs", jobs);
}
