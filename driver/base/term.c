#include "base/term.h"

#include <sys/ioctl.h>

#include "base/arena.h"

#define GAP 2  /* between the columns of a table */
#define HANG 4 /* before a cell that is below its row */

struct term term_of(int fd)
{
	const char *name = getenv("TERM"), *none = getenv("NO_COLOR"), *columns = getenv("COLUMNS");
	unsigned long asked = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize ws;

	if (!isatty(fd))
		return (struct term){0};
	bool knows_colours = name && *name && strcmp(name, "dumb") != 0;
	bool no_colour = none && *none;
	struct term t = {.colour = knows_colours && !no_colour};
	if (asked > 0 && asked < 10000)
		t.width = asked;
	else
		t.width = ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col : TERM_WIDTH;
	return t;
}

size_t term_columns(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

void term_blanks(struct buf *out, size_t n)
{
	while (n-- > 0)
		buf_addc(out, ' ');
}

void term_wrap(struct buf *out, const char *text, size_t indent, size_t column, size_t width)
{
	bool first = true; /* word of its line */

	if (!width) {
		buf_add(out, text, strcspn(text, "\n"));
		text += strcspn(text, "\n");
	}

	while (*text && *text != '\n') {
		size_t n = strcspn(text, " \n"), columns = term_columns(text, n);
		if (column > indent && column + !first + columns > width) {
			buf_addc(out, '\n');
			term_blanks(out, indent);
			column = indent;
		} else if (!first) {
			buf_addc(out, ' ');
			column++;
		}

		buf_add(out, text, n);
		first = false;
		column += columns;
		text += n;
		text += strspn(text, " ");
	}

	buf_addc(out, '\n');
}

void term_style(struct buf *out, const struct term *t, enum term_style style, const char *text)
{
	static const char *const codes[] = {
		[TERM_BOLD] = "1", [TERM_RED] = "1;31", [TERM_YELLOW] = "33", [TERM_GREEN] = "32"};

	if (t->colour)
		buf_printf(out, "\033[%sm%s\033[0m", codes[style], text);
	else
		buf_addstr(out, text);
}

/* Returns how many bytes of a cell's text fit on its next line of `width` columns, up to a space if
 * it has one. */
static size_t piece(const char *text, size_t width)
{
	size_t n = 0, blank = 0, columns = 0;

	for (; text[n]; n++) {
		columns += ((unsigned char)text[n] & 0xc0) != 0x80;
		if (text[n] == ' ' && columns <= width + 1)
			blank = n;
		if (columns > width)
			return blank ? blank : n;
	}

	return n;
}

/* A table and its columns. */
struct layout {
	struct buf *out;
	const struct term *term;
	size_t count;
	size_t beside; /* columns next to each other; the rest goes below */
	size_t *widths;
	const char *const *heading;
	const bool *right;
};

/* Prints one row, of as many lines as its longest cell needs, without trailing spaces. */
static void table_row(const struct layout *l, const char **at, bool heading)
{
	struct buf *out = l->out;
	const struct term *t = l->term;

	for (bool more = true; more;) {
		size_t owed = 0;
		more = false;
		for (size_t k = 0; k < l->beside; k++) {
			AUTO_BUF struct buf text = {0};
			buf_add(&text, at[k], piece(at[k], l->widths[k]));
			const size_t rest = l->widths[k] - term_columns(buf_cstr(&text), text.len);
			const bool right = l->right[k];
			if (text.len) {
				term_blanks(out, owed + (right ? rest : 0));
				owed = 0;
				term_style(out, heading ? t : &(struct term){0}, TERM_BOLD,
					   buf_cstr(&text));
			}

			owed += (right && text.len ? 0 : rest) + GAP;
			at[k] += text.len;
			at[k] += strspn(at[k], " ");
			more |= *at[k] != '\0';
		}

		buf_addc(out, '\n');
	}

	AUTO_BUF struct buf below = {0};
	for (size_t k = l->beside; k < l->count; k++)
		if (!heading && strcmp(at[k], "-") != 0)
			buf_printf(&below, "%s%s: %s", below.len ? ", " : "", l->heading[k], at[k]);
	if (below.len) {
		term_blanks(out, HANG);
		term_wrap(out, buf_cstr(&below), HANG, HANG, t->width);
	}
}

static size_t longest_word(const char *text)
{
	size_t longest = 0;

	for (; *text; text += strcspn(text, " "), text += strspn(text, " ")) {
		size_t n = term_columns(text, strcspn(text, " "));
		longest = n > longest ? n : longest;
	}

	return longest;
}

static void raise_to(size_t *to, size_t n)
{
	*to = n > *to ? n : *to;
}

/* The widest column gives way, one character at a time, but no word is
 * cut, and no name in the first column wraps. False: that is not enough. */
static bool shrink(const struct layout *l, const size_t *least, size_t width)
{
	size_t total = (l->beside - 1) * GAP;

	for (size_t k = 0; k < l->beside; k++)
		total += l->widths[k];
	for (; total > width; total--) {
		size_t widest = 0;
		for (size_t k = 1; k < l->beside; k++)
			if (l->widths[k] > least[k] &&
			    (!widest || l->widths[k] >= l->widths[widest]))
				widest = k;
		if (!widest)
			return false;
		l->widths[widest]--;
	}

	return true;
}

void term_table(struct buf *out, const struct term *t, const char *const *cells, size_t rows,
		size_t columns)
{
	AUTO_ARENA struct arena a = {0};
	const char **heading = arena_array(&a, columns, sizeof(*heading));
	bool *right = arena_array(&a, columns, sizeof(*right));
	struct layout l = {.out = out,
			   .term = t,
			   .heading = heading,
			   .right = right,
			   .count = columns,
			   .beside = columns,
			   .widths = arena_array(&a, columns, sizeof(size_t))};
	size_t *widest = arena_array(&a, columns, sizeof(*widest)),
	       *least = arena_array(&a, columns, sizeof(*least));
	const char **at = arena_array(&a, columns, sizeof(*at));

	for (size_t k = 0; k < columns; k++) {
		right[k] = *cells[k] == '>';
		heading[k] = cells[k] + right[k];
	}

	for (size_t i = 0; i < rows * columns; i++) {
		const char *text = i < columns ? heading[i] : cells[i];
		raise_to(&widest[i % columns], term_columns(text, strlen(text)));
		raise_to(&least[i % columns], longest_word(text));
	}

	do
		memcpy(l.widths, widest, columns * sizeof(*widest));
	while (t->width && !shrink(&l, least, t->width) && --l.beside > 1);
	for (size_t i = 0; i < rows; i++) {
		for (size_t k = 0; k < columns; k++)
			at[k] = i ? cells[i * columns + k] : heading[k];
		table_row(&l, at, i == 0);
	}
}
