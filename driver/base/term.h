/* Text for people: wrapped to the width of their terminal, and coloured if it is one. */
#pragma once

#include "base/buf.h"

/* Zero-initialised: no terminal. */
struct term {
	size_t width; /* columns; 0: no terminal, lines are not wrapped */
	bool colour;
};

#define TERM_WIDTH 80 /* of prose where no terminal reports its width */

enum term_style { TERM_BOLD, TERM_RED, TERM_YELLOW, TERM_GREEN };

/* term_of: describes the terminal of a descriptor. Width: COLUMNS, else the terminal's own, else
 * TERM_WIDTH. No colours with NO_COLOR (any text) or if TERM is dumb or not set. */
struct term term_of(int fd);
/* term_columns: returns the columns that a text occupies: one for each character. */
size_t term_columns(const char *text, size_t len) __attribute__((pure));
void term_blanks(struct buf *out, size_t n);
/* term_wrap: wraps `text` up to a line break and adds a newline. `column` is the position on the
 * current line; all lines after the first are indented. A `width` of 0 leaves it as it is. */
void term_wrap(struct buf *out, const char *text, size_t indent, size_t column, size_t width);
/* term_style: text in a style. */
void term_style(struct buf *out, const struct term *t, enum term_style style, const char *text);
/* term_table: prints cells in rows of `columns`, the first row a heading, each column as wide as
 * its widest cell. On a terminal the widest columns shrink until a row fits, and their cells wrap.
 * If words would have to be split, the last columns go below their row instead, as "name: cell" and
 * without cells that are "-". Cells under a heading that begins with '>' are aligned right. */
void term_table(struct buf *out, const struct term *t, const char *const *cells, size_t rows,
		size_t columns);
