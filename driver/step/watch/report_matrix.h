/* The page of a matrix: all variants of a run, with links to their own pages. No script, and
 * nothing from elsewhere. */
#pragma once
#include "base/buf.h"

/* Texts as they are shown; "" for what is not there. */
struct report_row {
	const char *state; /* done, running, waiting, failed, lost */
	const char *variant;
	const char *wave, *time, *hits, *size, *node;
	const char *why;        /* it failed */
	const char *page, *log; /* paths seen from the page */
};

struct report_tile {
	const char *value, *what;
};

struct report_matrix {
	const char *title, *summary;
	const struct report_tile *tiles;
	size_t tiles_count;
	const struct report_row *rows;
	size_t rows_count;
};

/* report_matrix: adds the page. */
void report_matrix(const struct report_matrix *m, struct buf *out);
