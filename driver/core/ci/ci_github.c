/* A workflow for GitHub Actions: a job for each part of a wave, its variants as a matrix. */
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
	json_t *o = json_object(), *labels = json_array();
	json_object_set_new(o, "variant", text(j->variants.items[0]));
	json_object_set_new(o, "variants", text(strlist_join(&j->variants, &a, " ")));
	json_object_set_new(o, "release", text(j->release));
	json_object_set_new(o, "cpu_cache", text(j->cpu_cache));
	json_object_set_new(o, "gpu_cache", text(j->gpu_cache));
	for (unsigned i = 0; i < j->runner->labels_count; i++)
		json_array_append_new(labels, text(j->runner->labels[i]));
	json_object_set_new(o, "runs_on", labels);
	return o;
}

/* The compiler caches are files named by their contents, so two of them may be unpacked over one another. */
static json_t *cache_step(const char *name, const char *action, const char *key, const char *condition)
{
	AUTO_ARENA struct arena a = {0};
	json_t *with = json_object(), *o = json_object();
	json_object_set_new(o, "name", text(name));
	if (condition)
		json_object_set_new(o, "if", text(condition));
	json_object_set_new(o, "uses", text(arena_printf(&a, "actions/cache/%s@v4", action)));
	json_object_set_new(with, "path", text(CACHE_DIR "/ccache"));
	json_object_set_new(with, "key", text(arena_printf(&a, "${{ matrix.%s }}", key)));
	json_object_set_new(o, "with", with);
	return o;
}

static json_t *build_step(const char *options)
{
	AUTO_ARENA struct arena a = {0};
	json_t *o = json_object(), *env = json_object();
	json_object_set_new(o, "name", text("build"));
	json_object_set_new(
		o, "run",
		text(arena_printf(&a,
				  "ptbuild build $VARIANTS --release \"$RELEASE\"%s --cache " CACHE_DIR " --out dist",
				  options)));
	json_object_set_new(env, "VARIANTS", text("${{ matrix.variants }}"));
	json_object_set_new(env, "RELEASE", text("${{ matrix.release }}"));
	json_object_set_new(o, "env", env);
	return o;
}

static json_t *upload_step(void)
{
	json_t *o = json_object(), *with = json_object();
	json_object_set_new(o, "name", text("keep the wheels"));
	json_object_set_new(o, "uses", text("actions/upload-artifact@v4"));
	json_object_set_new(with, "name", text("${{ matrix.variant }}"));
	json_object_set_new(with, "path", text("dist/*.whl"));
	json_object_set_new(with, "if-no-files-found", text("error"));
	json_object_set_new(o, "with", with);
	return o;
}

static json_t *steps(unsigned wave, const char *options)
{
	json_t *l = json_array();
	json_array_append_new(l, cache_step("C++ units", "restore", "cpu_cache", NULL));
	json_array_append_new(l, cache_step("GPU units", "restore", "gpu_cache", "matrix.gpu_cache != ''"));
	json_array_append_new(l, build_step(options));
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
	json_t *o = json_object(), *strategy = json_object(), *matrix = json_object(), *include = json_array();
	json_object_set_new(o, "name", text("${{ matrix.variant }}"));
	if (needs->count) {
		json_object_set_new(o, "needs", json_from_strlist(needs));
		/* one that failed does not stop the others */
		json_object_set_new(o, "if", text("${{ !cancelled() }}"));
	}
	json_object_set_new(o, "runs-on", text("${{ matrix.runs_on }}"));
	if (image)
		json_object_set_new(o, "container", text(image));
	for (size_t i = from; i < to; i++)
		json_array_append_new(include, cell(&p->jobs[i]));
	json_object_set_new(matrix, "include", include);
	json_object_set_new(strategy, "fail-fast", json_false());
	json_object_set_new(strategy, "matrix", matrix);
	json_object_set_new(o, "strategy", strategy);
	json_object_set_new(o, "steps", steps(p->jobs[from].wave, p->options));
	return o;
}

json_t *ci_github(const struct ci_plan *p, size_t limit, const char *image)
{
	AUTO_ARENA struct arena a = {0};
	json_t *doc = json_object(), *jobs = json_object(), *on = json_object();
	struct strlist before = {0}, now = {0};
	unsigned part = 0;
	json_object_set_new(doc, "name", text(p->name));
	json_object_set_new(on, "workflow_dispatch", json_object());
	json_object_set_new(on, "workflow_call", json_object());
	json_object_set_new(doc, "on", on);
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
	json_object_set_new(doc, "jobs", jobs);
	return doc;
}
