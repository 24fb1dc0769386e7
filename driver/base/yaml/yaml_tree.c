#include "base/yaml/yaml_tree.h"

#include <yaml.h>

#include "base/sys/fs.h"

#define MAX_FILE ((uint64_t)4 << 20)
#define MAX_DEPTH 64
#define MAX_NODES 100000 /* all tables together have some thousands */

/* A node that aliases may stand for: its subtree is shared, since nothing changes it. */
struct anchor {
	const char *name;
	unsigned line;
	size_t nodes;
	struct yaml_tree node;
};

struct source {
	yaml_parser_t parser;
	const char *path;
	const struct buf *text;
	struct arena *arena;
	yaml_event_t event; /* the current one; has_event: whether it holds memory */
	bool has_event;
	struct anchor *anchors;
	size_t anchor_count;
	size_t anchor_cap;
	size_t nodes; /* so far, those behind an alias counted each time */
};

static void source_release(struct source *s)
{
	if (s->has_event)
		yaml_event_delete(&s->event);
	yaml_parser_delete(&s->parser);
}

/* libyaml gives no line for bytes that are not UTF-8, only their offset. */
static unsigned line_of_offset(const struct buf *text, size_t offset)
{
	unsigned line = 1;

	for (size_t i = 0; i < offset && i < text->len; i++)
		line += text->data[i] == '\n';
	return line;
}

static int parser_error(const struct source *s, struct err *e)
{
	const yaml_parser_t *p = &s->parser;

	if (p->error == YAML_MEMORY_ERROR)
		abort();
	unsigned line = p->error == YAML_READER_ERROR ? line_of_offset(s->text, p->problem_offset)
						      : (unsigned)p->problem_mark.line + 1;
	const char *problem = p->problem ? p->problem : "no reason given";
	if (p->context)
		return err_set(e, ERR_CONFIG, "%s:%u: invalid YAML: %s, %s", s->path, line,
			       p->context, problem);
	return err_set(e, ERR_CONFIG, "%s:%u: invalid YAML: %s", s->path, line, problem);
}

static int next_event(struct source *s, struct err *e)
{
	if (s->has_event)
		yaml_event_delete(&s->event);
	s->has_event = yaml_parser_parse(&s->parser, &s->event);
	return s->has_event ? 0 : parser_error(s, e);
}

static unsigned event_line(const struct source *s)
{
	return (unsigned)s->event.start_mark.line + 1;
}

static void set_place(const struct source *s, struct yaml_tree *t)
{
	t->line = event_line(s);
	t->column = (unsigned)s->event.start_mark.column + 1;
}

static int refuse(const struct source *s, const char *what, struct err *e)
{
	return err_set(e, ERR_CONFIG, "%s:%u: %s", s->path, event_line(s), what);
}

/* The tag or the anchor of the current event; NULL without one. */
static const char *event_property(const struct source *s, bool tag)
{
	const yaml_event_t *v = &s->event;

	switch (v->type) {
	case YAML_SCALAR_EVENT:
		return (const char *)(tag ? v->data.scalar.tag : v->data.scalar.anchor);
	case YAML_SEQUENCE_START_EVENT:
		return (const char *)(tag ? v->data.sequence_start.tag
					  : v->data.sequence_start.anchor);
	case YAML_MAPPING_START_EVENT:
		return (const char *)(tag ? v->data.mapping_start.tag
					  : v->data.mapping_start.anchor);
	default:
		return NULL;
	}
}

/* Tags and NUL bytes would only be ways to write one thing and mean another. */
static int refuse_extras(const struct source *s, struct err *e)
{
	const yaml_event_t *v = &s->event;

	if (v->type == YAML_SCALAR_EVENT && memchr(v->data.scalar.value, 0, v->data.scalar.length))
		return refuse(s, "a text with a NUL byte", e);
	return event_property(s, true) ? refuse(s, "tags are not supported", e) : 0;
}

static const struct anchor *find_anchor(const struct source *s, const char *name)
{
	return text_search(name, s->anchors, s->anchor_count, sizeof(*s->anchors));
}

/* Known from its end on, so no node can contain itself. */
static int add_anchor(struct source *s, struct anchor new, struct err *e)
{
	const struct anchor *first = find_anchor(s, new.name);

	if (first)
		return err_set(e, ERR_CONFIG, "%s:%u: duplicate anchor '%s' (first on line %u)",
			       s->path, new.line, new.name, first->line);
	s->anchors = arena_room(s->arena, s->anchors, s->anchor_count, &s->anchor_cap, 8,
				sizeof(*s->anchors));
	s->anchors[s->anchor_count++] = new;
	return 0;
}

static int count_nodes(struct source *s, size_t nodes, struct err *e)
{
	s->nodes += nodes;
	if (s->nodes <= MAX_NODES)
		return 0;
	return err_set(e, ERR_CONFIG,
		       "%s:%u: more than %d values, counting those of an alias each time", s->path,
		       event_line(s), MAX_NODES);
}

static int parse_alias(struct source *s, struct yaml_tree *t, struct err *e)
{
	const char *name = (const char *)s->event.data.alias.anchor;
	const struct anchor *anchor = find_anchor(s, name);

	if (!anchor)
		return err_set(e, ERR_CONFIG, "%s:%u: alias '%s' has no anchor before it", s->path,
			       event_line(s), name);
	t->kind = anchor->node.kind;
	t->text = anchor->node.text;
	t->items = anchor->node.items;
	t->count = anchor->node.count;
	return count_nodes(s, anchor->nodes, e);
}

static const char *event_text(const struct source *s)
{
	return arena_strndup(s->arena, (const char *)s->event.data.scalar.value,
			     s->event.data.scalar.length);
}

static struct yaml_tree *add_item(struct source *s, struct yaml_tree *t, size_t *cap)
{
	if (t->count == *cap)
		t->items = arena_grow(s->arena, t->items, cap, 4, sizeof(*t->items));
	return &t->items[t->count++];
}

static int parse_node(struct source *s, struct yaml_tree *t, int depth, struct err *e);

static int parse_list(struct source *s, struct yaml_tree *t, int depth, struct err *e)
{
	size_t cap = 0;

	for (;;) {
		if (next_event(s, e) < 0)
			return -1;
		if (s->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		struct yaml_tree *item = add_item(s, t, &cap);
		set_place(s, item);
		if (parse_node(s, item, depth + 1, e) < 0)
			return -1;
	}
}

static int parse_mapping(struct source *s, struct yaml_tree *t, int depth, struct err *e)
{
	size_t cap = 0;

	for (;;) {
		if (next_event(s, e) < 0)
			return -1;
		if (s->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		if (refuse_extras(s, e) < 0)
			return -1;
		if (s->event.type != YAML_SCALAR_EVENT || s->event.data.scalar.anchor)
			return refuse(s, "a key must be plain text", e);
		struct yaml_tree *item = add_item(s, t, &cap);
		set_place(s, item);
		item->key = event_text(s);
		if (next_event(s, e) < 0 || parse_node(s, item, depth + 1, e) < 0)
			return -1;
	}
}

static int parse_content(struct source *s, struct yaml_tree *t, int depth, struct err *e)
{
	switch (s->event.type) {
	case YAML_SCALAR_EVENT:
		t->kind = YAML_TEXT;
		t->text = event_text(s);
		return 0;
	case YAML_SEQUENCE_START_EVENT:
		t->kind = YAML_LIST;
		return parse_list(s, t, depth, e);
	case YAML_MAPPING_START_EVENT:
		t->kind = YAML_MAPPING;
		return parse_mapping(s, t, depth, e);
	default:
		return refuse(s, "invalid YAML: unexpected structure", e);
	}
}

/* The node whose first event is the current one; its key and line are the caller's. */
static int parse_node(struct source *s, struct yaml_tree *t, int depth, struct err *e)
{
	if (refuse_extras(s, e) < 0)
		return -1;
	if (depth > MAX_DEPTH)
		return refuse(s, "nested too deeply", e);
	if (s->event.type == YAML_ALIAS_EVENT)
		return parse_alias(s, t, e);
	const char *anchor = event_property(s, false);
	if (anchor) /* it dies with its event */
		anchor = arena_strdup(s->arena, anchor);
	unsigned line = event_line(s);
	size_t before = s->nodes;
	if (count_nodes(s, 1, e) < 0 || parse_content(s, t, depth, e) < 0)
		return -1;
	if (!anchor)
		return 0;
	return add_anchor(s, (struct anchor){anchor, line, s->nodes - before, *t}, e);
}

static int next_two_events(struct source *s, struct err *e)
{
	return next_event(s, e) < 0 ? -1 : next_event(s, e);
}

static int parse_document(struct source *s, struct yaml_tree *t, struct err *e)
{
	/* The stream's start, then the document's. */
	if (next_two_events(s, e) < 0)
		return -1;
	if (s->event.type == YAML_STREAM_END_EVENT)
		return refuse(s, "the file is empty", e);
	if (next_event(s, e) < 0)
		return -1;
	if (s->event.type != YAML_MAPPING_START_EVENT)
		return refuse(s, "'key: value' lines are expected at the top", e);
	if (parse_node(s, t, 0, e) < 0)
		return -1;
	/* The document's end, then nothing more. */
	if (next_two_events(s, e) < 0)
		return -1;
	return s->event.type == YAML_STREAM_END_EVENT
		       ? 0
		       : refuse(s, "more than one document in the file", e);
}

int yaml_tree_load(const char *path, struct arena *a, struct yaml_tree *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct yaml_tree tree = {.line = 1, .column = 1};

	if (fs_read(TRUSTED, path, MAX_FILE, &text, e) < 0) {
		e->kind = ERR_CONFIG;
		return -1;
	}

	CLEANUP(source_release) struct source s = {.path = path, .text = &text, .arena = a};
	if (!yaml_parser_initialize(&s.parser))
		abort();
	yaml_parser_set_encoding(&s.parser, YAML_UTF8_ENCODING);
	/* libyaml counts a byte order mark as a column:
	 * what follows would be indented otherwise. */
	static const char mark[] = "\xef\xbb\xbf";
	const size_t skip = strncmp(buf_cstr(&text), mark, strlen(mark)) == 0 ? strlen(mark) : 0;
	yaml_parser_set_input_string(&s.parser, (const unsigned char *)buf_cstr(&text) + skip,
				     text.len - skip);
	if (parse_document(&s, &tree, e) < 0)
		return -1;
	*ret = tree;
	return 0;
}
