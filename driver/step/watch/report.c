#include "step/watch/watch.h"

#include <math.h>

#include "base/show.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/zip/zip.h"

/* The pages: driver/step/watch/report/, put together when the program is built. @TITLE@, @DATA@ and
 * others mark the places of what is different each time. */
extern const unsigned char report_page[], matrix_page[], bench_page[];
extern const size_t report_page_size, matrix_page_size, bench_page_size;

struct rest { /* of a page */
	const unsigned char *at, *end;
};

/* Adds the page up to `mark`, and goes on behind it. */
static void up_to(struct rest *page, const char *mark, struct buf *out)
{
	const unsigned char *at =
		memmem(page->at, (size_t)(page->end - page->at), mark, strlen(mark));

	if (!at)
		abort();
	buf_add(out, page->at, (size_t)(at - page->at));
	page->at = at + strlen(mark);
}

struct part {
	const char *mark; /* of its place in the page */
	const struct show *rows;
};

static void put_page(const unsigned char *page, size_t size, const struct part *parts,
		     const json_t *doc, struct buf *out)
{
	struct rest rest = {page, page + size};

	for (; parts->mark; parts++) {
		up_to(&rest, parts->mark, out);
		show_markup(doc, parts->rows, show_page, out);
	}

	buf_add(out, rest.at, (size_t)(rest.end - rest.at));
}

#define TILE(value, what) "<div class=\"tile\"><b>" value "</b><span>" what "</span></div>"
#define CELL(value) "<td class=\"n\">" value "</td>"

void report_matrix(const json_t *doc, struct buf *out)
{
	static const struct show title[] = {{.text = "{matrix}"}, {0}};
	static const struct show summary[] = {{.text = "{-summary}"}, {0}};
	static const struct show tiles[] = {{.text = TILE("{value}", "{what}"), .each = "-tiles"},
					    {0}};
	static const struct show rows[] = {
		{.text = "<tr><td class=\"{state}\">{state}</td><td "
			 "class=\"path\">{variant}[<small>{why}</small>]</td>" CELL("{wave}")
				 CELL("[{time}]") CELL("[{hits}]") CELL(
					 "[{size}]") "<td class=\"path\">[{node}]</td><td>[<a "
						     "href=\"./{page:url}\">page</a> ][<a "
						     "href=\"./{log:url}\">log</a> ]</td></tr>\n",
		 .each = "-rows"},
		{0}};
	static const struct part parts[] = {{"@TITLE@", title},     {"@TITLE@", title},
					    {"@SUMMARY@", summary}, {"@TILES@", tiles},
					    {"@ROWS@", rows},       {0}};

	put_page(matrix_page, matrix_page_size, parts, doc, out);
}

void report_bench(const json_t *doc, struct buf *out)
{
	static const struct show title[] = {{.text = "{wheel.file} against {other.file}"}, {0}};
	static const struct show summary[] = {
		{.text = "at most {pairs} pair{pairs:s}, {seconds} s a workload, on the {-device}; "
			 "torch "
			 "{wheel.torch}[, code for {wheel.cpu}], against torch {other.torch}[, "
			 "code for {other.cpu}][{?disturbed} (other programs ran)]. A ratio above "
			 "1: the wheel is faster."},
		{0}};
	static const struct show tiles[] = {
		{.text = TILE("[{geometric_mean:.2}][{!geometric_mean}-]",
			      "other / wheel, {threads} thread{threads:s}"),
		 .each = "sets"},
		{0}};
	static const struct show workloads[] = {
		{.text = "<tr><td class=\"path\">{name}[<small>{-reason}</small>]</td>" CELL(
			 "{-wheel}") CELL("{-other}")
			 CELL("[{ratio:.2}][{!ratio}{state}]") "[<td class=\"ratio\"><i "
							       "class=\"{-class}\" "
							       "style=\"left:{-left:.2}%;width:{-"
							       "width:.2}%\"></i></"
							       "td>][{!-class}<td></td>]" CELL(
								       "[{-spread}]") "</tr>\n",
		 .each = "workloads"},
		{.text = "</tbody></table></div></section>\n"},
		{0}};
	static const struct show sets[] = {
		{.text = "<section class=\"card\"><h2>{threads} thread{threads:s} <span "
			 "class=\"note\">[geometric mean "
			 "of {compared}: {geometric_mean:.2}][{!compared}nothing could be "
			 "compared]</span></h2><div "
			 "class=\"scroll\"><table>\n<thead><tr><th>workload</th><th "
			 "class=\"n\">the wheel</th><th "
			 "class=\"n\">the other</th><th class=\"n\">other / wheel</th><th "
			 "class=\"ratio\">slower | "
			 "faster</th><th class=\"n\">spread</th></tr></thead>\n<tbody>\n",
		 .each = "sets",
		 .rows = workloads},
		{0}};
	static const struct part parts[] = {{"@TITLE@", title},     {"@TITLE@", title},
					    {"@SUMMARY@", summary}, {"@TILES@", tiles},
					    {"@SETS@", sets},       {0}};

	put_page(bench_page, bench_page_size, parts, doc, out);
}

#define MAX_DEPTH 24
#define SMALLEST_PART 3000 /* a smaller part of the whole cannot be seen */

struct sizes {
	const struct zip_reader *zip;
	uint64_t least_raw, least_packed;
};

struct total {
	uint64_t raw, packed, files;
};

static void add_entry(struct total *t, const struct zip_entry *en)
{
	t->raw += en->size;
	t->packed += en->packed;
	t->files++;
}

static json_t *node(const char *name, size_t len, const struct total *t)
{
	AUTO_ARENA struct arena a = {0};
	return json_pack("{s:o,s:I,s:I,s:I}", "n", json_or_null(arena_strndup(&a, name, len)), "r",
			 (json_int_t)t->raw, "p", (json_int_t)t->packed, "k", (json_int_t)t->files);
}

/* Files too small to be seen alone are shown together, by kind. */
enum { SMALL_HEADERS, SMALL_PYTHON, SMALL_OTHER, SMALL_KINDS };

static void add_small(struct total small[SMALL_KINDS], const struct sizes *s, size_t from,
		      size_t to)
{
	static const char *const headers[] = {".h", ".hpp", ".cuh", ".inl", ".inc"},
				 *const python[] = {".py", ".pyi"};

	for (size_t i = from; i < to; i++) {
		unsigned kind = SMALL_OTHER;
		for (size_t k = 0; k < ARRAY_LEN(headers); k++)
			kind = path_has_suffix(zip_sorted(s->zip, i)->name, headers[k])
				       ? SMALL_HEADERS
				       : kind;
		for (size_t k = 0; k < ARRAY_LEN(python); k++)
			kind = path_has_suffix(zip_sorted(s->zip, i)->name, python[k])
				       ? SMALL_PYTHON
				       : kind;
		add_entry(&small[kind], zip_sorted(s->zip, i));
	}
}

static void append_small(json_t *list, const struct total small[SMALL_KINDS])
{
	static const char *const words[SMALL_KINDS] = {" .h", " .py", ""};

	for (unsigned kind = 0; kind < SMALL_KINDS; kind++) {
		char text[64];
		int len = snprintf(text, sizeof(text), "%llu small%s files",
				   (unsigned long long)small[kind].files, words[kind]);
		if (small[kind].files)
			json_array_append_new(list, node(text, (size_t)len, &small[kind]));
	}
}

/* Lists the entries from `from` to `to`, which share their first `prefix` bytes, ending in '/' (or
 * empty). */
static json_t *children(const struct sizes *s, size_t from, size_t to, size_t prefix,
			unsigned depth)
{
	json_t *list = json_array();
	struct total small[SMALL_KINDS] = {{0}};

	for (size_t i = from; i < to;) {
		const char *name = zip_sorted(s->zip, i)->name + prefix, *slash = strchr(name, '/');
		size_t len = slash ? (size_t)(slash - name) : strlen(name), end = i + 1;
		struct total t = {0};
		add_entry(&t, zip_sorted(s->zip, i));
		for (; slash && end < to &&
		       strncmp(zip_sorted(s->zip, end)->name + prefix, name, len + 1) == 0;
		     end++)
			add_entry(&t, zip_sorted(s->zip, end));
		if (t.raw < s->least_raw && t.packed < s->least_packed) {
			add_small(small, s, i, end);
		} else {
			json_t *n = node(name, len, &t);
			if (slash && depth < MAX_DEPTH)
				json_object_set_new(
					n, "c", children(s, i, end, prefix + len + 1, depth + 1));
			json_array_append_new(list, n);
		}

		i = end;
	}

	append_small(list, small);
	return list;
}

int report_sizes(const char *wheel, json_t **ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_ZIP struct zip_reader *z = NULL;
	struct sizes s = {0};
	struct total all = {0};

	if (zip_open(wheel, &a, &z, e) < 0)
		return -1;
	size_t count = zip_count(z);
	s.zip = z;
	for (size_t i = 0; i < count; i++)
		add_entry(&all, zip_at(z, i));
	s.least_raw = all.raw / SMALLEST_PART;
	s.least_packed = all.packed / SMALLEST_PART;
	*ret = node("", 0, &all);
	json_object_set_new(*ret, "c", children(&s, 0, count, 0, 0));
	return 0;
}

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
		json_array_append_new(
			rows, json_pack("[o,o,o,o,i,i,i,I]", json_or_null(u->path),
					json_or_null(u->source), rounded(u->start - epoch),
					rounded(u->end - u->start), (int)u->slot, (int)u->state,
					(int)u->kind, (json_int_t)u->peak_bytes));
	}

	return rows;
}

static json_t *series_data(const struct watch_result *w)
{
	json_t *at = json_array(), *memory = json_array(), *processors = json_array(),
	       *compilers = json_array(), *pressure = json_array();

	for (size_t i = 0; i < w->samples_count; i++) {
		const struct watch_sample *s = &w->samples[i];
		json_array_append_new(at, rounded(s->at));
		json_array_append_new(memory, json_integer((json_int_t)s->memory_bytes));
		json_array_append_new(processors, rounded(s->processors));
		json_array_append_new(compilers, json_integer(s->compilers));
		json_array_append_new(pressure, rounded(s->pressure));
	}

	return json_pack("{s:o,s:o,s:o,s:o,s:o}", "at", at, "memory", memory, "processors",
			 processors, "compilers", compilers, "pressure", pressure);
}

static json_t *steps_data(const struct watch_result *w)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < w->steps_count; i++)
		json_array_append_new(rows, json_pack("[o,o,o]", json_or_null(w->steps[i].name),
						      rounded(w->steps[i].begin),
						      rounded(w->steps[i].end)));
	return rows;
}

int report_write(const struct report_request *q, const char *path, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	AUTO_JSON json_t *data = json_object();
	struct rest rest = {report_page, report_page + report_page_size};
	json_t *sizes;
	double epoch = q->watched->started > 0 || q->units->count == 0 ? q->watched->started
								       : q->units->units[0].start;

	if (report_sizes(q->wheel, &sizes, e) < 0)
		return -1;
	json_object_set_new(data, "record", json_deep_copy(q->record));
	json_object_set_new(data, "units", units_data(q, epoch));
	json_object_set_new(data, "steps", steps_data(q->watched));
	json_object_set_new(data, "series", series_data(q->watched));
	json_object_set_new(data, "sizes", sizes);
	json_object_set_new(data, "watch_seconds", json_real(q->watched->own_cpu_seconds));
	const char *title = json_member(q->record, "wheel");
	up_to(&rest, "@TITLE@", &out);
	show_html(title ? title : "build report", &out);
	up_to(&rest, "@DATA@", &out);
	/* Makes the document safe inside a script element: '<' can only be in strings, where an
	 * escape can replace it. */
	AUTO_FREE char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (!text)
		return err_set(e, ERR_SYSTEM, "the report cannot be written as JSON");
	for (const char *p = text; *p; p++) {
		if (*p == '<' || *p == '>' || *p == '&')
			buf_printf(&out, "\\u%04x", (unsigned)*p);
		else
			buf_addc(&out, *p);
	}

	buf_add(&out, rest.at, (size_t)(rest.end - rest.at));
	return fs_write(TRUSTED, path, out.data, out.len, 0644, e);
}

static int by_seconds(const void *a, const void *b)
{
	const struct report_unit *x = *(const struct report_unit *const *)a,
				 *y = *(const struct report_unit *const *)b;
	double dx = x->end - x->start, dy = y->end - y->start;

	return dx != dy ? (dx < dy) - (dx > dy) : strcmp(x->path, y->path);
}

static int by_peak(const void *a, const void *b)
{
	const struct report_unit *x = *(const struct report_unit *const *)a,
				 *y = *(const struct report_unit *const *)b;

	return x->peak_bytes != y->peak_bytes
		       ? (x->peak_bytes < y->peak_bytes) - (x->peak_bytes > y->peak_bytes)
		       : strcmp(x->path, y->path);
}

static json_t *best(const struct report_units *u, int (*order)(const void *, const void *))
{
	AUTO_ARENA struct arena a = {0};
	const struct report_unit **list =
		arena_array(&a, u->count + 1, sizeof(const struct report_unit *));
	json_t *out = json_array();

	for (size_t i = 0; i < u->count; i++)
		list[i] = &u->units[i];
	array_sort(list, u->count, sizeof(const struct report_unit *), order);
	for (size_t i = 0; i < u->count && i < BEST; i++) {
		if (order == by_peak && !list[i]->peak_bytes)
			break;
		json_array_append_new(
			out, json_pack("{s:o,s:o,s:I}", "unit", json_or_null(list[i]->path),
				       "seconds", rounded(list[i]->end - list[i]->start),
				       "peak_bytes", (json_int_t)list[i]->peak_bytes));
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

	return json_pack("{s:I,s:I,s:I,s:I,s:o,s:i,s:o,s:o}", "count", (json_int_t)u->count,
			 "compiled", (json_int_t)states[REPORT_MADE], "from_compiler_cache",
			 (json_int_t)states[REPORT_HIT], "by_earlier_run",
			 (json_int_t)states[REPORT_BEFORE], "seconds", rounded(seconds), "slots",
			 (int)u->slots, "slowest", best(u, by_seconds), "largest",
			 best(u, by_peak));
}

json_t *report_ccache_json(const struct ccache_stats *s, const char *version, const char *mode,
			   const char *sloppiness)
{
	json_t *counters = json_object();

	for (size_t i = 0; i < s->counters_count; i++)
		json_object_set_new(counters, s->counters[i].name,
				    json_integer(s->counters[i].count));
	return json_pack(
		"{s:s,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:o}", "program", "ccache", "version",
		json_or_null(version), "mode", json_or_null(mode), "sloppiness",
		json_or_null(sloppiness), "hits", (json_int_t)s->direct_hits + s->preprocessed_hits,
		"direct_hits", (json_int_t)s->direct_hits, "preprocessed_hits",
		(json_int_t)s->preprocessed_hits, "remote_hits", (json_int_t)s->remote_hits,
		"misses", (json_int_t)s->misses, "counters", counters);
}
