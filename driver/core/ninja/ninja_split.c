/* Reading a build.ninja: its statements. */
#include <string.h>

#include "core/ninja/ninja_parts.h"

struct reader {
	const char *name;
	const char *at, *end;
	struct arena *arena;
};

enum line { LINE_TEXT, LINE_BINDING, LINE_COMMENT, LINE_EMPTY };

static enum line line_of(const char *p, const char *end)
{
	bool indented = p < end && *p == ' ';
	while (p < end && *p == ' ')
		p++;
	if (p == end || ninja_eol(p, ninja_comment_end(p, end)) == p)
		return LINE_EMPTY;
	if (*p == '#')
		return LINE_COMMENT;
	return indented ? LINE_BINDING : LINE_TEXT;
}

/* The end of the bindings that follow at `p`; comments may stand between them. */
static const char *bindings_end(const char *p, const char *end)
{
	const char *q = p;
	for (;;) {
		while (line_of(q, end) == LINE_COMMENT)
			q = ninja_comment_end(q, end);
		if (line_of(q, end) != LINE_BINDING)
			return p;
		p = q = ninja_line_end(q, end);
	}
}

#define LINKER "_LINKER__" /* in the name of CMake's rule */

static enum ninja_kind kind_of(const char *rule)
{
	if (strstr(rule, "_COMPILER__"))
		return KIND_COMPILE;
	if (strstr(rule, LINKER) && !strstr(rule, "_STATIC_LIBRARY_"))
		return KIND_LINK;
	return KIND_OTHER;
}

static bool read_build(struct ninja_piece *piece, struct arena *a)
{
	struct ninja_head h;
	if (!ninja_take_head(piece->at, piece->at + piece->head_len, a, &h))
		return false;
	piece->output = h.output;
	piece->inputs = h.inputs;
	piece->kind = kind_of(h.rule);
	piece->links = strstr(h.rule, LINKER) != NULL;
	return true;
}

/* Whether it has a line "pool = VALUE" that is not ours. */
static bool has_own_pool(const struct ninja_piece *piece)
{
	const char *end = piece->at + piece->len;
	for (const char *p = ninja_line_end(piece->at, end); p < end; p = ninja_next_line(p, end)) {
		const char *w = p;
		while (w < end && *w == ' ')
			w++;
		if ((size_t)(end - w) > 5 && strncmp(w, "pool", 4) == 0 && (w[4] == ' ' || w[4] == '=')) {
			w += 4;
			while (w < end && (*w == ' ' || *w == '='))
				w++;
			return (size_t)(end - w) < strlen(NINJA_PREFIX) ||
			       strncmp(w, NINJA_PREFIX, strlen(NINJA_PREFIX)) != 0;
		}
	}
	return false;
}

static int bad(const struct reader *r, const char *text, const char *at, const char *why, struct err *e)
{
	size_t line = 1;
	for (const char *p = text; p < at; p++)
		line += *p == '\n';
	return err_set(e, ERR_INTEGRITY, "%s:%zu: %s", r->name, line, why);
}

/* Every line up to `end` is one that ninja reads. */
static int check_lines(const struct reader *r, const char *text, const char *end, struct err *e)
{
	const char *at;
	for (const char *p = r->at, *next; p < end; p = next) {
		next = ninja_next_line(p, end);
		const char *why = ninja_line_fault(p, next, &at);
		if (why)
			return bad(r, text, at, why, e);
	}
	return 0;
}

/* A statement that ends at `end`: its kind, which for a build statement says its pool. */
static int read_statement(const struct reader *r, const char *text, const char *end, const struct ninja_options *o,
			  struct ninja_piece *piece, struct err *e)
{
	piece->build = ninja_begins(piece->at, end, "build ");
	piece->border = !piece->build;
	if (!piece->build)
		return 0;
	const char *eol = ninja_eol(piece->at, ninja_line_end(piece->at, end));
	piece->head_len = ninja_head_len(piece->at, (size_t)(eol - piece->at));
	if (!read_build(piece, r->arena))
		return bad(r, text, piece->at, "a build statement without output or rule", e);
	if (piece->kind != KIND_OTHER && has_own_pool(piece))
		piece->kind = KIND_OTHER;
	if (piece->kind == KIND_COMPILE) {
		struct ninja_weight w = o->weigh(piece->output, o->user);
		piece->kind = w.heavy ? KIND_HEAVY : KIND_COMPILE;
		piece->cost = w.cost;
		piece->movable = true;
	}
	return 0;
}

int ninja_split(const char *text, size_t len, const char *name, const struct ninja_options *o, struct arena *a,
		struct ninja_pieces *ret, struct err *e)
{
	struct reader reader = {.name = name, .at = text, .end = text + len, .arena = a}, *r = &reader;
	while (r->at < r->end) {
		struct ninja_piece piece = {.at = r->at};
		const char *next;
		if (ninja_begins(r->at, r->end, NINJA_HEAD_BEGIN)) { /* of an earlier run: made anew */
			next = memmem(r->at, (size_t)(r->end - r->at), NINJA_HEAD_END, strlen(NINJA_HEAD_END));
			if (!next)
				return bad(r, text, r->at, "ptbuild's pools have no end mark", e);
			r->at = next + strlen(NINJA_HEAD_END);
			continue;
		}
		enum line line = line_of(r->at, r->end);
		if (line == LINE_BINDING || *r->at == '\t')
			return bad(r, text, r->at, "an indented line without a statement above it", e);
		next = line == LINE_TEXT ? bindings_end(ninja_line_end(r->at, r->end), r->end)
					 : ninja_comment_end(r->at, r->end);
		piece.len = (size_t)(next - r->at);
		if (check_lines(r, text, next, e) < 0 ||
		    (line == LINE_TEXT && read_statement(r, text, next, o, &piece, e) < 0))
			return -1;
		ret->items = arena_room(a, ret->items, ret->count, &ret->cap, 64, sizeof(*ret->items));
		ret->items[ret->count++] = piece;
		r->at = next;
	}
	return 0;
}
