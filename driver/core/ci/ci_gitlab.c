/* A pipeline for GitLab: a stage for each wave, in it a job for each kind of runner, its variants as parallel:matrix.
 * YAML takes JSON as it is. */
#include <string.h>

#include "base/sys/json.h"
#include "core/ci/ci.h"

static json_t *cell(const struct ci_job *j)
{
	AUTO_ARENA struct arena a = {0};
	return json_pack("{s:s, s:s, s:s, s:s*}", "VARIANTS", strlist_join(&j->variants, &a, " "), "RELEASE",
			 j->release, "CPU_CACHE", j->cpu_cache, "GPU_CACHE", *j->gpu_cache ? j->gpu_cache : NULL);
}

static json_t *cache(const char *key, bool keep)
{
	return json_pack("{s:s, s:[s], s:s, s:s}", "key", key, "paths", CI_CACHE_DIR "/ccache", "policy",
			 keep ? "pull-push" : "pull", "when", "always");
}

static json_t *make_job(const struct ci_plan *p, const size_t *cells, size_t count, const char *image)
{
	AUTO_ARENA struct arena a = {0};
	const struct ci_job *first = &p->jobs[cells[0]];
	json_t *matrix = json_array(), *caches = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(matrix, cell(&p->jobs[cells[i]]));
	json_array_append_new(caches, cache("$CPU_CACHE", first->wave == 1));
	if (*first->gpu_cache)
		json_array_append_new(caches, cache("$GPU_CACHE", first->wave == 1));
	/* No dependencies: wheels of other jobs are not needed. A job of wave 1 that failed does not stop wave 2. */
	return json_pack("{s:s, s:o*, s:o, s:{s:o}, s:o, s:[], s:[o], s:{s:[s]}, s:s*}", "stage",
			 first->wave == 1 ? "first" : "second", "image", image ? json_or_null(image) : NULL, "tags",
			 ci_labels(first->runner), "parallel", "matrix", matrix, "cache", caches, "dependencies",
			 "script", json_or_null(ci_script(p, &a)), "artifacts", "paths", "dist/*.whl", "when",
			 first->wave > 1 ? "always" : NULL);
}

/* Jobs that differ only in their variables. */
static bool alike(const struct ci_job *x, const struct ci_job *y)
{
	bool same = x->wave == y->wave && !*x->gpu_cache == !*y->gpu_cache &&
		    x->runner->labels_count == y->runner->labels_count;
	for (unsigned i = 0; same && i < x->runner->labels_count; i++)
		same = strcmp(x->runner->labels[i], y->runner->labels[i]) == 0;
	return same;
}

static json_t *stages(const struct ci_plan *p)
{
	json_t *l = json_array();
	json_array_append_new(l, json_string("first"));
	if (p->count && p->jobs[p->count - 1].wave > 1)
		json_array_append_new(l, json_string("second"));
	return l;
}

json_t *ci_gitlab(const struct ci_plan *p, size_t limit, const char *image)
{
	AUTO_ARENA struct arena a = {0};
	json_t *doc = json_object();
	bool *done = arena_array(&a, p->count, sizeof(*done));
	size_t *cells = arena_array(&a, p->count, sizeof(*cells));
	unsigned part = 0, wave = 0;
	json_object_set_new(doc, "stages", stages(p));
	for (size_t i = 0; i < p->count; i++) {
		size_t count = 0;
		for (size_t k = i; !done[i] && k < p->count && (!limit || count < limit); k++)
			if (!done[k] && alike(&p->jobs[i], &p->jobs[k]))
				cells[count++] = k;
		for (size_t k = 0; k < count; k++)
			done[cells[k]] = true;
		if (!count)
			continue;
		part = p->jobs[i].wave == wave ? part + 1 : 1;
		wave = p->jobs[i].wave;
		json_object_set_new(doc, arena_printf(&a, "wave-%u-%u", wave, part), make_job(p, cells, count, image));
	}
	return doc;
}
