#include "step/pipeline/cost.h"

#include <string.h>

#include "base/size.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "cache/store.h"
#include "step/fetch/archives.h"
#include "step/fetch/fetch.h"

#define NVCC_RULE "CUDA_COMPILER"

/* What no build without CUDA makes. */
static bool is_gpu(const char *path)
{
	return strstr(path, ".cu.") || strstr(path, "cuda.dir/");
}

static double add_units(const struct cost_request *q, const struct weights *w, bool *nvcc)
{
	double seconds = 0;
	*nvcc = false;
	for (size_t i = 0; i < w->count; i++) {
		const struct weight *u = &w->units[i];
		if (!q->gpus && is_gpu(u->path))
			continue;
		seconds += u->seconds;
		*nvcc = *nvcc || (strstr(u->path, ".cu.") && u->seconds > 0);
	}
	return seconds;
}

/* The tables list no unit of nvcc, but how many there are and what a few of them took. */
static double guess_gpu(const struct weights *w)
{
	double seconds = 0;
	for (size_t i = 0; i < w->classes_count; i++)
		if (strcmp(w->classes[i].rule, NVCC_RULE) == 0)
			seconds += w->classes[i].seconds * w->classes[i].units;
	return seconds;
}

struct cost cost_of(const struct cost_request *q, const struct run *run, struct arena *a)
{
	const struct weights *w = weights_load(q->profiles, q->package, q->release, q->gpus, q->store, run, a);
	struct cost c = {.after = w->after,
			 .here = w->factor > 0,
			 .table = w->release,
			 .release = q->release,
			 .memory = jobs_from_table(q->row ? q->row->memory : NULL)};
	bool nvcc;
	c.units = add_units(q, w, &nvcc);
	if (!q->gpus || c.units <= 0)
		return c;
	const double guess = nvcc ? 0 : guess_gpu(w);
	c.gpu = nvcc ? COST_GPU_MEASURED : guess > 0 ? COST_GPU_GUESSED : COST_GPU_UNKNOWN;
	c.units += guess;
	return c;
}

unsigned cost_jobs(const struct cost *c, unsigned asked)
{
	return jobs_plan(jobs_usable(machine_memory()), machine_processors(), asked, &c->memory).total;
}

double cost_seconds(const struct cost *c, unsigned jobs)
{
	return c->units > 0 ? c->units / (jobs ? jobs : 1) + c->after : 0;
}

char *cost_text(const struct cost *c, unsigned jobs, struct arena *a)
{
	char whole[32], units[32];
	if (c->units <= 0)
		return arena_printf(a, "not known: no build of release %s was measured", c->release);
	size_time(whole, sizeof(whole), cost_seconds(c, jobs));
	size_time(units, sizeof(units), c->units);
	const bool other = strcmp(c->table, c->release) != 0;
	const char *by = other ? arena_printf(a, "; a guess, by what %s took", c->table) : "";
	const char *gpu = c->gpu == COST_GPU_UNKNOWN   ? "; without GPU code"
			  : c->gpu == COST_GPU_GUESSED ? "; GPU code is a guess"
						       : "";
	return arena_printf(a, "%s %s with %u job%s, %s of processors%s%s",
			    c->gpu == COST_GPU_UNKNOWN ? "more than" : "about", whole, jobs, jobs == 1 ? "" : "s",
			    units, by, gpu);
}

/* The Debian archive of a source that has no other places; NULL: it has. */
static const char *only_archive(const struct source_row *s, struct arena *a)
{
	const char *archive = NULL;
	for (unsigned i = 0; i < s->urls_count; i++) {
		struct deb_place p;
		if (strncmp(s->urls[i], "deb:", 4) != 0 || deb_place_parse(s->urls[i] + 4, a, &p, ERR_IGNORED) < 0)
			return NULL;
		archive = p.archive;
	}
	return archive;
}

void cost_sources(struct store *s, const struct package_row *row, struct arena *a, struct cost_downloads *d)
{
	for (unsigned i = 0; i < row->sources_count; i++) {
		if (fetch_has(s, row->sources[i].sha256))
			continue;
		d->sources += row->sources[i].bytes;
		d->of_unknown += !row->sources[i].bytes;
		const char *archive = only_archive(&row->sources[i], a);
		if (archive)
			strlist_once(&d->archives, a, archive);
	}
}

char *cost_downloads_text(const struct cost_downloads *d, struct arena *a)
{
	struct strlist parts = {0};
	if (d->world)
		strlist_addf(&parts, a, "%.1f MB for the world", (double)d->world / 1e6);
	if (d->sources)
		strlist_addf(&parts, a, "%.1f MB of sources", (double)d->sources / 1e6);
	if (d->of_unknown)
		strlist_addf(&parts, a, "%u file%s of unknown size", d->of_unknown, d->of_unknown == 1 ? "" : "s");
	return parts.count ? strlist_join(&parts, a, ", ") : arena_strdup(a, "nothing: the store has it all");
}

static json_t *seconds_json(double seconds)
{
	return seconds > 0 ? json_real(seconds) : json_null();
}

json_t *cost_json(const struct cost *c, const struct cost_downloads *d, unsigned jobs)
{
	static const char *const gpu[] = {NULL, "measured", "guessed", "not counted"};
	const json_int_t bytes = (json_int_t)d->world + (json_int_t)d->sources;
	const bool known = c->units > 0;
	return json_pack("{s:I, s:i, s:i, s:o, s:o, s:o, s:o}", "download_bytes", bytes, "downloads_of_unknown_size",
			 (int)d->of_unknown, "jobs", (int)jobs, "seconds", seconds_json(cost_seconds(c, jobs)),
			 "processor_seconds", seconds_json(c->units), "gpu_code", json_or_null(gpu[c->gpu]), "by",
			 json_or_null(known ? c->table : NULL));
}
