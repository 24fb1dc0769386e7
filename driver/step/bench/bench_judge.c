#include <math.h>

#include "base/sys/json.h"
#include "step/bench/bench.h"

#define MIB (1024.0 * 1024.0)
#define LARGEST 4.0
#define HALF 50.0 /* percent */

enum { LOWEST = 5 };

bool bench_other_first(unsigned pair)
{
	return pair % 2 == 1;
}

enum state {
	COMPARED,
	FAILED,  /* in one or in both: an exception, a dead process, the time limit */
	DIFFERS, /* the two computed something else */
	SKIPPED, /* it is not for this device or system */
};

static const char *const states[] = {"compared", "failed", "differs", "skipped"};

/* One workload on one side. */
struct measured {
	double *samples; /* of the runs, in their order */
	size_t count;
	double median, spread;
	const char *why; /* it was not measured; NULL: it was */
};

struct workload {
	const char *name, *unit; /* "s" or "bytes" */
	bool in_mean;
	enum state state;
	struct measured of[BENCH_SIDES];
	double ratio; /* the median of other / ours of each pair; 0 unless compared */
};

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

static enum state measure(const struct judging *j, enum bench_side side, struct workload *w)
{
	struct measured *m = &w->of[side];
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
	return failed ? FAILED : skipped ? SKIPPED : COMPARED;
}

/* Whether the two sides' results of one pair are one. */
static bool is_same(const struct bench_answer *x, const struct bench_answer *y)
{
	if (!x->has_sums && !y->has_sums)
		return true;
	return x->has_sums && y->has_sums && bench_same(x->sums, y->sums, fmax(x->tolerance, y->tolerance));
}

static struct workload judge(const struct judging *j, const char *name)
{
	struct workload w = {.name = name, .unit = "s"};
	enum state ours = measure(j, BENCH_OURS, &w), other = measure(j, BENCH_OTHER, &w);
	double *ratios = arena_array(j->arena, j->pairs, sizeof(*ratios));
	size_t count = 0;
	w.state = ours == FAILED || other == FAILED ? FAILED : ours == COMPARED ? other : ours;
	for (unsigned p = 0; p < j->pairs; p++) {
		const struct bench_answer *x = answer(j, p, BENCH_OURS, name), *y = answer(j, p, BENCH_OTHER, name);
		if (!x || !y || x->why || y->why)
			continue;
		ratios[count++] = y->value / x->value;
		if (w.state == COMPARED && (strcmp(x->unit, y->unit) != 0 || !is_same(x, y)))
			w.state = DIFFERS;
	}
	if (w.state == COMPARED && count == 0)
		w.state = FAILED;
	if (w.state == COMPARED)
		w.ratio = bench_median(ratios, count);
	return w;
}

/* ---- what is shown of it ---- */

static char *quantity(const struct workload *w, const struct measured *m, struct arena *a)
{
	if (m->count == 0)
		return arena_strdup(a, "-");
	if (strcmp(w->unit, "bytes") == 0)
		return arena_printf(a, "%.1f MiB", m->median / MIB);
	return arena_printf(a, m->median < 1e-5 ? "%.5f ms" : "%.3f ms", m->median * 1e3);
}

static char *widest(const struct workload *w, struct arena *a)
{
	const struct measured *x = &w->of[BENCH_OURS], *y = &w->of[BENCH_OTHER];
	if (x->count < 2 && y->count < 2)
		return arena_strdup(a, "-");
	return arena_printf(a, "%.0f%%", 100 * (x->spread > y->spread ? x->spread : y->spread));
}

static char *why_not(const struct workload *w, struct arena *a)
{
	const char *ours = w->of[BENCH_OURS].why, *other = w->of[BENCH_OTHER].why;
	if (w->state == COMPARED || w->state == DIFFERS)
		return arena_strdup(a, w->state == COMPARED ? "" : "the two have other results");
	if (ours && other && strcmp(ours, other) == 0)
		return arena_printf(a, "both: %s", ours);
	if (ours && other)
		return arena_printf(a, "the wheel: %s; the other: %s", ours, other);
	if (ours || other)
		return arena_printf(a, "%s: %s", ours ? "the wheel" : "the other", ours ? ours : other);
	return arena_strdup(a, "never in one pair");
}

static json_t *measured_json(const struct measured *m)
{
	json_t *samples = json_array();
	for (size_t i = 0; i < m->count; i++)
		json_array_append_new(samples, json_real(m->samples[i]));
	return json_pack("{s:o, s:o, s:o, s:o}", "median", m->count ? json_real(m->median) : json_null(), "spread",
			 m->count > 1 ? json_real(m->spread) : json_null(), "samples", samples, "why",
			 json_or_null(m->why));
}

/* For a page: the line of equal speed is in the middle; a ratio of LARGEST, or its reciprocal, fills its half. */
static void add_bar(json_t *o, double ratio)
{
	const double part = fabs(log(ratio) / log(LARGEST)), width = HALF * (part < 1 ? part : 1);
	json_object_set_new(o, "-class", json_string(ratio >= 1 ? "faster" : "slower"));
	json_object_set_new(o, "-left", json_real(ratio >= 1 ? HALF : HALF - width));
	json_object_set_new(o, "-width", json_real(width));
}

static json_t *workload_json(const struct workload *w, struct arena *a)
{
	const bool compared = w->state == COMPARED;
	json_t *o = json_pack("{s:s, s:s, s:b, s:s, s:o, s:o, s:o, s:s, s:s, s:s, s:o}", "name", w->name, "unit",
			      w->unit, "in_mean", (int)w->in_mean, "state", states[w->state], "wheel",
			      measured_json(&w->of[BENCH_OURS]), "other", measured_json(&w->of[BENCH_OTHER]), "ratio",
			      compared ? json_real(w->ratio) : json_null(), "-wheel",
			      quantity(w, &w->of[BENCH_OURS], a), "-other", quantity(w, &w->of[BENCH_OTHER], a),
			      "-spread", compared ? widest(w, a) : "", "-reason", json_or_null(why_not(w, a)));
	if (compared)
		add_bar(o, w->ratio);
	return o;
}

json_t *bench_judge(const struct bench_said *const *runs, unsigned pairs, unsigned threads, const unsigned *processors,
		    struct arena *a)
{
	const struct judging j = {runs, pairs, a};
	struct strlist names = {0};
	size_t failed = 0, differing = 0, compared = 0, n = 0, lowest[LOWEST + 1] = {0}; /* the least ratio first */
	/* In the order of the runs: the first has all that were asked for, unless its process ended early. */
	for (size_t i = 0; i < (size_t)pairs * BENCH_SIDES; i++)
		for (size_t k = 0; k < runs[i]->count; k++)
			strlist_once(&names, a, runs[i]->answers[k].name);
	struct workload *all = arena_array(a, names.count, sizeof(*all));
	double *ratios = arena_array(a, names.count, sizeof(*ratios));
	json_t *workloads = json_array(), *named = json_array(), *slower = json_array(), *held = json_array();
	for (size_t i = 0; i < names.count; i++) {
		struct workload *w = &all[i];
		*w = judge(&j, names.items[i]);
		json_array_append_new(workloads, workload_json(w, a));
		failed += w->state == FAILED;
		differing += w->state == DIFFERS;
		if (w->state != COMPARED || !w->in_mean)
			continue;
		ratios[compared++] = w->ratio;
		size_t at = n;
		for (; at > 0 && all[lowest[at - 1]].ratio > w->ratio; at--)
			lowest[at] = lowest[at - 1];
		lowest[at] = i;
		n += n < LOWEST && w->ratio < 1;
	}
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(named, json_string(all[lowest[i]].name));
		json_array_append_new(
			slower, json_pack("{s:s, s:f}", "name", all[lowest[i]].name, "ratio", all[lowest[i]].ratio));
	}
	for (unsigned i = 0; processors && i < threads; i++)
		json_array_append_new(held, json_integer(processors[i]));
	return json_pack("{s:i, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o}", "threads", (int)threads, "processors", held,
			 "geometric_mean", compared ? json_real(bench_geometric_mean(ratios, compared)) : json_null(),
			 "compared", (int)compared, "failed", (int)failed, "differing", (int)differing, "lowest", named,
			 "workloads", workloads, "-lowest", slower);
}

static const struct show set_rows[] = {
	{.text = "\n{threads} thread{threads:s}", .bold = true},
	{.each = "workloads",
	 .columns = {"workload={name}", ">the wheel={-wheel}", ">the other={-other}", ">ratio={ratio:.2}",
		     ">spread={-spread}", "why={state}: {-reason}"}},
	SHOW("geometric mean of {compared}", "{geometric_mean:.2}"),
	SHOW("slower than the other", "{name} ({ratio:.2})", .each = "-lowest", .join = ", "),
	{0}};

const struct show bench_rows[] = {SHOW("the wheel", "{wheel.file} (torch {wheel.torch}[, code for {wheel.cpu}])"),
				  SHOW("the other", "{other.file} (torch {other.torch}[, code for {other.cpu}])"),
				  {.text = "{pairs} pair{pairs:s}, {seconds} s a workload, on the {-device}; a ratio "
					   "above 1: the wheel is faster"},
				  {.each = "sets", .rows = set_rows},
				  {0}};

json_t *bench_json(const struct bench_request *q, const struct bench_result *r)
{
	json_t *sides[BENCH_SIDES];
	for (enum bench_side side = BENCH_OURS; side < BENCH_SIDES; side++)
		sides[side] = json_pack("{s:o, s:s, s:s}", "file", json_or_null(q->names[side]), "torch",
					r->torch[side], "cpu", r->cpu[side]);
	return json_pack("{s:i, s:o, s:o, s:s, s:i, s:f, s:f, s:o, s:b, s:o, s:s}", "schema", 1, "wheel",
			 sides[BENCH_OURS], "other", sides[BENCH_OTHER], "device", q->device, "pairs", (int)q->pairs,
			 "seconds", q->seconds, "limit", q->limit, "load",
			 r->load >= 0 ? json_real(r->load) : json_null(), "disturbed", (int)r->disturbed, "sets",
			 r->sets, "-device", strcmp(q->device, "cuda") == 0 ? "GPU" : "CPU");
}

/* ---- arithmetic ---- */

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
