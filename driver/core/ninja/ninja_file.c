#include "base/sys/fs.h"

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
	return strstr(rule, LINKER) && !strstr(rule, "_STATIC_LIBRARY_") ? KIND_LINK : KIND_OTHER;
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

static const char *const pool_names[] = {NULL, NINJA_PREFIX "compile", NINJA_PREFIX "heavy", NINJA_PREFIX "link"};

/* Higher cost first; equal ones in the order of the text. */
static int by_cost(const void *a, const void *b)
{
	const struct ninja_piece *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Sorts the movable pieces between two borders; the others keep their places. */
static void order(struct ninja_piece *items, size_t count, struct ninja_piece *scratch)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		if (items[i].movable)
			scratch[n++] = items[i];
	qsort(scratch, n, sizeof(*scratch), by_cost);
	n = 0;
	for (size_t i = 0; i < count; i++)
		if (items[i].movable)
			items[i] = scratch[n++];
}

static void order_all(struct ninja_pieces *l, struct arena *a)
{
	struct ninja_piece *scratch = arena_array(a, l->count + 1, sizeof(*scratch));
	for (size_t i = 0; i < l->count;) {
		size_t from = i;
		while (i < l->count && !l->items[i].border)
			i++;
		order(l->items + from, i - from, scratch);
		i += i < l->count;
	}
}

static bool is_our_pool(const char *p, const char *end)
{
	static const char mark[] = "  pool = " NINJA_PREFIX;
	return ninja_begins(p, end, mark);
}

static void put_piece(const struct ninja_piece *piece, struct buf *out)
{
	const char *end = piece->at + piece->len, *p = piece->at;
	if (!piece->build) {
		buf_add(out, p, piece->len);
		return;
	}
	const char *next = ninja_line_end(p, end), *eol = ninja_eol(p, next);
	buf_add(out, p, piece->head_len);
	ninja_put_wait(piece, out);
	buf_add(out, eol, (size_t)(next - eol));
	if (piece->kind != KIND_OTHER)
		buf_printf(out, "  pool = %s\n", pool_names[piece->kind]);
	for (p = next; p < end; p = next) {
		next = ninja_next_line(p, end);
		if (!is_our_pool(p, end))
			buf_add(out, p, (size_t)(next - p));
	}
}

static void count(const struct ninja_pieces *l, struct arena *a, struct ninja_counts *c)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct ninja_piece *piece = &l->items[i];
		c->compile += piece->kind == KIND_COMPILE;
		c->link += piece->kind == KIND_LINK;
		c->heavy += piece->kind == KIND_HEAVY;
		if (piece->kind == KIND_HEAVY && !strchr(piece->output, '$')) {
			strlist_ref(&c->heavy_outputs, a, piece->output);
		}
	}
}

int ninja_text(const char *text, size_t len, const char *name, const struct ninja_options *o, struct arena *a,
	       struct buf *out, struct ninja_counts *ret, struct err *e)
{
	struct ninja_pieces l = {0};
	struct ninja_counts c = {0};
	size_t start = out->len;
	if (memchr(text, '\0', len))
		return err_set(e, ERR_INTEGRITY, "%s: holds a NUL byte", name);
	if (ninja_split(text, len, name, o, a, &l, e) < 0)
		return -1;
	order_all(&l, a);
	count(&l, a, &c);
	buf_printf(out, NINJA_HEAD_BEGIN "pool %s\n  depth = %u\npool %s\n  depth = %u\npool %s\n  depth = %u\n",
		   pool_names[KIND_COMPILE], o->compile, pool_names[KIND_HEAVY], o->heavy, pool_names[KIND_LINK],
		   o->link);
	ninja_add_waits(&l, a, out);
	buf_addstr(out, NINJA_HEAD_END);
	for (size_t i = 0; i < l.count; i++)
		put_piece(&l.items[i], out);
	c.changed = out->len - start != len || memcmp(out->data + start, text, len) != 0;
	*ret = c;
	return 0;
}

int ninja_file_rewrite(const char *top, const char *rel, const struct ninja_options *o, struct arena *a,
		       struct ninja_counts *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf out = {0};
	struct ninja_counts c;
	struct stat st;
	if (fs_stat(top, rel, &st) < 0 && errno == ENOENT)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path_join(a, top, rel));
	if (fs_read(top, rel, NINJA_FILE_MAX, &text, e) < 0 ||
	    ninja_text(buf_cstr(&text), text.len, path_join(a, top, rel), o, a, &out, &c, e) < 0)
		return -1;
	if (c.changed && fs_rewrite(top, rel, out.data, out.len, &st, e) < 0)
		return -1;
	*ret = c;
	return 0;
}

static bool take_edge(const char *p, const char *end, struct arena *a, struct ninja_edge *ret)
{
	struct ninja_head h;
	const char *first, *input;
	if (!ninja_take_head(p, end, a, &h) || !h.plain_output || ninja_is_wait(h.plain_output) || !h.plain_rule ||
	    strcmp(h.rule, "phony") == 0)
		return false;
	ninja_take_paths(h.inputs, end, a, &first, &input);
	*ret = (struct ninja_edge){h.plain_output, h.rule, input ? input : ""};
	return true;
}

void ninja_build_parse(const char *text, size_t len, struct arena *a, struct ninja_edge **ret, size_t *ret_count)
{
	const char *end = text + len, *next;
	size_t count = 0, cap = 0;
	struct ninja_edge *edges = NULL, edge;
	for (const char *p = text; p < end; p = next) {
		next = ninja_next_line(p, end);
		const char *stop = ninja_eol(p, next);
		if (!ninja_begins(p, stop, "build ") || !take_edge(p, stop, a, &edge))
			continue;
		edges = arena_room(a, edges, count, &cap, 256, sizeof(*edges));
		edges[count++] = edge;
	}
	array_sort(edges, count, sizeof(*edges), text_cmp);
	*ret = edges;
	*ret_count = count;
}

int ninja_build_read(const char *top, const char *rel, struct arena *a, struct ninja_edge **ret, size_t *ret_count,
		     struct err *e)
{
	AUTO_BUF struct buf text = {0};
	if (fs_exists(top, rel) && fs_read(top, rel, NINJA_FILE_MAX, &text, e) < 0)
		return -1;
	ninja_build_parse(buf_cstr(&text), text.len, a, ret, ret_count);
	return 0;
}

const struct ninja_edge *ninja_build_find(const struct ninja_edge *edges, size_t count, const char *output)
{
	return text_find(output, edges, count, sizeof(*edges));
}
