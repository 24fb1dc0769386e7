#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "core/ninja/ninja_log.h"

/* Where in a statement the parser is. */
struct cursor {
	const char *p, *end; /* end: the newline, or the end of the text */
};

static void skip_blanks(struct cursor *c)
{
	for (;;) {
		if (c->p < c->end && *c->p == ' ')
			c->p++;
		/* the statement goes on in the next line */
		else if (c->end - c->p >= 2 && c->p[0] == '$' && c->p[1] == '\n')
			c->p += 2;
		else
			return;
	}
}

/* The next path or name into `out`, unescaped. False at the end, or before one of ":|". *ret_whole: it holds no
 * variable. */
static bool take_word(struct cursor *c, struct buf *out, bool *ret_whole)
{
	buf_reset(out);
	*ret_whole = true;
	skip_blanks(c);
	while (c->p < c->end && *c->p != ' ' && *c->p != ':' && *c->p != '|' && *c->p != '\r') {
		if (*c->p != '$') {
			buf_addc(out, *c->p++);
			continue;
		}
		if (c->end - c->p < 2 || c->p[1] == '\n')
			break;
		char next = c->p[1];
		if (next == '$' || next == ' ' || next == ':')
			buf_addc(out, next);
		else
			*ret_whole = false;
		c->p += 2;
	}
	return out->len > 0 || !*ret_whole;
}

/* The first path that holds no variable, of those up to ':' or the end; the others are passed over. "" if none. */
static char *first_path(struct cursor *c, struct buf *word, struct arena *a)
{
	char *found = NULL;
	bool whole;
	for (;;) {
		while (take_word(c, word, &whole)) {
			if (whole && !found && !memchr(word->data, '\0', word->len))
				found = arena_strdup(a, buf_cstr(word));
		}
		if (c->p >= c->end || *c->p != '|')
			break;
		/* what comes now is an order, not an input */
		if (found || c->end - c->p < 2 || c->p[1] == '|' || c->p[1] == '@') {
			while (c->p < c->end && *c->p != ':')
				c->p += *c->p == '$' && c->end - c->p >= 2 ? 2 : 1;
			break;
		}
		c->p++;
	}
	return found ? found : arena_strdup(a, "");
}

static bool parse_statement(struct cursor c, struct buf *word, struct arena *a, struct ninja_edge *ret)
{
	struct ninja_edge edge;
	bool whole;
	edge.output = first_path(&c, word, a);
	if (!*edge.output || c.p >= c.end || *c.p != ':' || ninja_is_wait(edge.output))
		return false;
	c.p++;
	if (!take_word(&c, word, &whole) || !whole || strcmp(buf_cstr(word), "phony") == 0 ||
	    memchr(word->data, '\0', word->len))
		return false;
	edge.rule = arena_strdup(a, buf_cstr(word));
	edge.input = first_path(&c, word, a);
	*ret = edge;
	return true;
}

/* The newline that ends the statement at `p`: the first that no '$' stands before. */
static const char *statement_end(const char *p, const char *end)
{
	const char *from = p;
	for (;;) {
		const char *stop = memchr(from, '\n', (size_t)(end - from));
		if (!stop)
			return end;
		const char *d = stop;
		while (d > p && d[-1] == '$')
			d--;
		if ((stop - d) % 2 == 0)
			return stop;
		from = stop + 1;
	}
}

static int by_output(const void *a, const void *b)
{
	return strcmp(((const struct ninja_edge *)a)->output, ((const struct ninja_edge *)b)->output);
}

void ninja_build_parse(const char *text, size_t len, struct arena *a, struct ninja_edge **ret, size_t *ret_count)
{
	static const char mark[] = "build ";
	AUTO_BUF struct buf word = {0};
	const char *end = text + len;
	size_t count = 0, cap = 0;
	struct ninja_edge *edges = NULL, edge;
	for (const char *p = text; p < end;) {
		const char *stop = statement_end(p, end);
		if ((size_t)(stop - p) > strlen(mark) && memcmp(p, mark, strlen(mark)) == 0 &&
		    parse_statement((struct cursor){p + strlen(mark), stop}, &word, a, &edge)) {
			if (count == cap) {
				size_t more = cap ? cap * 2 : 256;
				struct ninja_edge *grown = arena_array(a, more, sizeof(*grown));
				if (count)
					memcpy(grown, edges, count * sizeof(*grown));
				edges = grown;
				cap = more;
			}
			edges[count++] = edge;
		}
		p = stop < end ? stop + 1 : end;
	}
	if (count)
		qsort(edges, count, sizeof(*edges), by_output);
	*ret = edges;
	*ret_count = count;
}

const struct ninja_edge *ninja_build_find(const struct ninja_edge *edges, size_t count, const char *output)
{
	const struct ninja_edge key = {.output = output};
	return count ? bsearch(&key, edges, count, sizeof(key), by_output) : NULL;
}
