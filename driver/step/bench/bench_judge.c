#include <math.h>

#include "step/bench/bench.h"

bool bench_other_first(unsigned pair)
{
	return pair % 2 == 1;
}

/* What is judged: the answers of all runs. */
struct judging {
	const struct bench_said *const *runs;
	unsigned pairs;
	struct arena *arena;
};

static const struct bench_answer *answer(const struct judging *j, unsigned pair, enum bench_side side, const char *name)
{
	return bench_said_find(j->runs[(size_t)pair * BENCH_SIDES + side], name);
}

static enum bench_state measure(const struct judging *j, enum bench_side side, struct bench_workload *w)
{
	struct bench_measured *m = &w->of[side];
	const char *failed = NULL, *skipped = NULL;
	m->samples = arena_array(j->arena, j->pairs, sizeof(*m->samples));
	for (unsigned p = 0; p < j->pairs; p++) {
		const struct bench_answer *x = answer(j, p, side, w->name);
		if (!x)
			continue;
		const char **why = x->skipped ? &skipped : &failed;
		if (x->why && !*why)
			*why = x->why;
		if (x->why)
			continue;
		m->samples[m->count++] = x->value;
		w->unit = x->unit;
		w->in_mean = x->in_mean;
	}
	m->median = bench_median(m->samples, m->count);
	m->spread = bench_spread(m->samples, m->count);
	if (!failed && !skipped && m->count == 0)
		failed = "it gave no answer";
	m->why = failed ? failed : skipped;
	return failed ? BENCH_FAILED : skipped ? BENCH_SKIPPED : BENCH_COMPARED;
}

/* Whether the two sides' results of one pair are one. */
static bool is_same(const struct bench_answer *x, const struct bench_answer *y)
{
	if (!x->has_sums && !y->has_sums)
		return true;
	return x->has_sums && y->has_sums && bench_same(x->sums, y->sums, fmax(x->tolerance, y->tolerance));
}

static void compare(const struct judging *j, struct bench_workload *w)
{
	double *ratios = arena_array(j->arena, j->pairs, sizeof(*ratios));
	size_t count = 0;
	for (unsigned p = 0; p < j->pairs; p++) {
		const struct bench_answer *x = answer(j, p, BENCH_OURS, w->name),
					  *y = answer(j, p, BENCH_OTHER, w->name);
		if (!x || !y || x->why || y->why)
			continue;
		ratios[count++] = y->value / x->value;
		if (w->state == BENCH_COMPARED && (strcmp(x->unit, y->unit) != 0 || !is_same(x, y)))
			w->state = BENCH_DIFFERS;
	}
	if (w->state == BENCH_COMPARED && count == 0)
		w->state = BENCH_FAILED;
	if (w->state == BENCH_COMPARED)
		w->ratio = bench_median(ratios, count);
}

/* The least ratios, by insertion: there are few. */
static void find_lowest(struct bench_set *s, struct arena *a)
{
	size_t *lowest = arena_array(a, BENCH_LOWEST + 1, sizeof(*lowest)), n = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct bench_workload *w = &s->workloads[i];
		if (w->state != BENCH_COMPARED || !w->in_mean || w->ratio >= 1)
			continue;
		size_t at = n;
		for (; at > 0 && s->workloads[lowest[at - 1]].ratio > w->ratio; at--)
			lowest[at] = lowest[at - 1];
		lowest[at] = i;
		n += n < BENCH_LOWEST;
	}
	s->lowest = lowest;
	s->lowest_count = n;
}

void bench_judge(const struct bench_said *const *runs, unsigned pairs, unsigned threads, struct arena *a,
		 struct bench_set *ret)
{
	const struct judging j = {runs, pairs, a};
	struct strlist names = {0};
	/* In the order of the runs: the first has all that were asked for, unless its process ended early. */
	for (size_t i = 0; i < (size_t)j.pairs * BENCH_SIDES; i++)
		for (size_t k = 0; k < j.runs[i]->count; k++)
			strlist_once(&names, j.arena, j.runs[i]->answers[k].name);
	struct bench_set s = {.threads = threads, .count = names.count};
	s.workloads = arena_array(a, names.count, sizeof(*s.workloads));
	double *ratios = arena_array(a, names.count, sizeof(*ratios));
	for (size_t i = 0; i < names.count; i++) {
		struct bench_workload *w = &s.workloads[i];
		w->name = names.items[i];
		w->unit = "s";
		enum bench_state ours = measure(&j, BENCH_OURS, w), other = measure(&j, BENCH_OTHER, w);
		bool failed = ours == BENCH_FAILED || other == BENCH_FAILED;
		w->state = failed ? BENCH_FAILED : ours == BENCH_COMPARED ? other : ours;
		compare(&j, w);
		s.failed += w->state == BENCH_FAILED;
		s.differing += w->state == BENCH_DIFFERS;
		if (w->state == BENCH_COMPARED && w->in_mean)
			ratios[s.compared++] = w->ratio;
	}
	s.mean = bench_geometric_mean(ratios, s.compared);
	find_lowest(&s, a);
	*ret = s;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double bench_median(const double *values, size_t count)
{
	AUTO_ARENA struct arena a = {0};
	if (count == 0)
		return 0;
	double *sorted = arena_array(&a, count, sizeof(*sorted));
	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double bench_spread(const double *values, size_t count)
{
	double least = count ? values[0] : 0, most = least;
	for (size_t i = 1; i < count; i++) {
		least = values[i] < least ? values[i] : least;
		most = values[i] > most ? values[i] : most;
	}
	double median = bench_median(values, count);
	return median > 0 ? (most - least) / median : 0;
}

double bench_geometric_mean(const double *values, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += log(values[i]);
	return count ? exp(sum / (double)count) : 0;
}

bool bench_same(const double a[2], const double b[2], double tolerance)
{
	double size = fmax(fabs(a[0]), fabs(b[0]));
	return fabs(a[0] - b[0]) <= tolerance * size && fabs(a[1] - b[1]) <= tolerance * size;
}
