/* Jobs for a cluster: as plain JSON, from which anything that starts programs can be driven,
 * and as a script for Slurm. The script's part that is the same for all matrices is slurm.sh. */
#include <inttypes.h>

#include "base/sys/json.h"
#include "core/ci/ci.h"

#define COLLECT_MINUTES 120u

static bool feeds(const struct ci_job *maker, const struct ci_job *j)
{
	if (!maker->makes_cpu && !maker->makes_gpu && !maker->shards)
		return false;
	if (maker->shards)
		return strcmp(j->shard, "last") == 0 && strcmp(maker->release, j->release) == 0 &&
		       strcmp(maker->variants.items[0], j->variants.items[0]) == 0;
	bool makes_cpu = maker->makes_cpu && strcmp(maker->cpu_cache, j->cpu_cache) == 0;
	bool makes_gpu = maker->makes_gpu && strcmp(maker->gpu_cache, j->gpu_cache) == 0;
	return maker->wave < j->wave && (makes_cpu || makes_gpu);
}

/* Earlier jobs whose objects this job reuses. */
static json_t *needs_of(const struct ci_plan *p, const struct ci_job *j)
{
	json_t *needs = json_array();

	for (size_t i = 0; i < p->count; i++)
		if (feeds(&p->jobs[i], j))
			json_array_append_new(needs, json_string(p->jobs[i].id));
	return needs;
}

static json_t *outputs_of(const struct ci_plan *p, const struct ci_job *j)
{
	json_t *out = json_array();

	for (size_t i = 0; i < j->variants.count && !j->shards; i++)
		json_array_append_new(out,
				      json_sprintf("%s/%s/build.json", p->out ? p->out : "dist",
						   j->variants.items[i]));
	return out;
}

static json_t *job_json(const struct ci_plan *p, const struct ci_job *j)
{
	const char *cuda = *j->cuda ? j->cuda : NULL;
	const char *isa = *j->isa ? j->isa : NULL;
	const char *gpu_cache = *j->gpu_cache ? j->gpu_cache : NULL;
	json_t *doc = json_pack("{s:s, s:i, s:o, s:o, s:s, s:s, s:s?, s:s, s:s?, s:s, s:s, s:s?, "
				"s:b, s:b, s:o, s:o}",
				"id", j->id, "wave", j->wave, "needs", needs_of(p, j), "variants",
				json_from_strlist(&j->variants), "release", j->release, "python",
				j->python, "cuda", cuda, "gpu", j->gpu, "isa", isa, "platform",
				j->platform, "cpu_cache", j->cpu_cache, "gpu_cache", gpu_cache,
				"makes_cpu", j->makes_cpu, "makes_gpu", j->makes_gpu, "runs_on",
				ci_labels(j->runner), "command", json_or_null(j->command));

	json_object_update_new(doc, json_pack("{s:o, s:i, s:I, s:I, s:o}", "argv",
					      json_from_strlist(&j->argv), "cpus", (int)j->cpus,
					      "memory_bytes", (json_int_t)j->memory, "seconds",
					      (json_int_t)j->seconds, "outputs", outputs_of(p, j)));
	json_object_set_new(doc, "disk_bytes", json_integer((json_int_t)j->disk));
	json_object_set_new(doc, "estimate_seconds",
			    j->estimate > 0 ? json_real(j->estimate) : json_null());
	if (*j->shard)
		json_object_set_new(doc, "shard", json_string(j->shard));
	return doc;
}

json_t *ci_json(const struct ci_plan *p)
{
	json_t *jobs = json_array();

	for (size_t i = 0; i < p->count; i++)
		json_array_append_new(jobs, job_json(p, &p->jobs[i]));
	return json_pack("{s:i, s:o, s:o}", "schema", 1, "matrix", json_or_null(p->name), "jobs",
			 jobs);
}

/* " WORD" */
static void put_word(struct buf *out, const char *word, struct arena *a)
{
	buf_printf(out, " %s", shell_quoted(word, a));
}

/* A label of a runner is an option of sbatch without its dashes. */
static void put_labels(struct buf *out, const struct ci_runner_row *r, struct arena *a)
{
	for (unsigned i = 0; i < r->labels_count; i++)
		if (ci_is_sbatch_label(r->labels[i]))
			put_word(out, arena_printf(a, "--%s", r->labels[i]), a);
}

/* The options of sbatch. */
static const char *array_options(const struct ci_job *j, struct arena *a)
{
	AUTO_BUF struct buf out = {0};

	buf_printf(&out, " --cpus-per-task=%u --mem=%" PRIu64 "M --time=%" PRIu64, j->cpus,
		   j->memory >> 20, (j->seconds + 59) / 60);
	put_labels(&out, j->runner, a);
	return arena_strdup(a, buf_cstr(&out));
}

/* Without a time of the map it has its partition's: whatever is asked for may be more than that. */
static void put_collector(const struct ci_plan *p, struct arena *a, struct buf *out)
{
	const struct ci_limits limits = ci_limits(p->tables, "slurm", p->collector);
	const uint64_t most = UINT64_C(1) << 31;
	const uint64_t memory = limits.memory && limits.memory < most ? limits.memory : most;

	buf_printf(out, "collect_options=(--cpus-per-task=1 --mem=%" PRIu64 "M", memory >> 20);
	if (limits.timed)
		buf_printf(out, " --time=%u",
			   limits.minutes < COLLECT_MINUTES ? limits.minutes : COLLECT_MINUTES);
	put_labels(out, p->collector, a);
	buf_printf(out, ")\n");
}

bool ci_is_sbatch_label(const char *label)
{
	static const char *const options[] = {"account",     "constraint", "exclude",   "gres",
					      "licenses",    "nodelist",   "partition", "qos",
					      "reservation", "tmp"};
	AUTO_ARENA struct arena a = {0};
	const char *equals = strchr(label, '=');

	return equals && strings_contain(options, ARRAY_LEN(options),
					 arena_strndup(&a, label, (size_t)(equals - label)));
}

static void put_waves(const struct ci_plan *p, struct arena *a, struct buf *out)
{
	buf_printf(out, "arrays() {\n");
	for (size_t from = 0, to; from < p->count; from = to) {
		for (to = from; to < p->count && p->jobs[to].wave == p->jobs[from].wave; to++)
			;
		buf_printf(out, "\twave\n");
		/* One array of those jobs of a wave that may
		 * have the same, no longer than Slurm allows. */
		const size_t limit = strtoul(ci_format(p->tables, "slurm")->jobs, NULL, 10);
		bool *taken = arena_array(a, to - from, sizeof(*taken));
		for (size_t i = from; i < to; i++) {
			if (taken[i - from])
				continue;
			const char *options = array_options(&p->jobs[i], a);
			size_t n = 0;
			buf_printf(out, "\tarray%s --", options);
			for (size_t k = i; k < to && n < limit; k++) {
				if (taken[k - from] ||
				    strcmp(array_options(&p->jobs[k], a), options) != 0)
					continue;
				taken[k - from] = true;
				put_word(out, p->jobs[k].id, a);
				n++;
			}

			buf_printf(out, "\n");
		}
	}

	buf_printf(out, "}\n");
}

int ci_slurm(const struct ci_plan *p, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_JSON json_t *doc = ci_json(p);
	AUTO_FREE char *text = json_dumps(doc, JSON_INDENT(1) | JSON_ENSURE_ASCII);

	if (!text)
		return err_set(e, ERR_SYSTEM, "the jobs cannot be written as JSON");
	const char *store = p->store ? shell_quoted(p->store, &a) : "";
	buf_printf(out,
		   "#!/usr/bin/env bash\n"
		   "# %zu job%s in %u wave%s for Slurm, written by 'ptbuild matrix --format "
		   "slurm'.\n#\n"
		   "#   bash FILE DIR                 submits what is not done yet; all nodes see "
		   "DIR\n"
		   "#   ptbuild matrix --status DIR   says how far it is\n"
		   "set -euo pipefail\n"
		   "name=%s\nstore=%s\nptbuild=${PTBUILD:-ptbuild}\n",
		   p->count, plural(p->count), p->waves, plural(p->waves),
		   shell_quoted(p->name, &a), store);
	/* Sets argv: what follows 'ptbuild'. */
	buf_printf(out, "ids=(");
	for (size_t i = 0; i < p->count; i++)
		buf_printf(out, "%s%s", i ? " " : "", shell_quoted(p->jobs[i].id, &a));
	buf_printf(out, ")\njob() { # ID\n\tcase $1 in\n");
	for (size_t i = 0; i < p->count; i++) {
		const struct ci_job *j = &p->jobs[i];
		buf_printf(out, "\t%s) argv=(%s) ;;\n", shell_quoted(j->id, &a),
			   shell_line(j->argv.items + 1, j->argv.count - 1, &a));
	}

	buf_printf(out, "\t*) fail \"no job '$1'\" ;;\n\tesac\n}\n");
	put_collector(p, &a, out);
	put_waves(p, &a, out);
	/* Each line of the document begins with a brace, a bracket or a blank: none is the mark. */
	buf_printf(out, "plan() {\n\tcat <<'PLAN'\n%s\nPLAN\n}\n\n", text);
	buf_add(out, slurm_script, slurm_script_size);
	return 0;
}
