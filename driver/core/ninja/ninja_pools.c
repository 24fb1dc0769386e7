#include "core/ninja/ninja_parts.h"

#include "base/sys/fs.h"

/* ---- lines as ninja's own lexer reads them: "\n" or "\r\n"
 * ends one; any other return is an error, but in a comment ---- */

/* Whether `word` begins at `p`, with more after it. */
static bool begins(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);
	return (size_t)(end - p) > n && strncmp(p, word, n) == 0;
}

/* Returns the beginning of the end of the line before `next`; `next` if that line has no end. */
static const char *line_eol(const char *p, const char *next)
{
	if (next > p && next[-1] == '\n')
		next -= next - p > 1 && next[-2] == '\r' ? 2 : 1;
	return next;
}

/* Whether a '$' before its end joins the line to the next
 * one; a second '$' before that makes the first one text. */
static bool joins(const char *p, const char *next)
{
	const char *eol = line_eol(p, next), *text = eol;

	while (text > p && text[-1] == '$')
		text--;
	return (eol - text) % 2 != 0;
}

static const char *comment_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));
	return nl ? nl + 1 : end;
}

/* Behind the end of the line at `p`; a '$' before it
 * joins the next line, but in a comment (comment_end). */
static const char *line_end(const char *p, const char *end)
{
	const char *next = end;

	while (p < end && (next = comment_end(p, end), joins(p, next)))
		p = next;
	return p < end ? next : end;
}

static bool is_comment(const char *p, const char *end)
{
	while (p < end && *p == ' ')
		p++;
	return p < end && *p == '#';
}

static const char *next_line(const char *p, const char *end)
{
	return is_comment(p, end) ? comment_end(p, end) : line_end(p, end);
}

/* What ninja does not read in the line of `next` = next_line(p), and where; NULL: nothing. */
static const char *line_fault(const char *p, const char *next, const char **ret_at)
{
	const char *cr = is_comment(p, next) ? NULL : memchr(p, '\r', (size_t)(next - p));

	for (; cr; cr = memchr(cr + 1, '\r', (size_t)(next - cr - 1))) {
		if (cr + 1 < next && cr[1] == '\n')
			continue;
		*ret_at = cr;
		return "a carriage return that is not part of a line's end";
	}

	if (next[-1] == '\n' && (is_comment(p, next) || !joins(p, next)))
		return NULL;
	*ret_at = p;
	return "the last line does not end";
}

/* ---- words and statements ---- */

/* How long the joined end of a line at `p` is: '$' and a line's end; else 0. */
static size_t joint(const char *p, const char *end)
{
	if (end - p > 1 && *p == '$' && p[1] == '\n')
		return 2;
	return end - p > 2 && *p == '$' && p[1] == '\r' && p[2] == '\n' ? 3 : 0;
}

static bool ends_word(char c)
{
	switch (c) {
	case ' ':
	case ':':
	case '|':
	case '\n':
	case '\r':
		return true;
	default:
		return false;
	}
}

const char *ninja_take_word(const char *p, const char *end, struct buf *out, bool *ret_plain)
{
	buf_reset(out);
	*ret_plain = true;
	while (p < end && !ends_word(*p)) {
		size_t joined = joint(p, end);
		if (joined) {
			p += joined;
			while (p < end && *p == ' ')
				p++;
			continue;
		}

		if (*p == '$' && p + 1 < end) {
			p++;
			if (!strchr("$ :|", *p)) { /* a variable stays one */
				buf_addc(out, '$');
				*ret_plain = false;
			}
		} else if (*p == '$') { /* joins nothing */
			p++;
			continue;
		}

		*ret_plain = *ret_plain && *p != '\0';
		buf_addc(out, *p++);
	}

	return p;
}

const char *ninja_skip_blanks(const char *p, const char *end)
{
	size_t joined;

	while (p < end && (*p == ' ' || joint(p, end)))
		p += (joined = joint(p, end)) ? joined : 1;
	return p;
}

/* What a list of paths has; NULL: nothing. */
struct paths {
	const char *first, *plain; /* the first of all, and of the plain ones */
};

/* Paths up to ':', "||", "|@" or the end. Gives where it stopped. */
static const char *take_paths(const char *p, const char *end, struct arena *a, struct paths *ret)
{
	AUTO_BUF struct buf word = {0};

	*ret = (struct paths){0};
	for (;;) {
		bool plain;
		p = ninja_skip_blanks(p, end);
		const char *next = ninja_take_word(p, end, &word, &plain);
		if (next == p) {
			if (end - p < 2 || *p != '|' || p[1] == '|' || p[1] == '@')
				return p;
			next = p + 1;
		} else if (word.len && !(ret->first && (ret->plain || !plain))) {
			const char *path = arena_strdup(a, buf_cstr(&word));
			ret->first = ret->first ? ret->first : path;
			ret->plain = plain ? path : NULL;
		}

		p = next;
	}
}

/* "build OUT OUT | IMPLICIT: RULE IN ..." */
struct head {
	struct paths outputs;
	const char *rule;
	bool plain_rule;
	const char *inputs; /* behind the rule */
};

/* Reads the head of the build statement at `p`; false if output or rule is missing. */
static bool take_head(const char *p, const char *end, struct arena *a, struct head *ret)
{
	AUTO_BUF struct buf word = {0};
	struct head h;

	p = take_paths(p + strlen("build"), end, a, &h.outputs);
	if (!h.outputs.first || p >= end || *p != ':')
		return false;
	h.inputs = ninja_take_word(ninja_skip_blanks(p + 1, end), end, &word, &h.plain_rule);
	h.rule = arena_strdup(a, buf_cstr(&word));
	*ret = h;
	return word.len > 0;
}

/* ---- waits of links for heavy units ---- */

#define RULE NINJA_PREFIX "wait"
#define LENGTH 4 /* longer than the chain of libraries that are linked one against the other */

static bool is_plain(const char *path)
{
	return path[strcspn(path, " $:|\n\r")] == '\0';
}

/* The outputs of the heavy units, sorted. */
static struct strlist heavy_outputs(const struct ninja_pieces *l, struct arena *a)
{
	struct strlist outputs = {0};

	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].kind == KIND_HEAVY && is_plain(l->items[i].output))
			strlist_ref(&outputs, a, l->items[i].output);
	strlist_sort(&outputs);
	return outputs;
}

/* Adds the heavy inputs of a link, with a blank before each. */
static void heavy_inputs(const struct ninja_piece *piece, const struct strlist *heavy,
			 struct buf *ret)
{
	AUTO_BUF struct buf word = {0};
	const char *end = piece->at + piece->head_len;
	bool plain;

	for (const char *p = ninja_skip_blanks(piece->inputs, end), *next; p < end && *p != '|';
	     p = ninja_skip_blanks(next, end)) {
		next = ninja_take_word(p, end, &word, &plain);
		if (next == p)
			return;
		const char *name = buf_cstr(&word);
		if (text_find(name, heavy->items, heavy->count, sizeof(*heavy->items)))
			buf_printf(ret, " %s", name);
	}
}

/* Nothing is appended after a '$', which would escape it, nor to an empty joined line. */
static bool has_plain_end(const struct ninja_piece *piece)
{
	char last = piece->at[piece->head_len - 1];
	return last != '$' && last != '\n';
}

/* Numbers the waits of the links that take heavy units, and appends their statements to `out`. */
static void add_waits(struct ninja_pieces *l, struct arena *a, struct buf *out)
{
	const struct strlist heavy = heavy_outputs(l, a);
	unsigned waits = 0;

	for (size_t i = 0; heavy.count && i < l->count; i++) {
		struct ninja_piece *piece = &l->items[i];
		AUTO_BUF struct buf inputs = {0};
		if (piece->links && has_plain_end(piece))
			heavy_inputs(piece, &heavy, &inputs);
		if (!inputs.len)
			continue;
		if (!waits)
			buf_addstr(out, "rule " RULE "\n  command = : > $out\n");
		piece->wait = ++waits;
		piece->order_only = memmem(piece->at, piece->head_len, "||", 2) != NULL;
		buf_printf(out, "build " NINJA_WAIT_DIR "%u-1: " RULE "%s\n", waits,
			   buf_cstr(&inputs));
		for (unsigned k = 2; k <= LENGTH; k++)
			buf_printf(out,
				   "build " NINJA_WAIT_DIR "%u-%u: " RULE " " NINJA_WAIT_DIR
				   "%u-%u\n",
				   waits, k, waits, k - 1);
	}
}

/* What is added now to a build statement's first line. */
static void put_wait(const struct ninja_piece *piece, struct buf *out)
{
	if (piece->wait)
		buf_printf(out, "%s " NINJA_WAIT_DIR "%u-%u", piece->order_only ? "" : " ||",
			   piece->wait, LENGTH);
}

/* Where the last word begins, with the blank before it; 0 if that blank is escaped. */
static size_t last_word(const char *head, size_t len)
{
	while (len && head[len - 1] != ' ')
		len--;
	return len > 1 && head[len - 2] != '$' ? len - 1 : 0;
}

/* " .ptbuild-heavy/2-4", as put_wait writes it. */
static bool is_wait(const char *word, size_t len)
{
	static const char dir[] = " " NINJA_WAIT_DIR;
	const size_t start = sizeof(dir) - 1;

	if (len <= start || memcmp(word, dir, start) != 0)
		return false;
	for (size_t i = start; i < len; i++)
		if ((word[i] < '0' || word[i] > '9') && word[i] != '-')
			return false;
	return true;
}

/* How much of a build statement's first line, of `len`
 * bytes without its end, is not an earlier run's. */
static size_t own_head_len(const char *head, size_t len)
{
	for (;;) {
		size_t at = last_word(head, len), n = len - at;
		bool bars = n == 3 && memcmp(head + at, " ||", 3) == 0;
		if (!at || (!bars && !is_wait(head + at, n)))
			return len;
		len = at;
	}
}

/* ---- the statements ---- */

struct reader {
	const char *text;
	const struct ninja_options *o;
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
	if (p == end || line_eol(p, comment_end(p, end)) == p)
		return LINE_EMPTY;
	if (*p == '#')
		return LINE_COMMENT;
	return indented ? LINE_BINDING : LINE_TEXT;
}

/* Returns the end of the bindings that follow at `p`, with comments between them. */
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

#define LINKER "_LINKER__" /* in the name of CMake's rule */

static enum ninja_kind kind_of(const char *rule)
{
	if (strstr(rule, "_COMPILER__"))
		return KIND_COMPILE;
	return strstr(rule, LINKER) && !strstr(rule, "_STATIC_LIBRARY_") ? KIND_LINK : KIND_OTHER;
}

static bool read_build(struct ninja_piece *piece, struct arena *a)
{
	struct head h;

	if (!take_head(piece->at, piece->at + piece->head_len, a, &h))
		return false;
	piece->output = h.outputs.first;
	piece->inputs = h.inputs;
	piece->kind = kind_of(h.rule);
	piece->links = strstr(h.rule, LINKER) != NULL;
	return true;
}

/* Whether it has a line "pool = VALUE" that is not ours. */
static bool has_own_pool(const struct ninja_piece *piece)
{
	const char *end = piece->at + piece->len;

	for (const char *p = line_end(piece->at, end); p < end; p = next_line(p, end)) {
		const char *w = p;
		while (w < end && *w == ' ')
			w++;
		if ((size_t)(end - w) > 5 && strncmp(w, "pool", 4) == 0 &&
		    (w[4] == ' ' || w[4] == '=')) {
			w += 4;
			while (w < end && (*w == ' ' || *w == '='))
				w++;
			return (size_t)(end - w) < strlen(NINJA_PREFIX) ||
			       strncmp(w, NINJA_PREFIX, strlen(NINJA_PREFIX)) != 0;
		}
	}

	return false;
}

static int bad(const struct reader *r, const char *at, const char *why, struct err *e)
{
	size_t line = 1;

	for (const char *p = r->text; p < at; p++)
		line += *p == '\n';
	return err_set(e, ERR_INTEGRITY, "%s:%zu: %s", r->name, line, why);
}

/* Every line up to `end` is one that ninja reads. */
static int check_lines(const struct reader *r, const char *end, struct err *e)
{
	const char *at;

	for (const char *p = r->at, *next; p < end; p = next) {
		next = next_line(p, end);
		const char *why = line_fault(p, next, &at);
		if (why)
			return bad(r, at, why, e);
	}

	return 0;
}

/* A statement that ends at `end`: its kind, which for a build statement says its pool. */
static int read_statement(const struct reader *r, const char *end, struct ninja_piece *piece,
			  struct err *e)
{
	piece->build = begins(piece->at, end, "build ");
	piece->border = !piece->build;
	if (!piece->build)
		return 0;
	const char *eol = line_eol(piece->at, line_end(piece->at, end));
	piece->head_len = own_head_len(piece->at, (size_t)(eol - piece->at));
	if (!read_build(piece, r->arena))
		return bad(r, piece->at, "a build statement without output or rule", e);
	if (piece->kind != KIND_OTHER && has_own_pool(piece))
		piece->kind = KIND_OTHER;
	if (piece->kind == KIND_COMPILE) {
		struct ninja_weight w = r->o->weigh(piece->output, r->o->user);
		piece->kind = w.heavy ? KIND_HEAVY : KIND_COMPILE;
		piece->cost = w.cost;
		piece->movable = true;
	}

	return 0;
}

int ninja_split(const struct file_bytes *in, const struct ninja_options *o,
		struct ninja_pieces *ret, struct err *e)
{
	const char *text = in->data;
	struct reader reader = {.name = in->name,
				.text = text,
				.at = text,
				.end = text + in->size,
				.o = o,
				.arena = ret->arena};
	struct reader *r = &reader;

	while (r->at < r->end) {
		struct ninja_piece piece = {.at = r->at};
		const char *next;
		if (begins(r->at, r->end, NINJA_HEAD_BEGIN)) { /* of an earlier run: replaced */
			next = memmem(r->at, (size_t)(r->end - r->at), NINJA_HEAD_END,
				      strlen(NINJA_HEAD_END));
			if (!next)
				return bad(r, r->at, "ptbuild's pools have no end mark", e);
			r->at = next + strlen(NINJA_HEAD_END);
			continue;
		}

		enum line line = line_of(r->at, r->end);
		if (line == LINE_BINDING || *r->at == '\t')
			return bad(r, r->at, "an indented line without a statement above it", e);
		next = line == LINE_TEXT ? bindings_end(line_end(r->at, r->end), r->end)
					 : comment_end(r->at, r->end);
		piece.len = (size_t)(next - r->at);
		if (check_lines(r, next, e) < 0 ||
		    (line == LINE_TEXT && read_statement(r, next, &piece, e) < 0))
			return -1;
		ret->items = arena_room(ret->arena, ret->items, ret->count, &ret->cap, 64,
					sizeof(*ret->items));
		ret->items[ret->count++] = piece;
		r->at = next;
	}

	return 0;
}

static const char *const pool_names[] = {NULL, NINJA_PREFIX "compile", NINJA_PREFIX "heavy",
					 NINJA_PREFIX "link"};

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
	return begins(p, end, mark);
}

static void put_piece(const struct ninja_piece *piece, struct buf *out)
{
	const char *end = piece->at + piece->len, *p = piece->at;

	if (!piece->build) {
		buf_add(out, p, piece->len);
		return;
	}

	const char *next = line_end(p, end), *eol = line_eol(p, next);
	buf_add(out, p, piece->head_len);
	put_wait(piece, out);
	buf_add(out, eol, (size_t)(next - eol));
	if (piece->kind != KIND_OTHER)
		buf_printf(out, "  pool = %s\n", pool_names[piece->kind]);
	for (p = next; p < end; p = next) {
		next = next_line(p, end);
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

int ninja_text(const char *text, size_t len, const char *name, const struct ninja_options *o,
	       struct arena *a, struct buf *out, struct ninja_counts *ret, struct err *e)
{
	struct ninja_pieces l = {.arena = a};
	struct ninja_counts c = {0};
	size_t start = out->len;

	if (memchr(text, '\0', len))
		return err_set(e, ERR_INTEGRITY, "%s: holds a NUL byte", name);
	if (ninja_split(&(struct file_bytes){text, len, name}, o, &l, e) < 0)
		return -1;
	order_all(&l, a);
	count(&l, a, &c);
	buf_printf(out,
		   NINJA_HEAD_BEGIN
		   "pool %s\n  depth = %u\npool %s\n  depth = %u\npool %s\n  depth = %u\n",
		   pool_names[KIND_COMPILE], o->compile, pool_names[KIND_HEAVY], o->heavy,
		   pool_names[KIND_LINK], o->link);
	add_waits(&l, a, out);
	buf_addstr(out, NINJA_HEAD_END);
	for (size_t i = 0; i < l.count; i++)
		put_piece(&l.items[i], out);
	c.changed = out->len - start != len || memcmp(out->data + start, text, len) != 0;
	*ret = c;
	return 0;
}

int ninja_file_rewrite(const char *top, const char *rel, const struct ninja_options *o,
		       struct arena *a, struct ninja_counts *ret, struct err *e)
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
	struct head h;
	struct paths inputs;

	if (!take_head(p, end, a, &h) || !h.outputs.plain || !h.plain_rule)
		return false;
	if (ninja_is_wait(h.outputs.plain) || strcmp(h.rule, "phony") == 0)
		return false;
	take_paths(h.inputs, end, a, &inputs);
	*ret = (struct ninja_edge){h.outputs.plain, h.rule, inputs.plain ? inputs.plain : ""};
	return true;
}

void ninja_build_parse(const char *text, size_t len, struct arena *a, struct ninja_edge **ret,
		       size_t *ret_count)
{
	const char *end = text + len, *next;
	size_t count = 0, cap = 0;
	struct ninja_edge *edges = NULL, edge;

	for (const char *p = text; p < end; p = next) {
		next = next_line(p, end);
		const char *stop = line_eol(p, next);
		if (!begins(p, stop, "build ") || !take_edge(p, stop, a, &edge))
			continue;
		edges = arena_room(a, edges, count, &cap, 256, sizeof(*edges));
		edges[count++] = edge;
	}

	array_sort(edges, count, sizeof(*edges), text_cmp);
	*ret = edges;
	*ret_count = count;
}

int ninja_build_read(const char *top, const char *rel, struct arena *a, struct ninja_edge **ret,
		     size_t *ret_count, struct err *e)
{
	AUTO_BUF struct buf text = {0};

	if (fs_exists(top, rel) && fs_read(top, rel, NINJA_FILE_MAX, &text, e) < 0)
		return -1;
	ninja_build_parse(buf_cstr(&text), text.len, a, ret, ret_count);
	return 0;
}
