#include "core/plan/gpu_parts.h"

#include "core/tables/gpu_runs.h"

/* How much of the code makes a wheel that runs: of
 * parts with all that lead among them, and of others. */
enum { SHARE = 5, HALF = 2 };

/* Which part of the bytes makes libraries without GPU code a use of
 * the wheel, beside files with such code, which are then a feature. */
enum { HOSTS = 100 };

struct group {
	const char *name, *file; /* file: of its first part */
	size_t units;
	bool leads, runs;
};

struct judging {
	const struct gpu_parts *p;
	struct group *groups;
	size_t count;
	unsigned *gpus; /* numbers: of all targets, and of the GPU at hand */
	size_t gpus_count;
};

static unsigned number_of(const char *text)
{
	return gpu_code_parse(text).number;
}

static bool part_serves(const struct gpu_parts *p, const struct gpu_part *part, unsigned gpu)
{
	const struct fatbin_wanted w = {.alone = p->alone, .alone_count = p->alone_count};
	return fatbin_runs(part->entries, part->count, &w, gpu);
}

static bool driver_takes(const struct gpu_part *part, const char *driver)
{
	return !*driver || !*part->driver || version_cmp(driver, part->driver) >= 0;
}

/* If the driver runs no alternative, all count: the driver has a phrase of its own. */
static bool group_serves(const struct judging *j, size_t group, unsigned gpu, const char *driver)
{
	bool any = false, taken = false;

	for (size_t i = 0; i < j->p->count; i++) {
		const struct gpu_part *part = &j->p->items[i];
		if (strcmp(part->group, j->groups[group].name) != 0)
			continue;
		const bool serves = part_serves(j->p, part, gpu);
		if (driver_takes(part, driver)) {
			taken = true;
			if (serves)
				return true;
		}

		any = any || serves;
	}

	return any && !taken;
}

static bool serves_generation(const struct judging *j, size_t group, unsigned gpu)
{
	for (size_t i = 0; i < j->gpus_count; i++)
		if (j->gpus[i] / 10 == gpu / 10 && group_serves(j, group, j->gpus[i], ""))
			return true;
	return false;
}

/* Whether one serves all GPUs that the other does, and a generation more. */
static bool surpasses(const struct judging *j, size_t one, size_t other)
{
	bool more = false;

	for (size_t i = 0; i < j->gpus_count; i++) {
		const bool mine = group_serves(j, one, j->gpus[i], "");
		if (!mine && group_serves(j, other, j->gpus[i], ""))
			return false;
		more = more || (mine && !serves_generation(j, other, j->gpus[i]));
	}

	return more;
}

static void add_gpu(struct judging *j, unsigned gpu)
{
	for (size_t i = 0; i < j->gpus_count; i++)
		if (j->gpus[i] == gpu)
			return;
	j->gpus[j->gpus_count++] = gpu;
}

static void add_group(struct judging *j, const struct gpu_part *part)
{
	size_t k = 0;

	while (k < j->count && strcmp(j->groups[k].name, part->group) != 0)
		k++;
	if (k == j->count)
		j->groups[j->count++] = (struct group){part->group, part->file, .leads = true};
	if (part->units > j->groups[k].units)
		j->groups[k].units = part->units;
}

static struct judging judging_of(const struct gpu_parts *p, unsigned here, struct arena *a)
{
	struct judging j = {.p = p, .groups = arena_array(a, p->count + 1, sizeof(*j.groups))};
	size_t entries = 1;

	for (size_t i = 0; i < p->count; i++)
		entries += p->items[i].count;
	j.gpus = arena_array(a, entries, sizeof(*j.gpus));
	for (size_t i = 0; i < p->count; i++) {
		add_group(&j, &p->items[i]);
		for (size_t k = 0; k < p->items[i].count; k++)
			add_gpu(&j, number_of(p->items[i].entries[k].target));
	}

	if (here)
		add_gpu(&j, here);
	for (size_t i = 0; i < j.count; i++)
		for (size_t k = 0; k < j.count && j.groups[i].leads; k++)
			j.groups[i].leads = k == i || !surpasses(&j, k, i);
	return j;
}

static bool leaders_serve(const struct judging *j, unsigned gpu)
{
	for (size_t i = 0; i < j->count; i++)
		if (j->groups[i].leads && !group_serves(j, i, gpu, ""))
			return false;
	return true;
}

static bool is_shared(const struct judging *j)
{
	for (size_t i = 0; i < j->gpus_count; i++)
		if (leaders_serve(j, j->gpus[i]))
			return true;
	return false;
}

enum gpu_reach gpu_parts_reach(const struct gpu_parts *p, const struct gpu_here *here,
			       struct arena *a, struct strlist *ret_lacking)
{
	const unsigned gpu = number_of(here->capability);
	struct judging j = judging_of(p, gpu, a);
	size_t leading = 0, served = 0, units = 0, run_units = 0;

	for (size_t i = 0; i < j.count; i++) {
		struct group *g = &j.groups[i];
		g->runs = group_serves(&j, i, gpu, here->driver);
		leading += g->leads;
		served += g->leads && g->runs;
		units += g->units;
		run_units += g->runs ? g->units : 0;
		if (!g->runs)
			strlist_ref(ret_lacking, a, g->file);
	}

	if (!ret_lacking->count)
		return GPU_RUNS;
	const bool shared = is_shared(&j), hosted = p->host_bytes > p->bytes / HOSTS;
	if (hosted && p->hosts > j.count)
		return GPU_PARTLY;
	if (!served)
		return shared && !hosted ? GPU_LACKS : GPU_PERHAPS;
	const size_t share = served == leading ? SHARE : HALF;
	return !shared || run_units * share >= units ? GPU_PARTLY : GPU_PERHAPS;
}

void gpu_parts_targets(const struct gpu_parts *p, struct arena *a, struct strlist *ret)
{
	const struct judging j = judging_of(p, 0, a);
	const bool shared = is_shared(&j);

	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->items[i].count; k++) {
			const struct fatbin_entry *e = &p->items[i].entries[k];
			if (e->kind == FATBIN_OTHER ||
			    (shared && !leaders_serve(&j, number_of(e->target))))
				continue;
			strlist_once(ret, a,
				     arena_printf(a, "%s%s", e->target,
						  e->kind == FATBIN_CUBIN ? "" : "+PTX"));
		}
}
