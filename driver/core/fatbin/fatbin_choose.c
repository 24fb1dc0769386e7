#include <stdlib.h>

#include "core/fatbin/fatbin_cut.h"

struct image {
	unsigned number;
	char suffix; /* '\0', 'a', 'f' */
};

static struct image image_of(const struct fatbin_entry *entry)
{
	char *end;
	unsigned long number = strtoul(entry->target, &end, 10);
	return (struct image){(unsigned)number, *end};
}

static bool is_alone(const struct fatbin_wanted *w, unsigned number)
{
	for (size_t i = 0; i < w->alone_count; i++)
		if (w->alone[i] == number)
			return true;
	return false;
}

/* Binaries run on the same and on higher minor numbers of their line; those of a system on a chip on it alone. What
 * such a chip takes of others' is not promised either way: it counts as running, and PTX stays beside it. */
static bool cubin_runs(const struct fatbin_wanted *w, struct image i, unsigned gpu)
{
	if (i.number == gpu)
		return true;
	return i.suffix != 'a' && i.number < gpu && i.number / 10 == gpu / 10 && !is_alone(w, i.number);
}

/* PTX runs on all that is newer; "a" on that chip alone, "f" in its family. */
static bool ptx_runs(struct image i, unsigned gpu)
{
	return i.number == gpu ||
	       (i.number < gpu && (i.suffix == '\0' || (i.suffix == 'f' && i.number / 10 == gpu / 10)));
}

static bool image_runs(const struct fatbin_wanted *w, const struct fatbin_entry *entry, enum fatbin_kind kind,
		       unsigned gpu)
{
	struct image i = image_of(entry);
	return entry->kind == kind && (kind == FATBIN_CUBIN ? cubin_runs(w, i, gpu) : ptx_runs(i, gpu));
}

/* All of one kind with the highest number that runs: which of 90 and 90a a driver takes is its own affair. The number,
 * 0 if there is none. */
static unsigned keep_best(const struct fatbin_entry *entries, size_t count, const struct fatbin_wanted *w,
			  enum fatbin_kind kind, unsigned gpu, bool *keep)
{
	unsigned best = 0;
	for (size_t i = 0; i < count; i++)
		if (image_runs(w, &entries[i], kind, gpu) && image_of(&entries[i]).number > best)
			best = image_of(&entries[i]).number;
	for (size_t i = 0; i < count && best; i++)
		if (image_runs(w, &entries[i], kind, gpu) && image_of(&entries[i]).number == best)
			keep[i] = true;
	return best;
}

void fatbin_choose(const struct fatbin_entry *entries, size_t count, const struct fatbin_wanted *w, bool *keep,
		   bool *runs)
{
	for (size_t i = 0; i < count; i++)
		keep[i] = entries[i].kind == FATBIN_OTHER;
	for (size_t g = 0; g < w->count; g++) {
		unsigned gpu = w->gpus[g].number, cubin, ptx = 0, lto = 0;
		cubin = keep_best(entries, count, w, FATBIN_CUBIN, gpu, keep);
		bool sure = cubin == gpu || (cubin && !is_alone(w, gpu));
		if (!sure || w->gpus[g].ptx)
			ptx = keep_best(entries, count, w, FATBIN_PTX, gpu, keep);
		if (!cubin && !ptx)
			lto = keep_best(entries, count, w, FATBIN_LTO, gpu, keep);
		if (runs)
			runs[g] = cubin || ptx || lto;
	}
}
