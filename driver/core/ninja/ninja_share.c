#include "core/ninja/ninja_parts.h"

/* A path and the statement that makes it. */
struct made {
	const char *path;
	size_t piece;
};

struct graph {
	struct ninja_pieces pieces;
	struct made *made; /* sorted by path */
	size_t made_count, made_cap;
	size_t *stack;
	size_t depth;
	struct arena *arena;
};

struct unit {
	const char *output;
	double seconds;
};

/* The longest first; the name decides between equal ones. */
static int by_seconds(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? 1 : -1;
	return strcmp(x->output, y->output);
}

/* The next path before ':' or the end, of any kind (explicit, implicit, order-only); NULL: none. */
static const char *next_path(const char **p, const char *end, struct buf *word)
{
	bool plain;

	for (;;) {
		const char *at = ninja_skip_blanks(*p, end);
		*p = ninja_take_word(at, end, word, &plain);
		if (word->len)
			return buf_cstr(word);
		if (*p > at) /* a joined line alone */
			continue;
		if (at == end || (*at != '|' && *at != '@'))
			return NULL;
		*p = at + 1;
	}
}

static void add_made(struct graph *g, const char *path, size_t piece)
{
	g->made =
		arena_room(g->arena, g->made, g->made_count, &g->made_cap, 1024, sizeof(*g->made));
	g->made[g->made_count++] = (struct made){arena_strdup(g->arena, path), piece};
}

static void index_outputs(struct graph *g)
{
	AUTO_BUF struct buf word = {0};
	const char *path;

	for (size_t i = 0; i < g->pieces.count; i++) {
		const struct ninja_piece *piece = &g->pieces.items[i];
		const char *p = piece->at + strlen("build"), *end = piece->at + piece->head_len;
		while (piece->build && (path = next_path(&p, end, &word)))
			add_made(g, path, i);
	}

	array_sort(g->made, g->made_count, sizeof(*g->made), text_cmp);
}

static void push(struct graph *g, const char *path, bool *seen)
{
	const struct made *m = text_find(path, g->made, g->made_count, sizeof(*m));

	if (!m || seen[m->piece])
		return;
	seen[m->piece] = true;
	g->stack[g->depth++] = m->piece;
}

static void push_inputs(struct graph *g, const struct ninja_piece *piece, bool *seen)
{
	AUTO_BUF struct buf word = {0};
	const char *p = piece->inputs, *end = piece->at + piece->head_len, *path;

	while ((path = next_path(&p, end, &word)))
		push(g, path, seen);
}

/* Marks what the statements on the stack need. */
static void walk(struct graph *g, bool *seen)
{
	while (g->depth)
		push_inputs(g, &g->pieces.items[g->stack[--g->depth]], seen);
}

static bool compiles(const struct ninja_piece *piece)
{
	return piece->kind == KIND_COMPILE && !strchr(piece->output, '$');
}

/* What is compiled at all, and of that what other compilations need. */
static void mark(struct graph *g, bool *wanted, bool *common)
{
	push(g, "all", wanted);
	bool whole = g->depth == 0;
	walk(g, wanted);
	for (size_t i = 0; i < g->pieces.count; i++) {
		const struct ninja_piece *piece = &g->pieces.items[i];
		wanted[i] = compiles(piece) && (whole || wanted[i]);
		if (wanted[i])
			push_inputs(g, piece, common);
	}

	walk(g, common);
}

/* Each of ret->units units, the longest first, goes to the share that has least. */
static void divide(const struct unit *units, const struct ninja_share_options *o, struct arena *a,
		   struct ninja_share *ret)
{
	double *load = arena_array(a, o->count, sizeof(*load));

	for (size_t i = 0; i < ret->units; i++) {
		unsigned least = 0;
		for (unsigned k = 1; k < o->count; k++)
			if (load[k] < load[least])
				least = k;
		load[least] += units[i].seconds;
		if (least == o->index - 1)
			strlist_ref(&ret->outputs, a, units[i].output);
	}

	ret->seconds = load[o->index - 1];
}

static struct ninja_weight not_weighed(const char *output, void *user)
{
	(void)output;
	(void)user;
	return (struct ninja_weight){0};
}

int ninja_share(const char *text, size_t len, const char *name, const struct ninja_share_options *o,
		struct arena *a, struct ninja_share *ret, struct err *e)
{
	struct graph g = {.arena = a, .pieces = {.arena = a}};
	const struct ninja_options split = {.weigh = not_weighed};
	struct ninja_share s = {0};

	if (memchr(text, '\0', len))
		return err_set(e, ERR_INTEGRITY, "%s: holds a NUL byte", name);
	if (ninja_split(&(struct file_bytes){text, len, name}, &split, &g.pieces, e) < 0)
		return -1;
	index_outputs(&g);
	const size_t count = g.pieces.count;
	bool *wanted = arena_array(a, count + 1, sizeof(*wanted)),
	     *common = arena_array(a, count + 1, sizeof(*common));
	struct unit *units = arena_array(a, count + 1, sizeof(*units));
	g.stack = arena_array(a, count + 1, sizeof(*g.stack));
	mark(&g, wanted, common);
	for (size_t i = 0; i < count; i++) {
		const char *output = g.pieces.items[i].output;
		if (!wanted[i])
			continue;
		if (common[i])
			s.common++;
		else
			units[s.units++] = (struct unit){output, o->seconds(output, o->user)};
	}

	/* Unknown ones take what the others do on average. */
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < s.units; i++) {
		sum += units[i].seconds;
		known += units[i].seconds > 0;
	}

	for (size_t i = 0; i < s.units; i++)
		if (!(units[i].seconds > 0))
			units[i].seconds = known ? sum / (double)known : 1;
	array_sort(units, s.units, sizeof(*units), by_seconds);
	divide(units, o, a, &s);
	*ret = s;
	return 0;
}

void ninja_share_text(const char *manifest, const struct strlist *outputs, struct buf *out)
{
	buf_printf(out, "include %s\nbuild " NINJA_SHARE ": phony", manifest);
	for (size_t i = 0; i < outputs->count; i++) {
		buf_addstr(out, " $\n ");
		for (const char *p = outputs->items[i]; *p; p++) {
			if (strchr("$ :|", *p))
				buf_addc(out, '$');
			buf_addc(out, *p);
		}
	}

	buf_addc(out, '\n');
}
