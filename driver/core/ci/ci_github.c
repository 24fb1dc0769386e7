/* A workflow for GitHub Actions: a job for each part of a
 * wave, its variants as a matrix, and one for the index. */

#include "base/sys/json.h"
#include "core/ci/ci_caches.h"
#include "core/ci/ci_install.h"

/* The index has all wheels: those of single jobs are for a repeated index job. */
enum { WHEEL_DAYS = 3, SAVE_MINUTES = 20 };

/* Steps are added to a list; `p` and `a` are what all of them need. */
struct steps {
	const struct ci_plan *p;
	struct arena *a;
	json_t *list;
};

/* A step that uses an action. */
struct action {
	const char *name, *action;
	const char *id;        /* by which other steps ask for what it found; NULL: none */
	const char *condition; /* NULL: always */
	json_t *with;          /* taken over */
};

static void add_action(const struct steps *s, struct action x)
{
	json_array_append_new(s->list,
			      json_pack("{s:s, s:s*, s:s*, s:s, s:o}", "name", x.name, "id", x.id,
					"if", x.condition, "uses",
					ci_action(s->p->tables, x.action, s->a), "with", x.with));
}

static void add_run(const struct steps *s, const char *name, const char *script)
{
	json_array_append_new(s->list, json_pack("{s:s, s:s}", "name", name, "run", script));
}

static void add_install(const struct steps *s)
{
	const struct strlist lines = ci_install(s->p, s->a);

	if (ci_install_checkout(s->p) || s->p->checkout)
		add_action(s, (struct action){
				      .name = ci_install_source(s->p) ? "source of ptbuild"
								      : "files that the jobs name",
				      .action = "checkout",
				      .with = json_pack("{s:b}", "persist-credentials", 0)});
	if (lines.count)
		add_run(s, "install ptbuild", strlist_join(&lines, s->a, "\n"));
}

/* A cache cannot be overwritten, so each run uses its own name and restores the newest of the
 * others. Two dashes end the name: sm80 is not the beginning of sm80-sm90. */
static void add_cache(const struct steps *s, const char *name, const char *which, bool save)
{
	static const char *const paths[] = CI_CACHE_PATHS;
	const char *key = arena_printf(s->a, "${{ matrix.%s }}--", which);
	const char *run = arena_printf(s->a, "%s${{ github.run_id }}-", key);
	const char *condition = save ? arena_printf(s->a, "always() && matrix.makes_%.3s", which)
				: strcmp(which, "gpu_cache") == 0 ? "matrix.gpu_cache != ''"
								  : NULL;
	json_t *with =
		json_pack("{s:s, s:s}", "path", arena_printf(s->a, "%s\n%s", paths[0], paths[1]),
			  "key", arena_printf(s->a, "%s${{ github.run_attempt }}", run));

	if (!save)
		json_object_set_new(with, "restore-keys",
				    json_string(arena_printf(s->a, "%s\n%s", run, key)));
	add_action(s, (struct action){name, save ? "save" : "restore", NULL, condition, with});
}

/* What the downloads are is known before: the name is exact, and nothing is kept twice. They
 * are kept before the build, which may take hours and fail. */
static void add_files(const struct steps *s)
{
	static const char *const paths[] = CI_FILES_PATHS;
	static const char missing[] =
		"matrix.keeps_files && steps.files.outputs.cache-hit != 'true'";
	const char *path = arena_printf(s->a, "%s\n%s", paths[0], paths[1]);

	add_action(s, (struct action){.name = "files of the world",
				      .action = "restore",
				      .id = "files",
				      .condition = "matrix.files != ''",
				      .with = json_pack("{s:s, s:s}", "path", path, "key",
							"${{ matrix.files }}")});
	json_array_append_new(s->list,
			      json_pack("{s:s, s:s, s:o, s:{s:s, s:s}}", "name",
					"download the files", "if", missing, "run",
					json_sprintf("# names, one after the other\n# shellcheck "
						     "disable=SC2086\nptbuild fetch $VARIANTS "
						     "--release \"$RELEASE\"%s --cache " CI_STORE,
						     s->p->options),
					"env", "VARIANTS", "${{ matrix.variants }}", "RELEASE",
					"${{ matrix.release }}"));
	add_action(s, (struct action){.name = "keep the files of the world",
				      .action = "save",
				      .condition = missing,
				      .with = json_pack("{s:s, s:s}", "path", path, "key",
							"${{ matrix.files }}")});
}

static void add_build(const struct steps *s)
{
	const bool shards = s->p->shards > 1;
	const char *script = arena_printf(s->a,
					  "# names, one after the other\n# shellcheck "
					  "disable=SC2086\nptbuild build $VARIANTS "
					  "--release \"$RELEASE\"%s%s",
					  shards ? " ${SHARD:+--shard \"$SHARD\"}" : "",
					  ci_build(s->p, "github", s->a));

	json_array_append_new(s->list,
			      json_pack("{s:s, s:s, s:s, s:{s:s, s:s, s:s*}}", "name", "build",
					"timeout-minutes", "${{ matrix.build_minutes }}", "run",
					script, "env", "VARIANTS", "${{ matrix.variants }}",
					"RELEASE", "${{ matrix.release }}", "SHARD",
					shards ? "${{ matrix.shard }}" : NULL));
}

/* What an upload takes: files by their path, under a name; none is an error. With `days` the
 * service removes it after so many. */
static json_t *upload(const char *name, const char *path, int days)
{
	json_t *o = json_pack("{s:s, s:s, s:s}", "name", name, "path", path, "if-no-files-found",
			      "error");

	if (days)
		json_object_set_new(o, "retention-days", json_integer(days));
	return o;
}

static json_t *build_steps(const struct ci_plan *p, struct arena *a)
{
	struct steps s = {p, a, json_array()};

	add_install(&s);
	if (p->keeps_files)
		add_files(&s);
	if (!p->remote) {
		add_cache(&s, "C++ units", "cpu_cache", false);
		add_cache(&s, "GPU units", "gpu_cache", false);
	}

	add_build(&s);
	add_action(&s, (struct action){
			       .name = "keep the wheels",
			       .action = "upload",
			       .condition = p->shards > 1 ? "!contains(matrix.shard, '/')" : NULL,
			       .with = upload("${{ matrix.variant }}", "dist/*.whl*", WHEEL_DAYS)});
	if (!p->remote) {
		add_cache(&s, "keep the C++ units", "cpu_cache", true);
		add_cache(&s, "keep the GPU units", "gpu_cache", true);
	}

	return s.list;
}

static json_t *index_steps(const struct ci_plan *p, struct arena *a)
{
	struct steps s = {p, a, json_array()};

	add_install(&s);
	add_action(&s, (struct action){.name = "all wheels",
				       .action = "download",
				       .with = json_pack("{s:s, s:b}", "path", "dist",
							 "merge-multiple", 1)});
	add_run(&s, "make the index", "ptbuild index dist");
	if (p->attest)
		add_action(&s, (struct action){
				       .name = "attest the wheels",
				       .action = "attest",
				       .with = json_pack("{s:s}", "subject-path", "dist/*.whl")});
	add_action(&s, (struct action){.name = "keep the index",
				       .action = "upload",
				       .with = upload("index", "dist", 0)});
	return s.list;
}

/* What a job has of its own; the documents are handed over. */
struct github_job {
	const char *name;
	json_t *labels, *minutes, *steps;
	const struct strlist *needs;
};

/* And what all have. The sandbox needs namespaces, which a container has with this alone. */
static json_t *job(const struct ci_plan *p, const struct github_job *j)
{
	return json_pack("{s:s, s:o*, s:s*, s:o, s:o, s:{s:s}, s:{s:s, s:s}, s:o}", "name", j->name,
			 "needs", j->needs->count ? json_from_strlist(j->needs) : NULL, "if",
			 j->needs->count ? "${{ !cancelled() }}" : NULL, "runs-on", j->labels,
			 "timeout-minutes", j->minutes, "permissions", "contents", "read",
			 "container", "image", p->image ? p->image : p->tables->image, "options",
			 "--privileged", "steps", j->steps);
}

static json_t *cell(const struct ci_plan *p, const struct ci_job *j)
{
	AUTO_ARENA struct arena a = {0};
	json_t *o =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:o}", "variant",
			  j->shards ? j->id : j->variants.items[0], "variants",
			  strlist_join(&j->variants, &a, " "), "release", j->release, "cpu_cache",
			  j->cpu_cache, "gpu_cache", j->gpu_cache, "makes_cpu", j->makes_cpu,
			  "makes_gpu", j->makes_gpu, "runs_on", ci_labels(j->runner));

	json_int_t minutes = ci_limits(p->tables, "github", j->runner).minutes;
	json_object_set_new(o, "minutes", json_integer(minutes));
	/* A build that is stopped before the job is leaves time to save what it compiled. */
	json_int_t build = minutes / 2 + 1;
	if (minutes - SAVE_MINUTES > build)
		build = minutes - SAVE_MINUTES;
	json_object_set_new(o, "build_minutes", json_integer(build));
	if (p->shards > 1)
		json_object_set_new(o, "shard", json_string(j->shard));
	if (p->keeps_files) {
		json_object_set_new(o, "files", json_string(j->files_cache));
		json_object_set_new(o, "keeps_files", json_boolean(j->keeps_files));
	}

	return o;
}

static json_t *build_job(const struct ci_plan *p, size_t from, size_t to,
			 const struct strlist *needs, struct arena *a)
{
	json_t *include = json_array();

	for (size_t i = from; i < to; i++)
		json_array_append_new(include, cell(p, &p->jobs[i]));
	json_t *j = job(p, &(struct github_job){.name = "${{ matrix.variant }}",
						.labels = json_string("${{ matrix.runs_on }}"),
						.minutes = json_string("${{ matrix.minutes }}"),
						.steps = build_steps(p, a),
						.needs = needs});
	/* A job that failed does not stop those that need it, nor those beside it. */
	json_object_set_new(
		j, "strategy",
		json_pack("{s:b, s:{s:o}}", "fail-fast", 0, "matrix", "include", include));
	return j;
}

json_t *ci_github(const struct ci_plan *p)
{
	AUTO_ARENA struct arena a = {0};
	size_t limit = strtoul(ci_format(p->tables, "github")->jobs, NULL, 10);
	json_t *jobs = json_object();
	struct strlist before = {0}, now = {0}, all = {0};
	unsigned part = 0;

	for (size_t from = 0, to; from < p->count; from = to) {
		if (from && p->jobs[from].wave != p->jobs[from - 1].wave) {
			before = now;
			now = (struct strlist){0};
			part = 0;
		}

		for (to = from;
		     to < p->count && p->jobs[to].wave == p->jobs[from].wave && to - from < limit;)
			to++;
		const char *id = arena_printf(&a, "wave-%u-%u", p->jobs[from].wave, ++part);
		strlist_ref(&now, &a, id);
		strlist_ref(&all, &a, id);
		json_object_set_new(jobs, id, build_job(p, from, to, &before, &a));
	}

	if (p->count) {
		const int minutes = atoi(ci_format(p->tables, "github")->minutes);
		json_t *index = job(p, &(struct github_job){.name = "index",
							    .labels = ci_labels(p->jobs[0].runner),
							    .minutes = json_integer(minutes),
							    .steps = index_steps(p, &a),
							    .needs = &all});
		/* It builds nothing, and so has no sandbox. */
		json_object_del(json_object_get(index, "container"), "options");
		/* To sign, the job says who it is; what it signed goes to the repository. */
		if (p->attest)
			json_object_update_new(json_object_get(index, "permissions"),
					       json_pack("{s:s, s:s}", "id-token", "write",
							 "attestations", "write"));
		json_object_set_new(jobs, "index", index);
	}

	/* A second run of one branch waits: it finds what the first compiled. */
	json_t *alone = json_pack("{s:o, s:b}", "group",
				  json_sprintf("ptbuild-%s-${{ github.ref }}", p->name),
				  "cancel-in-progress", 0);
	return json_pack("{s:o, s:{s:{}, s:{}}, s:{}, s:o, s:o}", "name", json_or_null(p->name),
			 "on", "workflow_dispatch", "workflow_call", "permissions", "concurrency",
			 alone, "jobs", jobs);
}
