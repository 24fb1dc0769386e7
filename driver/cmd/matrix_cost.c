/* What a job of a matrix may use on a cluster: processors, the memory that its compilers need at their peak, and a time
 * after which something is wrong. */
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "cmd/matrix.h"
#include "core/root/jobs.h"
#include "step/pipeline/weights.h"

/* The trial of a finished torch takes more than the compilers of a small package. */
#define LEAST_BYTES (UINT64_C(4) << 30)
/* Another machine, a disk that is busy, sources that come slowly; and what is the same for all. */
#define TIME_FACTOR 3
#define TIME_MORE 3600

struct cost {
	uint64_t memory;
	double seconds; /* of one processor */
	double after;
	bool unknown; /* no time is known of a part */
};

/* History is that of the store that this command would use; none is made for it. */
static const struct history *history_of(struct cmd_context *c, const char *package, const char *release)
{
	static const struct history none;
	struct err ignored = {0};
	const char *dir;
	struct store *s;
	if (cmd_cache_dir(c, &dir, &ignored) < 0 || !fs_exists(path_join(c->arena, dir, "format")) ||
	    cmd_store(c, &s, &ignored) < 0)
		return &none;
	return history_load(s, package, release, c->run, c->arena);
}

static void learn(struct jobs_memory *m, const struct history *h)
{
	if (history_measured(h, HISTORY_COMPILE) < JOBS_ENOUGH)
		return;
	m->compile = history_peak(h, HISTORY_COMPILE, 95);
	m->heavy = history_measured(h, HISTORY_HEAVY) ? history_peak(h, HISTORY_HEAVY, 100) : m->compile;
	m->link = history_measured(h, HISTORY_LINK) ? history_peak(h, HISTORY_LINK, 100) : m->link;
}

static bool has_cuda_unit(const struct history *h)
{
	for (size_t i = 0; i < h->count; i++)
		if (strstr(h->units[i].path, ".cu."))
			return true;
	return false;
}

static unsigned targets_of(const struct ci_job *j)
{
	unsigned n = 1;
	for (const char *p = j->gpu; *p; p++)
		n += *p == '+';
	return n;
}

static int add_package(struct cmd_context *c, const struct ci_job *j, const char *package, struct cost *sum,
		       struct err *e)
{
	const struct tables *t;
	const struct release_row *release;
	const char *dir;
	if (cmd_tables(c, &t, e) < 0 || cmd_profiles_dir(c, &dir, e) < 0 ||
	    tables_need_release(t, j->release, &release, e) < 0)
		return -1;
	const struct package_row *row = tables_package(release, package);
	const struct history *h = history_of(c, package, j->release);
	const struct weights *w = weights_load(dir, package, j->release, targets_of(j), h, c->run, c->arena);
	struct jobs_memory need = jobs_from_table(row ? row->memory : NULL);
	learn(&need, h);
	uint64_t most = need.compile * j->cpus;
	most = need.heavy > most ? need.heavy : most;
	most = need.link > most ? need.link : most;
	sum->memory = most > sum->memory ? most : sum->memory;
	for (size_t i = 0; i < w->units->count; i++)
		sum->seconds += w->units->units[i].seconds;
	sum->after += w->after;
	/* The tables have no unit of nvcc, which takes most of the time. */
	sum->unknown = sum->unknown || w->units->count == 0 || (*j->cuda && !has_cuda_unit(w->units));
	return 0;
}

/* A companion alone builds its torch first, unless one is named. */
static int add_packages(struct cmd_context *c, const struct ci_job *j, bool torch_named, struct cost *sum,
			struct err *e)
{
	bool torch = torch_named;
	for (size_t i = 0; i < j->variants.count; i++) {
		const char *name = j->variants.items[i];
		const char *package = arena_strndup(c->arena, name, strcspn(name, "-"));
		torch = torch || strcmp(package, "pytorch") == 0;
		if (add_package(c, j, package, sum, e) < 0)
			return -1;
	}
	return torch ? 0 : add_package(c, j, "pytorch", sum, e);
}

int matrix_cost(struct cmd_context *c, const struct ci_plan *p, bool torch_named, struct err *e)
{
	const struct ci_format_row *f = ci_format(p->tables, "slurm");
	const uint64_t mib = UINT64_C(1) << 20;
	if (!f || !*f->cpus)
		return err_set(e, ERR_CONFIG, "ci.yaml has no row 'slurm' with processors");
	const uint64_t limit = strtoull(f->minutes, NULL, 10) * 60;
	for (size_t i = 0; i < p->count; i++) {
		struct ci_job *j = &p->jobs[i];
		struct cost sum = {0};
		j->cpus = c->global->jobs ? c->global->jobs : (unsigned)strtoul(f->cpus, NULL, 10);
		if (add_packages(c, j, torch_named, &sum, e) < 0)
			return -1;
		/* jobs_usable takes an eighth at most for what is no compiler. */
		j->memory = sum.memory + sum.memory / 7;
		j->memory = j->memory > LEAST_BYTES ? (j->memory + mib - 1) / mib * mib : LEAST_BYTES;
		if (j->shards)
			sum.seconds /= j->shards;
		double seconds = TIME_FACTOR * (sum.seconds / j->cpus + sum.after) + TIME_MORE;
		j->seconds = sum.unknown || seconds > (double)limit ? limit : (uint64_t)seconds;
	}
	return 0;
}
