#include <stdio.h>
#include <string.h>

#include "base/sys/json.h"
#include "step/bench/bench_print.h"

#define MIB (1024.0 * 1024.0)

const char *const bench_states[] = {[BENCH_COMPARED] = "compared",
				    [BENCH_FAILED] = "failed",
				    [BENCH_DIFFERS] = "differs",
				    [BENCH_SKIPPED] = "skipped"};

/* ---- texts ---- */

char *bench_quantity(const struct bench_workload *w, const struct bench_measured *m, struct arena *a)
{
	if (m->count == 0)
		return arena_strdup(a, "-");
	if (strcmp(w->unit, "bytes") == 0)
		return arena_printf(a, "%.1f MiB", m->median / MIB);
	return arena_printf(a, m->median < 1e-5 ? "%.5f ms" : "%.3f ms", m->median * 1e3);
}

char *bench_widest(const struct bench_workload *w, struct arena *a)
{
	const struct bench_measured *x = &w->of[BENCH_OURS], *y = &w->of[BENCH_OTHER];
	if (x->count < 2 && y->count < 2)
		return arena_strdup(a, "-");
	return arena_printf(a, "%.0f%%", 100 * (x->spread > y->spread ? x->spread : y->spread));
}

char *bench_why(const struct bench_workload *w, struct arena *a)
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

char *bench_threads(const struct bench_set *s, struct arena *a)
{
	return arena_printf(a, "%u thread%s", s->threads, s->threads == 1 ? "" : "s");
}

char *bench_asked(const struct bench_shown *s, struct arena *a)
{
	const struct bench_request *q = s->request;
	return arena_printf(a, "%u pair%s, %g s a workload, on %s", q->pairs, q->pairs == 1 ? "" : "s", q->seconds,
			    strcmp(q->device, "cuda") == 0 ? "the GPU" : "the CPU");
}

char *bench_torch(const struct bench_shown *s, enum bench_side side, struct arena *a)
{
	const char *torch = s->result->torch[side], *cpu = s->result->cpu[side];
	return *cpu ? arena_printf(a, "torch %s, code for %s", torch, cpu) : arena_printf(a, "torch %s", torch);
}

static void add_row(const struct bench_workload *w, struct buf *out)
{
	AUTO_ARENA struct arena a = {0};
	const char *ours = bench_quantity(w, &w->of[BENCH_OURS], &a),
		   *other = bench_quantity(w, &w->of[BENCH_OTHER], &a);
	if (w->state == BENCH_COMPARED)
		buf_printf(out, "  %-26s %13s %13s %10.2f %7s\n", w->name, ours, other, w->ratio, bench_widest(w, &a));
	else
		buf_printf(out, "  %-26s %s: %s\n", w->name, bench_states[w->state], bench_why(w, &a));
}

static void add_set(const struct bench_set *s, struct buf *out)
{
	AUTO_ARENA struct arena a = {0};
	buf_printf(out, "\n%-28s %13s %13s %10s %7s\n", bench_threads(s, &a), "the wheel", "the other", "ratio",
		   "spread");
	for (size_t i = 0; i < s->count; i++)
		add_row(&s->workloads[i], out);
	if (s->compared)
		buf_printf(out, "  %-26s %13s %13s %10.2f\n", arena_printf(&a, "geometric mean of %zu", s->compared),
			   "", "", s->mean);
	for (size_t i = 0; i < s->lowest_count; i++)
		buf_printf(out, "%s%s (%.2f)", i ? ", " : "  slower than the other: ", s->workloads[s->lowest[i]].name,
			   s->workloads[s->lowest[i]].ratio);
	if (s->lowest_count)
		buf_addc(out, '\n');
}

void bench_text(const struct bench_shown *s, struct buf *out)
{
	AUTO_ARENA struct arena a = {0};
	for (enum bench_side side = BENCH_OURS; side < BENCH_SIDES; side++)
		buf_printf(out, "%-10s %s (%s)\n", side == BENCH_OURS ? "the wheel" : "the other", s->names[side],
			   bench_torch(s, side, &a));
	buf_printf(out, "%s; a ratio above 1: the wheel is faster\n", bench_asked(s, &a));
	for (size_t i = 0; i < s->result->sets_count; i++)
		add_set(&s->result->sets[i], out);
}

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

static json_t *workload_json(const struct bench_workload *w)
{
	return json_pack("{s:s, s:s, s:b, s:s, s:o, s:o, s:o}", "name", w->name, "unit", w->unit, "in_mean",
			 (int)w->in_mean, "state", bench_states[w->state], "wheel", measured_json(&w->of[BENCH_OURS]),
			 "other", measured_json(&w->of[BENCH_OTHER]), "ratio",
			 w->state == BENCH_COMPARED ? json_real(w->ratio) : json_null());
}

static json_t *set_json(const struct bench_shown *shown, const struct bench_set *s)
{
	json_t *workloads = json_array(), *lowest = json_array(), *processors = json_array();
	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(workloads, workload_json(&s->workloads[i]));
	for (size_t i = 0; i < s->lowest_count; i++)
		json_array_append_new(lowest, json_string(s->workloads[s->lowest[i]].name));
	for (unsigned i = 0; shown->request->processors && i < s->threads; i++)
		json_array_append_new(processors, json_integer(shown->request->processors[i]));
	return json_pack("{s:i, s:o, s:o, s:i, s:i, s:i, s:o, s:o}", "threads", (int)s->threads, "processors",
			 processors, "geometric_mean", s->compared ? json_real(s->mean) : json_null(), "compared",
			 (int)s->compared, "failed", (int)s->failed, "differing", (int)s->differing, "lowest", lowest,
			 "workloads", workloads);
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
	return doc;
}
