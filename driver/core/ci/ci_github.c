/* A workflow for GitHub Actions: a job for each part of a wave, its variants as a matrix. */
#include <string.h>

#include "base/sys/json.h"
#include "core/ci/ci.h"

static json_t *cell(const struct ci_job *j)
{
	AUTO_ARENA struct arena a = {0};
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "variant", j->variants.items[0], "variants",
			 strlist_join(&j->variants, &a, " "), "release", j->release, "cpu_cache", j->cpu_cache,
			 "gpu_cache", j->gpu_cache, "runs_on", ci_labels(j->runner));
}

/* The compiler caches are files named by their contents, so two of them may be unpacked over one another. */
static json_t *cache_step(const char *name, const char *action, const char *key, const char *condition)
{
	AUTO_ARENA struct arena a = {0};
	return json_pack("{s:s, s:s*, s:s, s:{s:s, s:s}}", "name", name, "if", condition, "uses",
			 arena_printf(&a, "actions/cache/%s@v4", action), "with", "path", CI_CACHE_DIR "/ccache", "key",
			 arena_printf(&a, "${{ matrix.%s }}", key));
}

static json_t *build_step(const struct ci_plan *p)
{
	AUTO_ARENA struct arena a = {0};
	return json_pack("{s:s, s:o, s:{s:s, s:s}}", "name", "build", "run", json_or_null(ci_script(p, &a)), "env",
			 "VARIANTS", "${{ matrix.variants }}", "RELEASE", "${{ matrix.release }}");
}

static json_t *upload_step(void)
{
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:s}}", "name", "keep the wheels", "uses",
			 "actions/upload-artifact@v4", "with", "name", "${{ matrix.variant }}", "path", "dist/*.whl",
			 "if-no-files-found", "error");
}

static json_t *steps(const struct ci_plan *p, unsigned wave)
{
	json_t *l = json_array();
	json_array_append_new(l, cache_step("C++ units", "restore", "cpu_cache", NULL));
	json_array_append_new(l, cache_step("GPU units", "restore", "gpu_cache", "matrix.gpu_cache != ''"));
	json_array_append_new(l, build_step(p));
	json_array_append_new(l, upload_step());
	if (wave == 1) {
		json_array_append_new(l, cache_step("keep the C++ units", "save", "cpu_cache", "always()"));
		json_array_append_new(
			l, cache_step("keep the GPU units", "save", "gpu_cache", "always() && matrix.gpu_cache != ''"));
	}
	return l;
}

static json_t *make_job(const struct ci_plan *p, size_t from, size_t to, const struct strlist *needs, const char *image)
{
	json_t *include = json_array();
	for (size_t i = from; i < to; i++)
		json_array_append_new(include, cell(&p->jobs[i]));
	/* A job that failed does not stop those that need it, nor those beside it. */
	return json_pack("{s:s, s:o*, s:s*, s:s, s:o*, s:{s:b, s:{s:o}}, s:o}", "name", "${{ matrix.variant }}",
			 "needs", needs->count ? json_from_strlist(needs) : NULL, "if",
			 needs->count ? "${{ !cancelled() }}" : NULL, "runs-on", "${{ matrix.runs_on }}", "container",
			 image ? json_or_null(image) : NULL, "strategy", "fail-fast", 0, "matrix", "include", include,
			 "steps", steps(p, p->jobs[from].wave));
}

json_t *ci_github(const struct ci_plan *p, size_t limit, const char *image)
{
	AUTO_ARENA struct arena a = {0};
	json_t *jobs = json_object();
	struct strlist before = {0}, now = {0};
	unsigned part = 0;
	for (size_t from = 0, to; from < p->count; from = to) {
		if (from && p->jobs[from].wave != p->jobs[from - 1].wave) {
			before = now;
			now = (struct strlist){0};
			part = 0;
		}
		for (to = from;
		     to < p->count && p->jobs[to].wave == p->jobs[from].wave && (!limit || to - from < limit);)
			to++;
		const char *id = arena_printf(&a, "wave-%u-%u", p->jobs[from].wave, ++part);
		strlist_ref(&now, &a, id);
		json_object_set_new(jobs, id, make_job(p, from, to, &before, image));
	}
	return json_pack("{s:o, s:{s:{}, s:{}}, s:o}", "name", json_or_null(p->name), "on", "workflow_dispatch",
			 "workflow_call", "jobs", jobs);
}
