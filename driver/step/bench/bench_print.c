#include <math.h>

#include "base/sys/json.h"
#include "step/bench/bench.h"

#define MIB (1024.0 * 1024.0)
#define LARGEST 4.0
#define HALF 50.0 /* percent */

static const char *const states[] = {[BENCH_COMPARED] = "compared",
				     [BENCH_FAILED] = "failed",
				     [BENCH_DIFFERS] = "differs",
				     [BENCH_SKIPPED] = "skipped"};

/* ---- texts ---- */

static char *quantity(const struct bench_workload *w, const struct bench_measured *m, struct arena *a)
{
	if (m->count == 0)
		return arena_strdup(a, "-");
	if (strcmp(w->unit, "bytes") == 0)
		return arena_printf(a, "%.1f MiB", m->median / MIB);
	return arena_printf(a, m->median < 1e-5 ? "%.5f ms" : "%.3f ms", m->median * 1e3);
}

static char *widest(const struct bench_workload *w, struct arena *a)
{
	const struct bench_measured *x = &w->of[BENCH_OURS], *y = &w->of[BENCH_OTHER];
	if (x->count < 2 && y->count < 2)
		return arena_strdup(a, "-");
	return arena_printf(a, "%.0f%%", 100 * (x->spread > y->spread ? x->spread : y->spread));
}

static char *why_not(const struct bench_workload *w, struct arena *a)
{
	const char *ours = w->of[BENCH_OURS].why, *other = w->of[BENCH_OTHER].why;
	switch (w->state) {
	case BENCH_COMPARED:
		return arena_strdup(a, "");
	case BENCH_DIFFERS:
		return arena_strdup(a, "the two have other results");
	case BENCH_FAILED:
	case BENCH_SKIPPED:
		break;
	}
	if (ours && other && strcmp(ours, other) == 0)
		return arena_printf(a, "both: %s", ours);
	if (ours && other)
		return arena_printf(a, "the wheel: %s; the other: %s", ours, other);
	if (ours || other)
		return arena_printf(a, "%s: %s", ours ? "the wheel" : "the other", ours ? ours : other);
	return arena_strdup(a, "never in one pair");
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

/* ---- JSON ---- */

static json_t *measured_json(const struct bench_measured *m)
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

static json_t *workload_json(const struct bench_workload *w)
{
	AUTO_ARENA struct arena a = {0};
	const bool compared = w->state == BENCH_COMPARED;
	json_t *o = json_pack("{s:s, s:s, s:b, s:s, s:o, s:o, s:o, s:s, s:s, s:s, s:o}", "name", w->name, "unit",
			      w->unit, "in_mean", (int)w->in_mean, "state", states[w->state], "wheel",
			      measured_json(&w->of[BENCH_OURS]), "other", measured_json(&w->of[BENCH_OTHER]), "ratio",
			      compared ? json_real(w->ratio) : json_null(), "-wheel",
			      quantity(w, &w->of[BENCH_OURS], &a), "-other", quantity(w, &w->of[BENCH_OTHER], &a),
			      "-spread", compared ? widest(w, &a) : "", "-reason", json_or_null(why_not(w, &a)));
	if (compared)
		add_bar(o, w->ratio);
	return o;
}

static json_t *set_json(const struct bench_shown *shown, const struct bench_set *s)
{
	json_t *workloads = json_array(), *lowest = json_array(), *slower = json_array(), *processors = json_array();
	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(workloads, workload_json(&s->workloads[i]));
	for (size_t i = 0; i < s->lowest_count; i++) {
		const struct bench_workload *w = &s->workloads[s->lowest[i]];
		json_array_append_new(lowest, json_string(w->name));
		json_array_append_new(slower, json_pack("{s:s, s:f}", "name", w->name, "ratio", w->ratio));
	}
	for (unsigned i = 0; shown->request->processors && i < s->threads; i++)
		json_array_append_new(processors, json_integer(shown->request->processors[i]));
	return json_pack("{s:i, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o}", "threads", (int)s->threads, "processors",
			 processors, "geometric_mean", s->compared ? json_real(s->mean) : json_null(), "compared",
			 (int)s->compared, "failed", (int)s->failed, "differing", (int)s->differing, "lowest", lowest,
			 "workloads", workloads, "-lowest", slower);
}

json_t *bench_json(const struct bench_shown *s)
{
	const struct bench_request *q = s->request;
	const struct bench_result *r = s->result;
	json_t *sets = json_array();
	for (size_t i = 0; i < r->sets_count; i++)
		json_array_append_new(sets, set_json(s, &r->sets[i]));
	json_t *doc = json_pack("{s:i}", "schema", 1);
	for (enum bench_side side = BENCH_OURS; side < BENCH_SIDES; side++)
		json_object_set_new(doc, side == BENCH_OURS ? "wheel" : "other",
				    json_pack("{s:o, s:s, s:s}", "file", json_or_null(s->names[side]), "torch",
					      r->torch[side], "cpu", r->cpu[side]));
	json_object_set_new(doc, "device", json_string(q->device));
	json_object_set_new(doc, "pairs", json_integer(q->pairs));
	json_object_set_new(doc, "seconds", json_real(q->seconds));
	json_object_set_new(doc, "limit", json_real(q->limit));
	json_object_set_new(doc, "load", r->load >= 0 ? json_real(r->load) : json_null());
	json_object_set_new(doc, "disturbed", json_boolean(r->disturbed));
	json_object_set_new(doc, "sets", sets);
	json_object_set_new(doc, "-device", json_string(strcmp(q->device, "cuda") == 0 ? "GPU" : "CPU"));
	return doc;
}
