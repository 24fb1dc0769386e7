/* Which code of a fat binary stays for a list of GPUs. */

#include "core/fatbin/fatbin_parts.h"
#include "core/tables/gpu_runs.h"

static bool is_alone(const struct fatbin_wanted *w, unsigned number)
{
	for (size_t i = 0; i < w->alone_count; i++)
		if (w->alone[i] == number)
			return true;
	return false;
}

/* Code that is not guaranteed to run counts as running, and PTX stays next to it. */
static bool image_runs(const struct fatbin_wanted *w, const struct fatbin_entry *entry,
		       enum fatbin_kind kind, unsigned gpu)
{
	const struct gpu_code code = gpu_code_parse(entry->target);

	if (entry->kind != kind)
		return false;
	if (kind != FATBIN_CUBIN)
		return gpu_ptx_runs(code, gpu);
	const bool code_is_chip = is_alone(w, code.number), gpu_is_chip = is_alone(w, gpu);
	return gpu_binary_runs(code, gpu, code_is_chip, gpu_is_chip) != GPU_RUNS_NO;
}

bool fatbin_runs(const struct fatbin_entry *entries, size_t count, const struct fatbin_wanted *w,
		 unsigned gpu)
{
	for (size_t i = 0; i < count; i++)
		if (entries[i].kind != FATBIN_OTHER &&
		    image_runs(w, &entries[i], entries[i].kind, gpu))
			return true;
	return false;
}

bool fatbin_runs_ptx(const struct fatbin_entry *entries, size_t count,
		     const struct fatbin_wanted *w, unsigned gpu)
{
	for (size_t i = 0; i < count; i++)
		if (image_runs(w, &entries[i], FATBIN_PTX, gpu))
			return true;
	return false;
}

/* Keeps all of one kind with the highest number that runs: the driver chooses between 90 and 90a.
 * Returns the number, 0 if nothing runs. */
static unsigned keep_best(const struct fatbin_choice *c, enum fatbin_kind kind, unsigned gpu)
{
	unsigned best = 0;

	for (size_t i = 0; i < c->count; i++) {
		const unsigned number = gpu_code_parse(c->entries[i].target).number;
		if (image_runs(c->w, &c->entries[i], kind, gpu) && number > best)
			best = number;
	}

	for (size_t i = 0; i < c->count && best; i++) {
		const bool highest = gpu_code_parse(c->entries[i].target).number == best;
		c->keep[i] = c->keep[i] || (highest && image_runs(c->w, &c->entries[i], kind, gpu));
	}

	return best;
}

void fatbin_choose(const struct fatbin_choice *c)
{
	for (size_t i = 0; i < c->count; i++)
		c->keep[i] = c->entries[i].kind == FATBIN_OTHER;
	for (size_t g = 0; g < c->w->count; g++) {
		unsigned gpu = c->w->gpus[g].number, cubin, ptx = 0, lto = 0;
		cubin = keep_best(c, FATBIN_CUBIN, gpu);
		bool sure = cubin == gpu || (cubin && !is_alone(c->w, gpu));
		if (!sure || c->w->gpus[g].ptx)
			ptx = keep_best(c, FATBIN_PTX, gpu);
		if (!cubin && !ptx)
			lto = keep_best(c, FATBIN_LTO, gpu);
		if (c->runs)
			c->runs[g] = cubin || ptx || lto;
	}
}
