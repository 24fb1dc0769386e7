/* A pipeline for GitLab: a stage for each wave, in it a job for each row of the plan, and one that
 * makes the index. A matrix of GitLab's own would put all its values into job names, which are
 * limited to 255 characters. JSON is valid YAML. */

#include "base/sys/json.h"
#include "core/ci/ci_caches.h"
#include "core/ci/ci_install.h"

#define TEMPLATE ".ptbuild"

static json_t *cache(const char *key, const char *const *paths, bool keep)
{
	return json_pack("{s:s, s:[s, s], s:s, s:s}", "key", key, "paths", paths[0], paths[1],
			 "policy", keep ? "pull-push" : "pull", "when", "always");
}

/* What all jobs have. No dependencies: wheels of other jobs are not needed. */
static json_t *template(const struct ci_plan *p, struct arena *a)
{
	const struct strlist lines = ci_install(p, a);
	const struct ci_format_row *f = ci_format(p->tables, "gitlab");
	json_t *t = json_pack("{s:s, s:s, s:[], s:{s:[s]}}", "image",
			      p->image ? p->image : p->tables->image, "timeout",
			      arena_printf(a, "%s minutes", f->minutes), "dependencies",
			      "artifacts", "paths", "dist/*.whl*");

	if (lines.count)
		json_object_set_new(t, "before_script", json_from_strlist(&lines));
	return t;
}

static const char *stage(unsigned wave, struct arena *a)
{
	return arena_printf(a, "wave-%u", wave);
}

/* A job that failed does not stop the stages after it. */
static json_t *build_job(const struct ci_plan *p, const struct ci_job *j, struct arena *a)
{
	const char *script = arena_printf(
		a, "ptbuild build %s --release %s%s%s%s", strlist_join(&j->variants, a, " "),
		j->release, *j->shard ? " --shard " : "", j->shard, ci_build(p, "gitlab", a));
	json_t *job = json_pack(
		"{s:s, s:s, s:s*, s:o, s:[s], s:s*}", "extends", TEMPLATE, "stage",
		stage(j->wave, a), "timeout",
		*j->runner->minutes ? arena_printf(a, "%s minutes", j->runner->minutes) : NULL,
		"tags", ci_labels(j->runner), "script", script, "when",
		j->wave > 1 ? "always" : NULL);
	AUTO_JSON json_t *caches = json_array();
	static const char *const compiled[] = CI_CACHE_PATHS, *const files[] = CI_FILES_PATHS;

	if (*j->files_cache)
		json_array_append_new(caches, cache(j->files_cache, files, j->keeps_files));
	if (!p->remote)
		json_array_append_new(caches, cache(j->cpu_cache, compiled, j->makes_cpu));
	if (!p->remote && *j->gpu_cache)
		json_array_append_new(caches, cache(j->gpu_cache, compiled, j->makes_gpu));
	if (json_array_size(caches))
		json_object_set(job, "cache", caches);
	return job;
}

/* Without dependencies of its own it gets the wheels of all stages before. */
static json_t *index_job(const struct ci_plan *p, struct arena *a)
{
	json_t *job = template(p, a);

	json_object_del(job, "dependencies");
	json_object_update_new(job, json_pack("{s:s, s:o, s:s, s:[s], s:{s:[s]}}", "stage", "index",
					      "tags", ci_labels(p->jobs[0].runner), "when",
					      "always", "script", "ptbuild index dist", "artifacts",
					      "paths", "dist"));
	return job;
}

json_t *ci_gitlab(const struct ci_plan *p)
{
	AUTO_ARENA struct arena a = {0};
	json_t *doc = json_object(), *stages = json_array();

	for (unsigned w = 1; w <= p->waves; w++)
		json_array_append_new(stages, json_string(stage(w, &a)));
	json_array_append_new(stages, json_string("index"));
	json_object_set_new(doc, "stages", stages);
	json_object_set_new(doc, TEMPLATE, template(p, &a));
	for (size_t i = 0; i < p->count; i++) {
		const struct ci_job *j = &p->jobs[i];
		const char *name = j->shards ? j->id : j->variants.items[0];
		if (json_object_get(doc, name))
			name = arena_printf(&a, "%s %s", name, j->release);
		json_object_set_new(doc, name, build_job(p, j, &a));
	}

	if (p->count)
		json_object_set_new(doc, "index", index_job(p, &a));
	return doc;
}
