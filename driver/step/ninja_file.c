#include "step/ninja_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/os.h"

#define PREFIX "ptbuild_"
#define HEAD_BEGIN "# ptbuild: pools\n"
#define HEAD_END "# ptbuild: end of pools\n"

enum kind { KIND_OTHER, KIND_COMPILE, KIND_HEAVY, KIND_LINK };
static const char *const pool_names[] = {NULL, PREFIX "compile", PREFIX "heavy", PREFIX "link"};

/* One statement: from its first line to the end of the indented lines below it. What stands between statements (comments, empty lines) is one as well, of its own. */
struct piece {
	const char *at;
	size_t len;
	bool build;
	bool border; /* nothing is moved past it */
	bool movable;
	enum kind kind;
	double cost;
	const char *output;
};

struct pieces {
	struct piece *items;
	size_t count, cap;
};

struct reader {
	const char *name;
	const char *at, *end;
	struct arena *arena;
};

/* The end of the line that begins at `p`, behind its '\n'; a '$' before the '\n' joins the next line. */
static const char *line_end(const char *p, const char *end)
{
	for (;;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			return end;
		size_t dollars = 0;
		const char *before = nl > p && nl[-1] == '\r' ? nl - 1 : nl;
		while (before - dollars > p && before[-1 - (ptrdiff_t)dollars] == '$')
			dollars++;
		p = nl + 1;
		if (dollars % 2 == 0)
			return p;
	}
}

enum line { LINE_TEXT, LINE_BINDING, LINE_COMMENT, LINE_EMPTY };

static enum line line_of(const char *p, const char *end)
{
	bool indented = p < end && *p == ' ';
	while (p < end && (*p == ' ' || *p == '\r'))
		p++;
	if (p == end || *p == '\n')
		return LINE_EMPTY;
	if (*p == '#')
		return LINE_COMMENT;
	return indented ? LINE_BINDING : LINE_TEXT;
}

/* A comment ends with its line, whatever stands before the '\n'. */
static const char *comment_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));
	return nl ? nl + 1 : end;
}

static const char *next_line(const char *p, const char *end)
{
	return line_of(p, end) == LINE_COMMENT ? comment_end(p, end) : line_end(p, end);
}

/* The end of the bindings that follow at `p`; comments may stand between them. */
static const char *bindings_end(const char *p, const char *end)
{
	const char *q = p;
	for (;;) {
		while (line_of(q, end) == LINE_COMMENT)
			q = comment_end(q, end);
		if (line_of(q, end) != LINE_BINDING)
			return p;
		p = q = line_end(q, end);
	}
}

/* Takes one word of a build statement: to a blank, ':' or '|' that no '$' stands before. Joined lines and escapes are resolved. */
static const char *take_word(const char *p, const char *end, struct buf *out)
{
	buf_reset(out);
	while (p < end && *p != ' ' && *p != ':' && *p != '|' && *p != '\n') {
		if (*p == '$' && p + 1 < end) {
			p++;
			if (*p == '\n' || *p == '\r') {
				p += *p == '\r' && p + 1 < end && p[1] == '\n' ? 2 : 1;
				while (p < end && *p == ' ')
					p++;
				continue;
			}
			if (!strchr("$ :|", *p))
				buf_addc(out, '$'); /* a variable stays one */
		}
		buf_addc(out, *p++);
	}
	return p;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end) {
		if (*p == ' ')
			p++;
		else if (*p == '$' && p + 1 < end && p[1] == '\n')
			p += 2;
		else
			break;
	}
	return p;
}

static enum kind kind_of(const char *rule)
{
	if (strstr(rule, "_COMPILER__"))
		return KIND_COMPILE;
	if (strstr(rule, "_LINKER__") && !strstr(rule, "_STATIC_LIBRARY_"))
		return KIND_LINK;
	return KIND_OTHER;
}

/* "build OUT OUT | IMPLICIT: RULE ...": the first output and the rule. */
static bool read_build(const struct piece *piece, struct arena *a, const char **output, enum kind *kind)
{
	AUTO_BUF struct buf word = {0};
	const char *end = line_end(piece->at, piece->at + piece->len);
	const char *p = skip_blanks(piece->at + strlen("build"), end);
	*output = NULL;
	while (p < end && *p != ':' && *p != '\n') {
		const char *from = p;
		p = take_word(p, end, &word);
		if (!*output && word.len)
			*output = arena_strdup(a, buf_cstr(&word));
		p = skip_blanks(p, end);
		if (p < end && *p == '|')
			p = skip_blanks(p + 1, end);
		if (p == from)
			return false;
	}
	if (!*output || p >= end || *p != ':')
		return false;
	take_word(skip_blanks(p + 1, end), end, &word);
	*kind = kind_of(buf_cstr(&word));
	return word.len > 0;
}

/* The value of an indented "pool = VALUE" line that is not ours. */
static bool has_own_pool(const struct piece *piece)
{
	const char *end = piece->at + piece->len;
	for (const char *p = line_end(piece->at, end); p < end; p = next_line(p, end)) {
		const char *w = p;
		while (w < end && *w == ' ')
			w++;
		if ((size_t)(end - w) > 5 && strncmp(w, "pool", 4) == 0 && (w[4] == ' ' || w[4] == '=')) {
			w += 4;
			while (w < end && (*w == ' ' || *w == '='))
				w++;
			return (size_t)(end - w) < strlen(PREFIX) || strncmp(w, PREFIX, strlen(PREFIX)) != 0;
		}
	}
	return false;
}

static void add_piece(struct pieces *l, struct arena *a, struct piece piece)
{
	if (l->count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct piece *items = arena_array(a, cap, sizeof(*items));
		if (l->count)
			memcpy(items, l->items, l->count * sizeof(*items));
		l->items = items;
		l->cap = cap;
	}
	l->items[l->count++] = piece;
}

static bool begins(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);
	return (size_t)(end - p) > n && strncmp(p, word, n) == 0;
}

static int bad(const struct reader *r, const char *text, const char *at, const char *why, struct err *e)
{
	size_t line = 1;
	for (const char *p = text; p < at; p++)
		line += *p == '\n';
	return err_set(e, ERR_INTEGRITY, "%s:%zu: %s", r->name, line, why);
}

/* A statement that ends at `end`: what it is, and for a build statement which pool it belongs to. */
static int read_statement(const struct reader *r, const char *text, const char *end, const struct ninja_options *o, struct piece *piece,
			  struct err *e)
{
	piece->len = (size_t)(end - piece->at);
	piece->build = begins(piece->at, end, "build ");
	piece->border = !piece->build;
	if (!piece->build)
		return 0;
	if (!read_build(piece, r->arena, &piece->output, &piece->kind))
		return bad(r, text, piece->at, "a build statement without output or rule", e);
	if (piece->kind != KIND_OTHER && has_own_pool(piece))
		piece->kind = KIND_OTHER;
	if (piece->kind == KIND_COMPILE) {
		struct ninja_file_unit u = o->unit(piece->output, o->user);
		piece->kind = u.heavy ? KIND_HEAVY : KIND_COMPILE;
		piece->cost = u.cost;
		piece->movable = true;
	}
	return 0;
}

static int split(struct reader *r, const struct ninja_options *o, struct pieces *l, struct err *e)
{
	const char *text = r->at;
	while (r->at < r->end) {
		struct piece piece = {.at = r->at};
		const char *next;
		if (begins(r->at, r->end, HEAD_BEGIN)) { /* of an earlier run: made anew */
			next = memmem(r->at, (size_t)(r->end - r->at), HEAD_END, strlen(HEAD_END));
			if (!next)
				return bad(r, text, r->at, "the pools have no end", e);
			r->at = next + strlen(HEAD_END);
			continue;
		}
		enum line line = line_of(r->at, r->end);
		if (line == LINE_BINDING || *r->at == '\t')
			return bad(r, text, r->at, "an indented line without a statement above it", e);
		if (line == LINE_TEXT) {
			next = bindings_end(line_end(r->at, r->end), r->end);
			if (read_statement(r, text, next, o, &piece, e) != 0)
				return -1;
		} else {
			next = comment_end(r->at, r->end);
			piece.len = (size_t)(next - r->at);
		}
		add_piece(l, r->arena, piece);
		r->at = next;
	}
	return 0;
}

/* Higher cost first; equal ones by their place, which is their address in the text. */
static int by_cost(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Sorts the movable ones of a stretch without a border among the places they have. */
static void order(struct piece *items, size_t count, struct piece *scratch)
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

static void order_all(struct pieces *l, struct arena *a)
{
	struct piece *scratch = arena_array(a, l->count + 1, sizeof(*scratch));
	for (size_t i = 0; i < l->count;) {
		size_t from = i;
		while (i < l->count && !l->items[i].border)
			i++;
		order(l->items + from, i - from, scratch);
		i += i < l->count;
	}
}

/* Whether a line is the "pool = ptbuild_..." of an earlier run. */
static bool is_our_pool(const char *p, const char *end)
{
	static const char mark[] = "  pool = " PREFIX;
	return begins(p, end, mark);
}

/* The last statement of the text may not be the last any more: its last line must end. */
static void end_line(const char *at, const char *end, struct buf *out)
{
	bool ends = end > at && end[-1] == '\n';
	const char *last = ends ? end - 1 : end;
	size_t dollars = 0;
	while (last - dollars > at && last[-1 - (ptrdiff_t)dollars] == '$')
		dollars++;
	if (!ends)
		buf_addc(out, '\n');
	if (dollars % 2) /* it joins the next line, which now is an empty one */
		buf_addc(out, '\n');
}

static void put_piece(const struct piece *piece, struct buf *out)
{
	const char *end = piece->at + piece->len, *p = piece->at;
	if (!piece->build) {
		buf_add(out, p, piece->len);
		return;
	}
	const char *next = line_end(p, end);
	buf_add(out, p, (size_t)(next - p));
	if (next == end)
		end_line(p, end, out);
	if (piece->kind != KIND_OTHER)
		buf_printf(out, "  pool = %s\n", pool_names[piece->kind]);
	for (p = next; p < end; p = next) {
		next = next_line(p, end);
		if (is_our_pool(p, end))
			continue;
		buf_add(out, p, (size_t)(next - p));
		if (next == end)
			end_line(p, end, out);
	}
}

static void count(const struct pieces *l, struct arena *a, struct ninja_counts *c)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct piece *piece = &l->items[i];
		c->compile += piece->kind == KIND_COMPILE;
		c->link += piece->kind == KIND_LINK;
		c->heavy += piece->kind == KIND_HEAVY;
		if (piece->kind == KIND_HEAVY && !strchr(piece->output, '$')) {
			strlist_ref(&c->heavy_outputs, a, piece->output);
		}
	}
}

int ninja_text(const char *text, size_t len, const char *name, const struct ninja_options *o, struct arena *a, struct buf *out,
	       struct ninja_counts *ret, struct err *e)
{
	struct reader r = {.name = name, .at = text, .end = text + len, .arena = a};
	struct pieces l = {0};
	struct ninja_counts c = {0};
	size_t start = out->len;
	if (memchr(text, '\0', len))
		return err_set(e, ERR_INTEGRITY, "%s: holds a NUL byte", name);
	if (split(&r, o, &l, e) != 0)
		return -1;
	order_all(&l, a);
	count(&l, a, &c);
	buf_printf(out, HEAD_BEGIN "pool %s\n  depth = %u\npool %s\n  depth = %u\npool %s\n  depth = %u\n" HEAD_END,
		   pool_names[KIND_COMPILE], o->compile, pool_names[KIND_HEAVY], o->heavy, pool_names[KIND_LINK], o->link);
	for (size_t i = 0; i < l.count; i++)
		put_piece(&l.items[i], out);
	c.changed = out->len - start != len || memcmp(out->data + start, text, len) != 0;
	*ret = c;
	return 0;
}

int ninja_file_rewrite(const char *path, const struct ninja_options *o, struct arena *a, struct ninja_counts *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf out = {0};
	struct ninja_counts c;
	struct stat st;
	if (stat(path, &st) != 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	if (fs_read(path, NINJA_FILE_MAX, &text, e) != 0 || ninja_text(buf_cstr(&text), text.len, path, o, a, &out, &c, e) != 0)
		return -1;
	if (c.changed) {
		const struct timespec times[2] = {st.st_atim, st.st_mtim};
		if (fs_write_atomic(path, out.data, out.len, st.st_mode & 0777, e) != 0)
			return -1;
		if (utimensat(AT_FDCWD, path, times, 0) != 0)
			return err_errno(e, ERR_SYSTEM, "cannot set the time of '%s'", path);
	}
	*ret = c;
	return 0;
}
