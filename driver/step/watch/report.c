#include "step/watch/report.h"

#include <math.h>
#include <string.h>

#include "base/show.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/watch/report_parts.h"

#define BEST 10 /* how many of the slowest and largest build.json names */

/* Milliseconds are exact enough. */
static json_t *rounded(double x)
{
	return json_real(round(x * 1000) / 1000);
}

static json_t *units_data(const struct report_request *q, double epoch)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < q->units->count; i++) {
		const struct report_unit *u = &q->units->units[i];
		json_array_append_new(rows,
				      json_pack("[o,o,o,o,i,i,i,I]", json_or_null(u->path), json_or_null(u->source),
						rounded(u->start - epoch), rounded(u->end - u->start), (int)u->slot,
						(int)u->state, (int)u->kind, (json_int_t)u->peak_bytes));
	}
	return rows;
}

static json_t *series_data(const struct watch_result *w)
{
	json_t *at = json_array(), *memory = json_array(), *processors = json_array(), *compilers = json_array(),
	       *pressure = json_array();
	for (size_t i = 0; i < w->samples_count; i++) {
		const struct watch_sample *s = &w->samples[i];
		json_array_append_new(at, rounded(s->at));
		json_array_append_new(memory, json_integer((json_int_t)s->memory_bytes));
		json_array_append_new(processors, rounded(s->processors));
		json_array_append_new(compilers, json_integer(s->compilers));
		json_array_append_new(pressure, rounded(s->pressure));
	}
	return json_pack("{s:o,s:o,s:o,s:o,s:o}", "at", at, "memory", memory, "processors", processors, "compilers",
			 compilers, "pressure", pressure);
}

static json_t *steps_data(const struct watch_result *w)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < w->steps_count; i++)
		json_array_append_new(rows, json_pack("[o,o,o]", json_or_null(w->steps[i].name),
						      rounded(w->steps[i].begin), rounded(w->steps[i].end)));
	return rows;
}

/* The document as it may stand inside a script element: '<' can only be in strings, where it may be written in another
 * way. */
static int add_document(const json_t *data, struct buf *out, struct err *e)
{
	AUTO_FREE char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (!text)
		return err_set(e, ERR_SYSTEM, "the report cannot be written as JSON");
	for (const char *p = text; *p; p++) {
		if (*p == '<' || *p == '>' || *p == '&')
			buf_printf(out, "\\u%04x", (unsigned)*p);
		else
			buf_addc(out, *p);
	}
	return 0;
}

void report_up_to(struct report_rest *page, const char *mark, struct buf *out)
{
	const unsigned char *at = memmem(page->at, (size_t)(page->end - page->at), mark, strlen(mark));
	if (!at)
		abort();
	buf_add(out, page->at, (size_t)(at - page->at));
	page->at = at + strlen(mark);
}

int report_write(const struct report_request *q, const char *path, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	AUTO_JSON json_t *data = json_object();
	struct report_rest rest = {report_page, report_page + report_page_size};
	json_t *sizes;
	double epoch = q->watched->started > 0 || q->units->count == 0 ? q->watched->started : q->units->units[0].start;
	if (report_sizes(q->wheel, &sizes, e) < 0)
		return -1;
	json_object_set_new(data, "record", json_deep_copy(q->record));
	json_object_set_new(data, "units", units_data(q, epoch));
	json_object_set_new(data, "steps", steps_data(q->watched));
	json_object_set_new(data, "series", series_data(q->watched));
	json_object_set_new(data, "sizes", sizes);
	json_object_set_new(data, "watch_seconds", json_real(q->watched->own_cpu_seconds));
	const char *title = json_member(q->record, "wheel");
	report_up_to(&rest, "@TITLE@", &out);
	show_html(title ? title : "build report", &out);
	report_up_to(&rest, "@DATA@", &out);
	if (add_document(data, &out, e) < 0)
		return -1;
	buf_add(&out, rest.at, (size_t)(rest.end - rest.at));
	return fs_write(TRUSTED, path, out.data, out.len, 0644, e);
}

static int by_seconds(const void *a, const void *b)
{
	const struct report_unit *x = *(const struct report_unit *const *)a, *y = *(const struct report_unit *const *)b;
	double dx = x->end - x->start, dy = y->end - y->start;
	return dx != dy ? (dx < dy) - (dx > dy) : strcmp(x->path, y->path);
}

static int by_peak(const void *a, const void *b)
{
	const struct report_unit *x = *(const struct report_unit *const *)a, *y = *(const struct report_unit *const *)b;
	return x->peak_bytes != y->peak_bytes ? (x->peak_bytes < y->peak_bytes) - (x->peak_bytes > y->peak_bytes)
					      : strcmp(x->path, y->path);
}

static json_t *best(const struct report_units *u, int (*order)(const void *, const void *))
{
	AUTO_ARENA struct arena a = {0};
	const struct report_unit **list = arena_array(&a, u->count + 1, sizeof(const struct report_unit *));
	json_t *out = json_array();
	for (size_t i = 0; i < u->count; i++)
		list[i] = &u->units[i];
	array_sort(list, u->count, sizeof(const struct report_unit *), order);
	for (size_t i = 0; i < u->count && i < BEST; i++) {
		if (order == by_peak && !list[i]->peak_bytes)
			break;
		json_array_append_new(out, json_pack("{s:o,s:o,s:I}", "unit", json_or_null(list[i]->path), "seconds",
						     rounded(list[i]->end - list[i]->start), "peak_bytes",
						     (json_int_t)list[i]->peak_bytes));
	}
	return out;
}

json_t *report_units_json(const struct report_units *u)
{
	size_t states[3] = {0};
	double seconds = 0;
	for (size_t i = 0; i < u->count; i++) {
		states[u->units[i].state]++;
		seconds += u->units[i].end - u->units[i].start;
	}
	return json_pack("{s:I,s:I,s:I,s:I,s:o,s:i,s:o,s:o}", "count", (json_int_t)u->count, "compiled",
			 (json_int_t)states[REPORT_MADE], "from_compiler_cache", (json_int_t)states[REPORT_HIT],
			 "by_earlier_run", (json_int_t)states[REPORT_BEFORE], "seconds", rounded(seconds), "slots",
			 (int)u->slots, "slowest", best(u, by_seconds), "largest", best(u, by_peak));
}

json_t *report_ccache_json(const struct ccache_stats *s, const char *version, const char *mode, const char *sloppiness)
{
	json_t *counters = json_object();
	for (size_t i = 0; i < s->counters_count; i++)
		json_object_set_new(counters, s->counters[i].name, json_integer(s->counters[i].count));
	return json_pack("{s:s,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:o}", "program", "ccache", "version",
			 json_or_null(version), "mode", json_or_null(mode), "sloppiness", json_or_null(sloppiness),
			 "hits", (json_int_t)s->direct_hits + s->preprocessed_hits, "direct_hits",
			 (json_int_t)s->direct_hits, "preprocessed_hits", (json_int_t)s->preprocessed_hits,
			 "remote_hits", (json_int_t)s->remote_hits, "misses", (json_int_t)s->misses, "counters",
			 counters);
}
