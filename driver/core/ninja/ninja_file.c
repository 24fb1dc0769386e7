#include "core/ninja/ninja_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "core/ninja/ninja_parts.h"

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
