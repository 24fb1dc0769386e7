#include "step/watch/report_matrix.h"

#include <string.h>

#include "step/watch/report_parts.h"

static void add_link(const char *path, const char *text, struct buf *out)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/+=";
	if (!*path)
		return;
	buf_addstr(out, "<a href=\"./");
	for (const char *p = path; *p; p++) {
		if (strchr(plain, *p))
			buf_addc(out, *p);
		else
			buf_printf(out, "%%%02X", (unsigned char)*p);
	}
	buf_printf(out, "\">%s</a> ", text);
}

static void add_cell(const char *class, const char *text, struct buf *out)
{
	buf_printf(out, "<td class=\"%s\">", class);
	report_text(text, out);
	buf_addstr(out, "</td>");
}

static void add_row(const struct report_row *r, struct buf *out)
{
	static const char *const states[] = {"done", "running", "failed", "lost", NULL};
	const char *class = "waiting";
	for (size_t i = 0; states[i]; i++)
		class = strcmp(r->state, states[i]) == 0 ? states[i] : class;
	buf_addstr(out, "<tr>");
	add_cell(class, r->state, out);
	buf_addstr(out, "<td class=\"path\">");
	report_text(r->variant, out);
	if (*r->why) {
		buf_addstr(out, "<small>");
		report_text(r->why, out);
		buf_addstr(out, "</small>");
	}
	buf_addstr(out, "</td>");
	const char *const figures[] = {r->wave, r->time, r->hits, r->size};
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		add_cell("n", figures[i], out);
	add_cell("path", r->node, out);
	buf_addstr(out, "<td>");
	add_link(r->page, "page", out);
	add_link(r->log, "log", out);
	buf_addstr(out, "</td></tr>\n");
}

void report_add_tile(const struct report_tile *t, struct buf *out)
{
	buf_addstr(out, "<div class=\"tile\"><b>");
	report_text(t->value, out);
	buf_addstr(out, "</b><span>");
	report_text(t->what, out);
	buf_addstr(out, "</span></div>");
}

void report_matrix(const struct report_matrix *m, struct buf *out)
{
	struct report_rest rest = {matrix_page, matrix_page + matrix_page_size};
	report_up_to(&rest, "@TITLE@", out);
	report_text(m->title, out);
	report_up_to(&rest, "@TITLE@", out);
	report_text(m->title, out);
	report_up_to(&rest, "@SUMMARY@", out);
	report_text(m->summary, out);
	report_up_to(&rest, "@TILES@", out);
	for (size_t i = 0; i < m->tiles_count; i++)
		report_add_tile(&m->tiles[i], out);
	report_up_to(&rest, "@ROWS@", out);
	for (size_t i = 0; i < m->rows_count; i++)
		add_row(&m->rows[i], out);
	buf_add(out, rest.at, (size_t)(rest.end - rest.at));
}
