/* A pipeline for GitLab: a stage for each wave, in it a job for each kind of runner, its variants as parallel:matrix.
 * YAML takes JSON as it is. */
#include <string.h>

#include "base/sys/json.h"
#include "core/ci/ci.h"

#define CACHE_DIR ".ptbuild-cache"

static json_t *text(const char *s)
{
	return json_or_null(s);
}

static json_t *cell(const struct ci_job *j)
{
	AUTO_ARENA struct arena a = {0};
	json_t *o = json_object();
	json_object_set_new(o, "VARIANTS", text(strlist_join(&j->variants, &a, " ")));
	json_object_set_new(o, "RELEASE", text(j->release));
	json_object_set_new(o, "CPU_CACHE", text(j->cpu_cache));
	if (*j->gpu_cache)
		json_object_set_new(o, "GPU_CACHE", text(j->gpu_cache));
	return o;
}

static json_t *list(const char *item)
{
	json_t *l = json_array();
	json_array_append_new(l, text(item));
	return l;
}

static json_t *cache(const char *key, bool keep)
{
	json_t *o = json_object();
	json_object_set_new(o, "key", text(key));
	json_object_set_new(o, "paths", list(CACHE_DIR "/ccache"));
	json_object_set_new(o, "policy", text(keep ? "pull-push" : "pull"));
	json_object_set_new(o, "when", text("always"));
	return o;
}

static json_t *make_job(const struct ci_plan *p, const size_t *cells, size_t count, const char *image)
{
	AUTO_ARENA struct arena a = {0};
	const struct ci_job *first = &p->jobs[cells[0]];
	json_t *o = json_object(), *matrix = json_array(), *parallel = json_object(), *caches = json_array(),
	       *tags = json_array();
	json_t *artifacts = json_object(), *dependencies = json_array();
	json_object_set_new(o, "stage", text(first->wave == 1 ? "first" : "second"));
	if (image)
		json_object_set_new(o, "image", text(image));
	for (unsigned i = 0; i < first->runner->labels_count; i++)
		json_array_append_new(tags, text(first->runner->labels[i]));
	json_object_set_new(o, "tags", tags);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(matrix, cell(&p->jobs[cells[i]]));
	json_object_set_new(parallel, "matrix", matrix);
	json_object_set_new(o, "parallel", parallel);
	json_array_append_new(caches, cache("$CPU_CACHE", first->wave == 1));
	if (*first->gpu_cache)
		json_array_append_new(caches, cache("$GPU_CACHE", first->wave == 1));
	json_object_set_new(o, "cache", caches);
	json_object_set_new(o, "dependencies", dependencies); /* wheels of other jobs are not wanted */
	json_object_set_new(
		o, "script",
		list(arena_printf(&a,
				  "ptbuild build $VARIANTS --release \"$RELEASE\"%s --cache " CACHE_DIR " --out dist",
				  p->options)));
	json_object_set_new(artifacts, "paths", list("dist/*.whl"));
	json_object_set_new(o, "artifacts", artifacts);
	if (first->wave > 1)
		json_object_set_new(o, "when", text("always")); /* one that failed does not stop the others */
	return o;
}

/* Jobs that differ only in their variables. */
static bool alike(const struct ci_job *x, const struct ci_job *y)
{
	if (x->wave != y->wave || !*x->gpu_cache != !*y->gpu_cache ||
	    x->runner->labels_count != y->runner->labels_count)
		return false;
	for (unsigned i = 0; i < x->runner->labels_count; i++)
		if (strcmp(x->runner->labels[i], y->runner->labels[i]) != 0)
			return false;
	return true;
}

static json_t *stages(const struct ci_plan *p)
{
	json_t *l = json_array();
	json_array_append_new(l, text("first"));
	if (p->count && p->jobs[p->count - 1].wave > 1)
		json_array_append_new(l, text("second"));
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
