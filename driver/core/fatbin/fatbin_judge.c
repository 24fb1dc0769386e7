/* Whether libraries can run on GPUs. */

#include "core/fatbin/fatbin_look.h"
#include "core/fatbin/fatbin_parts.h"
#include "core/tables/gpu_runs.h"
#include "core/tables/tables.h"

bool fatbin_is_torch(const char *dist)
{
	return strcmp(dist, "torch") == 0;
}

/* The library without which torch does nothing on a GPU; 1.10 to 1.13 had it in two parts. */
static bool is_main(const struct fatbin_look *l)
{
	static const char *const names[] = {"libtorch_cuda.so", "libtorch_cuda_cu.so",
					    "libtorch_cuda_cpp.so"};
	return l->code && strings_contain(names, ARRAY_LEN(names), path_base(l->name));
}

static bool has_main(const struct fatbin_judging *j)
{
	for (size_t i = 0; i < j->count; i++)
		if (is_main(&j->looks[i]))
			return true;
	return false;
}

/* Whether a library counts for the verdict. */
static bool counts(const struct fatbin_judging *j, size_t i, bool main_alone)
{
	return j->looks[i].containers && (!main_alone || is_main(&j->looks[i]));
}

static size_t runs(const struct fatbin_judging *j, bool main_alone, unsigned gpu)
{
	size_t n = 0;

	for (size_t i = 0; i < j->count; i++) {
		bool others = false;
		if (!counts(j, i, main_alone))
			continue;
		n += fatbin_look_runs(&j->looks[i], j->wanted, gpu, &others);
		n += others && !main_alone;
	}

	return n;
}

static size_t runs_ptx(const struct fatbin_judging *j, bool main_alone, unsigned gpu)
{
	size_t n = 0;

	for (size_t i = 0; i < j->count; i++) {
		const struct fatbin_look *l = &j->looks[i];
		for (size_t k = 0; counts(j, i, main_alone) && k < l->groups_count; k++) {
			const struct fatbin_group *g = &l->groups[k];
			n += fatbin_runs_ptx(g->entries, g->count, j->wanted, gpu) ? g->containers
										   : 0;
		}
	}

	return n;
}

static unsigned number_of(const struct fatbin_entry *entry)
{
	return (unsigned)strtoul(entry->target, NULL, 10);
}

static bool has_image(const struct fatbin_group *g, const struct fatbin_entry *like)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->entries[i].kind == like->kind &&
		    number_of(&g->entries[i]) == number_of(like))
			return true;
	return false;
}

/* Fat binaries of the main library with an image of this kind and number. */
static size_t holding(const struct fatbin_judging *j, const struct fatbin_entry *like)
{
	size_t n = 0;

	for (size_t i = 0; i < j->count; i++)
		for (size_t k = 0; counts(j, i, true) && k < j->looks[i].groups_count; k++)
			n += has_image(&j->looks[i].groups[k], like)
				     ? j->looks[i].groups[k].containers
				     : 0;
	return n;
}

/* In how many the main library has code for the target
 * of torch's own list for which it has the least. */
static size_t least_listed(const struct fatbin_judging *j)
{
	size_t least = 0;

	for (size_t i = 0; i < j->count; i++)
		for (size_t k = 0; k < j->looks[i].listed_count; k++) {
			size_t n = holding(j, &j->looks[i].listed[k]);
			least = n && (!least || n < least) ? n : least;
		}
	return least;
}

/* The same of a torch without a list of several targets, as
 * slim leaves one: the target for which it has the most. */
static size_t most_held(const struct fatbin_judging *j)
{
	size_t most = 0;

	for (size_t i = 0; i < j->count; i++)
		for (size_t k = 0; counts(j, i, true) && k < j->looks[i].groups_count; k++)
			for (size_t x = 0; x < j->looks[i].groups[k].count; x++) {
				size_t n = holding(j, &j->looks[i].groups[k].entries[x]);
				most = n > most ? n : most;
			}
	return most;
}

static const char *held(const struct fatbin_judging *j, bool main_alone, struct arena *a)
{
	struct fatbin_count *all = NULL;
	struct strlist words = {0};
	size_t count = 0, cap = 0;

	for (size_t i = 0; i < j->count; i++)
		for (size_t k = 0; counts(j, i, main_alone) && k < j->looks[i].groups_count; k++) {
			const struct fatbin_group *g = &j->looks[i].groups[k];
			for (size_t x = 0; x < g->count; x++)
				(void)fatbin_count_for(a, &all, &count, &cap, &g->entries[x]);
		}
	if (count)
		array_sort(all, count, sizeof(*all), fatbin_count_cmp);
	for (size_t i = 0; i < count; i++)
		strlist_ref(&words, a, fatbin_name(&all[i], a));
	return count ? strlist_join(&words, a, ", ") : "fat binaries without code";
}

static int refuse(const struct fatbin_judging *j, bool main_alone, unsigned gpu, struct arena *a,
		  struct err *e)
{
	const char *of = j->what ? arena_printf(a, " of '%s'", j->what) : "",
		   *in = j->what ? arena_printf(a, "'%s'", j->what) : "it";

	if (main_alone)
		err_set(e, ERR_POLICY, "libtorch_cuda.so%s has no code for sm%u", of, gpu);
	else
		err_set(e, ERR_POLICY, "nothing in %s runs on sm%u", in, gpu);
	return err_hint(e, "it has %s", held(j, main_alone, a));
}

static int judge_one(const struct fatbin_judging *j, const struct fatbin_gpu *gpu, struct arena *a,
		     struct err *e)
{
	const bool main_alone = j->torch && has_main(j);
	const char *what = j->what ? arena_printf(a, "'%s'", j->what) : "it";
	const size_t n = runs(j, main_alone, gpu->number);

	if (!n)
		return refuse(j, main_alone, gpu->number, a, e);
	const struct gpu_row *renamed = gpu_renamed(j->tables, gpu->number, j->cuda);
	if (renamed) {
		err_set(e, ERR_POLICY, "%s has no code for sm%s: it is for CUDA %s", what,
			renamed->sm, j->cuda);
		return err_hint(e, "%s", renamed->note);
	}

	size_t own = main_alone && j->whole ? least_listed(j) : 0;
	if (main_alone && j->whole && !own)
		own = most_held(j);
	if (n < own) {
		err_set(e, ERR_POLICY,
			"libtorch_cuda.so%s has code for sm%u in %zu fat binaries only",
			j->what ? arena_printf(a, " of '%s'", j->what) : "", gpu->number, n);
		return err_hint(e, "it needs %zu, as for the GPUs that it was built for", own);
	}

	const size_t ptx = gpu->ptx && j->ptx ? runs_ptx(j, main_alone, gpu->number) : SIZE_MAX;
	if (ptx && ptx >= own)
		return 0;
	err_set(e, ERR_POLICY, "%s has no PTX that runs on sm%u", what, gpu->number);
	return err_hint(e, "leave out '+ptx'");
}

int fatbin_judge(const struct fatbin_judging *j, struct arena *a, struct err *e)
{
	bool any = false;

	for (size_t i = 0; i < j->count; i++)
		any = any || j->looks[i].code;
	for (size_t g = 0; any && g < j->wanted->count; g++)
		if (judge_one(j, &j->wanted->gpus[g], a, e) < 0)
			return -1;
	return 0;
}

char *fatbin_bare(const struct fatbin_judging *j, struct arena *a)
{
	struct strlist words = {0};

	for (size_t i = 0; i < j->count; i++)
		for (size_t g = 0; counts(j, i, false) && g < j->wanted->count; g++) {
			const struct fatbin_look *l = &j->looks[i];
			const unsigned gpu = j->wanted->gpus[g].number;
			bool others;
			if (fatbin_look_runs(l, j->wanted, gpu, &others) == 0 && !others)
				strlist_addf(&words, a, "%s (sm%u: 0 of %zu fat binaries)",
					     path_base(l->name), gpu, l->containers);
		}
	return strlist_join(&words, a, ", ");
}
