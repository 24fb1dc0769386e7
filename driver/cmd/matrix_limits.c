/* Jobs that need more than the runners of their service have, caches that take more than it keeps,
 * and what to do. */
#include "cmd/select.h"
#include "core/ci/ci_caches.h"

/* How many times an estimate another machine may take: of what was measured, and of a rough one. */
#define MEASURED_FACTOR 2
#define ROUGH_FACTOR 3
#define GIB (1024.0 * 1024 * 1024)

struct too_large {
	const struct ci_plan *plan;
	const char *format;
	unsigned count;
	const struct ci_job *worst;
};

static double longest_seconds(const struct ci_job *j)
{
	return j->estimate * (j->rough ? ROUGH_FACTOR : MEASURED_FACTOR);
}

static bool is_too_long(const struct too_large *l, const struct ci_job *j)
{
	return longest_seconds(j) > 60.0 * ci_limits(l->plan->tables, l->format, j->runner).minutes;
}

static bool is_too_big(const struct too_large *l, const struct ci_job *j)
{
	const uint64_t disk = ci_limits(l->plan->tables, l->format, j->runner).disk;
	return disk && j->disk > disk;
}

static double time_of(const struct ci_job *j)
{
	return longest_seconds(j);
}

static double disk_of(const struct ci_job *j)
{
	return (double)j->disk;
}

static void find(struct too_large *l, bool (*is)(const struct too_large *l, const struct ci_job *j),
		 double (*size)(const struct ci_job *j))
{
	for (size_t i = 0; i < l->plan->count; i++) {
		const struct ci_job *j = &l->plan->jobs[i];
		if (!is(l, j))
			continue;
		l->count++;
		l->worst = l->worst && size(l->worst) >= size(j) ? l->worst : j;
	}
}

/* "2 of 5 jobs" */
static const char *how_many(const struct too_large *l, struct arena *a)
{
	return arena_printf(a, "%u of %zu job%s", l->count, l->plan->count, plural(l->plan->count));
}

static void warn_time(struct cmd_context *c, const struct too_large *l)
{
	const struct ci_job *j = l->worst;
	const unsigned minutes = ci_limits(l->plan->tables, l->format, j->runner).minutes;
	const char *shards = "";
	char takes[32], longest[32];

	size_time(takes, sizeof(takes), j->estimate);
	size_time(longest, sizeof(longest), longest_seconds(j));
	if (j->shares && !j->shards)
		shards = arena_printf(c->arena, "use --ccache-remote URL --shards %u, or ",
				      (unsigned)(longest_seconds(j) / (60.0 * minutes)) + 1);
	log_warn(c->run->log,
		 "%s may exceed the time limit: '%s' needs about %s, up to %s%s, with %u "
		 "processor%s, and '%s' has %u minutes; %suse fewer GPU targets, or your own "
		 "runners and their 'minutes' with --runner-map FILE",
		 how_many(l, c->arena), j->id, takes, longest,
		 j->rough ? " (a rough estimate)" : "", j->cpus, plural(j->cpus),
		 j->runner->labels[0], minutes, shards);
}

static void warn_disk(struct cmd_context *c, const struct too_large *l)
{
	const struct ci_job *j = l->worst;

	log_warn(c->run->log,
		 "%s need%s more disk than the runner has: '%s' needs %.1f GiB, and '%s' has %.1f "
		 "GiB; name another "
		 "with --runner-map FILE: 'runners: [{labels: [%s]}]'",
		 how_many(l, c->arena), l->count == 1 ? "s" : "", j->id, (double)j->disk / GIB,
		 j->runner->labels[0],
		 (double)ci_limits(l->plan->tables, l->format, j->runner).disk / GIB,
		 ci_larger(l->plan->tables, l->format, j->platform, j->disk));
}

/* A service that drops caches lets later jobs compile and download again. */
static void warn_caches(struct cmd_context *c, const struct ci_plan *p, const char *format)
{
	const uint64_t most = size_bytes(ci_format(p->tables, format)->caches);
	const struct ci_kept k = ci_kept(p, format);
	const uint64_t all = k.compiled_bytes + k.worlds_bytes;
	const char *remote = p->remote ? "" : "use --ccache-remote URL, or ";

	if (!most || all <= most)
		return;
	log_warn(c->run->log,
		 "the caches may exceed what %s keeps: compiled objects up to %.1f GiB (%zu "
		 "caches), downloads %.1f GiB (%zu worlds), and a repository has %.1f GiB; %sfewer "
		 "variants with --only GLOB",
		 format, (double)k.compiled_bytes / GIB, k.compiled, (double)k.worlds_bytes / GIB,
		 k.worlds, (double)most / GIB, remote);
}

void matrix_warn(struct cmd_context *c, const struct ci_plan *p, const char *format)
{
	struct too_large time = {.plan = p, .format = format}, disk = time;

	find(&time, is_too_long, time_of);
	find(&disk, is_too_big, disk_of);
	if (disk.count)
		warn_disk(c, &disk);
	if (time.count)
		warn_time(c, &time);
	warn_caches(c, p, format);
}
