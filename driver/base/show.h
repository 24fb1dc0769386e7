/* Results for people: a document (JSON) as text. Rows say which of its members make a line. */
#pragma once
#include <jansson.h>

#include "base/arena.h"
#include "base/term.h"

enum { SHOW_COLUMNS = 10 };

/* A text has words and members of what it is about:
 *
 *   {key} {a.b} {}  a member, one of a member ({0} of an array), the thing itself; arrays are
 *                   joined with blanks. What a thing lacks is looked for in what it is in,
 *                   {/key} only there
 *   {^}             the key that the thing has in its object
 *   {key|none}      "none" where it is missing, null or empty
 *   {key:FORM}      MB MiB time ago, .2 (decimals, or the length of a string), <8 (its width),
 *                   "," (joined with), # (how many), s and y (of a plural: "" or "y" for one),
 *                   url (a path in a link)
 *   {?key} {!key}   nothing, but what has it is left out unless the member is there and neither
 *                   false nor 0, or unless it is not
 *   [...]           left out where a member in it is missing; without brackets the row is
 *   \               in front of a character that means itself
 *
 * A text that begins with a line break is a paragraph: it has an empty line above it. */
struct show {
	/* in front of the text; the texts of rows with labels begin in one column */
	const char *label;
	const char *text;
	const char *each; /* the path of an array or object: a line for each thing in it */
	const char *join; /* with `each`: one line, with this between the texts */
	/* with `each`: a table; "heading=text", or a key that is both; > in front aligns right */
	const char *columns[SHOW_COLUMNS + 1];
	const struct show *rows; /* below each line */
	unsigned indent;
	bool bold;
};

/* SHOW: a row with a label, and more of its fields. */
#define SHOW(its_label, its_text, ...)                                                             \
	{                                                                                          \
		.label = (its_label), .text = (its_text), ##__VA_ARGS__                            \
	}

/* show_text: `rows` end with an empty one. On a terminal words wrap to its width. */
void show_text(const json_t *doc, const struct show *rows, const struct term *t, struct buf *out);
/* show_string: for no terminal, in the arena. */
char *show_string(const json_t *doc, const struct show *rows, struct arena *a);
/* show_markup: prints rows without labels and tables, whose texts are markup, and escapes the
 * members in them. show_html: an escape, also of characters that hide in a text or turn it.
 * show_page: like show_html, for people: keeps a unit on the line of its number. */
typedef void show_escape(const char *s, struct buf *out);
void show_markup(const json_t *doc, const struct show *rows, show_escape *escape, struct buf *out);
void show_html(const char *s, struct buf *out);
void show_page(const char *s, struct buf *out);
/* show_strip: removes what only texts show: members whose names begin with '-', and elements of
 * arrays that have no other members. Returns false if nothing is left. */
bool show_strip(json_t *doc);
