#include "step/watch/report_pages.h"

#include "base/show.h"
#include "step/watch/report_parts.h"

struct part {
	const char *mark; /* of its place in the page */
	const struct show *rows;
};

static void put_page(const unsigned char *page, size_t size, const struct part *parts, const json_t *doc,
		     struct buf *out)
{
	struct report_rest rest = {page, page + size};
	for (; parts->mark; parts++) {
		report_up_to(&rest, parts->mark, out);
		show_markup(doc, parts->rows, show_html, out);
	}
	buf_add(out, rest.at, (size_t)(rest.end - rest.at));
}

#define TILE(value, what) "<div class=\"tile\"><b>" value "</b><span>" what "</span></div>"
#define CELL(value) "<td class=\"n\">" value "</td>"

void report_matrix(const json_t *doc, struct buf *out)
{
	static const struct show title[] = {{.text = "{matrix}"}, {0}};
	static const struct show summary[] = {{.text = "{-summary}"}, {0}};
	static const struct show tiles[] = {{.text = TILE("{value}", "{what}"), .each = "-tiles"}, {0}};
	static const struct show rows[] = {
		{.text = "<tr><td class=\"{state}\">{state}</td><td "
			 "class=\"path\">{variant}[<small>{why}</small>]</td>" CELL("{wave}") CELL("[{time}]")
				 CELL("[{hits}]") CELL("[{size}]") "<td class=\"path\">[{node}]</td><td>[<a "
								   "href=\"./{page:url}\">page</a> ]"
								   "[<a href=\"./{log:url}\">log</a> ]</td></tr>\n",
		 .each = "-rows"},
		{0}};
	static const struct part parts[] = {{"@TITLE@", title}, {"@TITLE@", title}, {"@SUMMARY@", summary},
					    {"@TILES@", tiles}, {"@ROWS@", rows},   {0}};
	put_page(matrix_page, matrix_page_size, parts, doc, out);
}

void report_bench(const json_t *doc, struct buf *out)
{
	static const struct show title[] = {{.text = "{wheel.file} against {other.file}"}, {0}};
	static const struct show summary[] = {
		{.text = "{pairs} pair{pairs:s}, {seconds} s a workload, on the {-device}; torch {wheel.torch}[, code "
			 "for "
			 "{wheel.cpu}], against torch {other.torch}[, code for {other.cpu}][{?disturbed}; the machine "
			 "did "
			 "something else as well]. A ratio above 1: the wheel is faster."},
		{0}};
	static const struct show tiles[] = {{.text = TILE("[{geometric_mean:.2}][{!geometric_mean}-]",
							  "other / wheel, {threads} thread{threads:s}"),
					     .each = "sets"},
					    {0}};
	static const struct show workloads[] = {
		{.text = "<tr><td class=\"path\">{name}[<small>{-reason}</small>]</td>" CELL("{-wheel}")
			 CELL("{-other}") CELL(
				 "[{ratio:.2}][{!ratio}{state}]") "[<td class=\"ratio\"><i class=\"{-class}\" "
								  "style=\"left:{-left:.2}%;width:{-width:.2}%\"></i></"
								  "td>]"
								  "[{!-class}<td></td>]" CELL("[{-spread}]") "</tr>\n",
		 .each = "workloads"},
		{.text = "</tbody></table></div></section>\n"},
		{0}};
	static const struct show sets[] = {
		{.text = "<section class=\"card\"><h2>{threads} thread{threads:s} <span class=\"note\">[geometric mean "
			 "of "
			 "{compared}: {geometric_mean:.2}][{!compared}nothing could be compared]</span></h2><div "
			 "class=\"scroll\"><table>\n<thead><tr><th>workload</th><th class=\"n\">the wheel</th><th "
			 "class=\"n\">the other</th><th class=\"n\">other / wheel</th><th>slower | faster</th><th "
			 "class=\"n\">spread</th></tr></thead>\n<tbody>\n",
		 .each = "sets",
		 .rows = workloads},
		{0}};
	static const struct part parts[] = {{"@TITLE@", title}, {"@TITLE@", title}, {"@SUMMARY@", summary},
					    {"@TILES@", tiles}, {"@SETS@", sets},   {0}};
	put_page(bench_page, bench_page_size, parts, doc, out);
}
