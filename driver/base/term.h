/* Text for people: as wide as their terminal, with colours where one is. */
#pragma once

#include "base/buf.h"

/* Zero-initialised: no terminal. */
struct term {
	size_t width; /* columns; 0: no terminal, lines are not wrapped */
	bool colour;
};

#define TERM_WIDTH 80 /* of prose where no terminal tells */

enum term_style { TERM_BOLD, TERM_RED, TERM_YELLOW, TERM_GREEN };

/* term_of: what stands behind a descriptor: COLUMNS, else what the terminal says, else TERM_WIDTH.
 * No colours with NO_COLOR (any text) or where TERM is dumb or not set. */
struct term term_of(int fd);
/* term_columns: columns that text takes: one for each character. */
size_t term_columns(const char *text, size_t len) __attribute__((pure));
void term_blanks(struct buf *out, size_t n);
/* term_wrap: the words of `text` up to a line break, with a newline behind; `column` is where the
 * line stands, and all lines after the first are indented. With a `width` of 0 it stays
 * as it is. */
void term_wrap(struct buf *out, const char *text, size_t indent, size_t column, size_t width);
/* term_style: text in a style. */
void term_style(struct buf *out, const struct term *t, enum term_style style, const char *text);
/* term_table: cells in rows of `columns`, the first row a heading, each column as wide as its
 * widest cell. On a terminal the widest give way until a row fits, and their cells wrap. Where
 * words would have to be cut, the last columns stand below their row instead, as "name: cell" and
 * without cells that are "-". The cells under a heading that begins with '>' are aligned right. */
void term_table(struct buf *out, const struct term *t, const char *const *cells, size_t rows, size_t columns);
