#include "base/sys/fs.h"
#include "core/ninja/ninja_parts.h"

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
