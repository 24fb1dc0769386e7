#include "step/watch/report_bench.h"

#include <math.h>

#include "step/watch/report_parts.h"

/* The line of equal speed is in the middle; a ratio of LARGEST, or its reciprocal, fills its half. */
#define LARGEST 4.0
#define HALF 50.0 /* percent */

static void add_meter(double ratio, struct buf *out)
{
	double part = fabs(log(ratio) / log(LARGEST)), width = HALF * (part < 1 ? part : 1);
	bool faster = ratio >= 1;
	buf_printf(out, "<td class=\"ratio\"><i class=\"%s\" style=\"left:%.2f%%;width:%.2f%%\"></i></td>",
		   faster ? "faster" : "slower", faster ? HALF : HALF - width, width);
}

static void add_cell(const char *class, const char *text, struct buf *out)
{
	buf_printf(out, "<td class=\"%s\">", class);
	report_text(text, out);
	buf_addstr(out, "</td>");
}

static void add_bar(const struct report_bar *b, struct buf *out)
{
	buf_addstr(out, "<tr><td class=\"path\">");
	report_text(b->name, out);
	if (*b->why) {
		buf_addstr(out, "<small>");
		report_text(b->why, out);
		buf_addstr(out, "</small>");
	}
	buf_addstr(out, "</td>");
	add_cell("n", b->ours, out);
	add_cell("n", b->other, out);
	add_cell("n", b->ratio, out);
	if (b->value > 0)
		add_meter(b->value, out);
	else
		buf_addstr(out, "<td></td>");
	add_cell("n", b->spread, out);
	buf_addstr(out, "</tr>\n");
}

static void add_set(const struct report_bars *s, struct buf *out)
{
	buf_addstr(out, "<section class=\"card\"><h2>");
	report_text(s->title, out);
	buf_addstr(out, " <span class=\"note\">");
	report_text(s->note, out);
	buf_addstr(out, "</span></h2><div class=\"scroll\"><table>\n<thead><tr><th>workload</th><th class=\"n\">the "
			"wheel</th><th class=\"n\">the other</th><th class=\"n\">other / wheel</th><th>slower | "
			"faster</th><th class=\"n\">spread</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < s->count; i++)
		add_bar(&s->bars[i], out);
	buf_addstr(out, "</tbody></table></div></section>\n");
}

void report_bench(const struct report_bench *b, struct buf *out)
{
	struct report_rest rest = {bench_page, bench_page + bench_page_size};
	for (size_t i = 0; i < 2; i++) {
		report_up_to(&rest, "@TITLE@", out);
		report_text(b->title, out);
	}
	report_up_to(&rest, "@SUMMARY@", out);
	report_text(b->summary, out);
	report_up_to(&rest, "@TILES@", out);
	for (size_t i = 0; i < b->tiles_count; i++)
		report_add_tile(&b->tiles[i], out);
	report_up_to(&rest, "@SETS@", out);
	for (size_t i = 0; i < b->sets_count; i++)
		add_set(&b->sets[i], out);
	buf_add(out, rest.at, (size_t)(rest.end - rest.at));
}
