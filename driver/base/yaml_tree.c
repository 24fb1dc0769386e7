#include "base/yaml_tree.h"

#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/fs.h"

#define MAX_FILE ((uint64_t)4 << 20)
#define MAX_DEPTH 64

struct source {
	yaml_parser_t parser;
	const char *path;
	const struct buf *text;
	struct arena *arena;
	yaml_event_t event; /* the current one; has_event tells whether it holds memory */
	bool has_event;
};

static void source_release(struct source *s)
{
	if (s->has_event)
		yaml_event_delete(&s->event);
	yaml_parser_delete(&s->parser);
}

/* libyaml knows no line for bytes that are not UTF-8, only where they are. */
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
	unsigned line = p->error == YAML_READER_ERROR ? line_of_offset(s->text, p->problem_offset) : (unsigned)p->problem_mark.line + 1;
	return err_set(e, ERR_CONFIG, "%s:%u: invalid YAML: %s%s%s", s->path, line, p->context ? p->context : "", p->context ? ", " : "",
		       p->problem ? p->problem : "no reason given");
}

static int next_event(struct source *s, struct err *e)
{
	if (s->has_event)
		yaml_event_delete(&s->event);
	s->has_event = yaml_parser_parse(&s->parser, &s->event);
	return s->has_event ? 0 : parser_error(s, e);
}

static int skip_event(struct source *s, struct err *e)
{
	return next_event(s, e);
}

static unsigned event_line(const struct source *s)
{
	return (unsigned)s->event.start_mark.line + 1;
}

static int refuse(const struct source *s, const char *what, struct err *e)
{
	return err_set(e, ERR_CONFIG, "%s:%u: %s", s->path, event_line(s), what);
}

/* What tables have no use for would only be a way to write one thing and mean another, or to blow a small file up. */
static int refuse_extras(const struct source *s, struct err *e)
{
	const yaml_event_t *v = &s->event;
	const void *anchor = NULL, *tag = NULL;
	if (v->type == YAML_ALIAS_EVENT)
		return refuse(s, "aliases are not supported", e);
	if (v->type == YAML_SCALAR_EVENT) {
		anchor = v->data.scalar.anchor;
		tag = v->data.scalar.tag;
		if (memchr(v->data.scalar.value, 0, v->data.scalar.length))
			return refuse(s, "a text with a NUL byte", e);
	} else if (v->type == YAML_SEQUENCE_START_EVENT) {
		anchor = v->data.sequence_start.anchor;
		tag = v->data.sequence_start.tag;
	} else if (v->type == YAML_MAPPING_START_EVENT) {
		anchor = v->data.mapping_start.anchor;
		tag = v->data.mapping_start.tag;
	}
	if (anchor)
		return refuse(s, "anchors are not supported", e);
	return tag ? refuse(s, "tags are not supported", e) : 0;
}

static const char *event_text(const struct source *s)
{
	return arena_strndup(s->arena, (const char *)s->event.data.scalar.value, s->event.data.scalar.length);
}

static struct yaml_tree *add_item(struct source *s, struct yaml_tree *t, size_t *cap)
{
	if (t->count == *cap) {
		*cap = *cap ? *cap * 2 : 4;
		struct yaml_tree *items = arena_array(s->arena, *cap, sizeof(*items));
		if (t->count)
			memcpy(items, t->items, t->count * sizeof(*items));
		t->items = items;
	}
	return &t->items[t->count++];
}

static int parse_node(struct source *s, struct yaml_tree *t, int depth, struct err *e);

static int parse_list(struct source *s, struct yaml_tree *t, int depth, struct err *e)
{
	size_t cap = 0;
	for (;;) {
		if (next_event(s, e) != 0)
			return -1;
		if (s->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		struct yaml_tree *item = add_item(s, t, &cap);
		item->line = event_line(s);
		if (parse_node(s, item, depth + 1, e) != 0)
			return -1;
	}
}

static int cmp_keys(const void *va, const void *vb)
{
	const struct yaml_tree *a = va, *b = vb;
	int c = strcmp(a->key, b->key);
	return c ? c : (a->line > b->line) - (a->line < b->line);
}

static int refuse_duplicates(const struct source *s, const struct yaml_tree *t, struct err *e)
{
	for (size_t i = 1; i < t->count; i++)
		if (strcmp(t->items[i - 1].key, t->items[i].key) == 0)
			return err_set(e, ERR_CONFIG, "%s:%u: duplicate key '%s' (first on line %u)", s->path, t->items[i].line,
				       t->items[i].key, t->items[i - 1].line);
	return 0;
}

static int parse_mapping(struct source *s, struct yaml_tree *t, int depth, struct err *e)
{
	size_t cap = 0;
	for (;;) {
		if (next_event(s, e) != 0)
			return -1;
		if (s->event.type == YAML_MAPPING_END_EVENT)
			break;
		if (refuse_extras(s, e) != 0)
			return -1;
		if (s->event.type != YAML_SCALAR_EVENT)
			return refuse(s, "a key must be plain text", e);
		struct yaml_tree *item = add_item(s, t, &cap);
		item->line = event_line(s);
		item->key = event_text(s);
		if (next_event(s, e) != 0 || parse_node(s, item, depth + 1, e) != 0)
			return -1;
	}
	if (t->count)
		qsort(t->items, t->count, sizeof(*t->items), cmp_keys);
	return refuse_duplicates(s, t, e);
}

/* The node whose first event is the current one; its key and line are the caller's. */
static int parse_node(struct source *s, struct yaml_tree *t, int depth, struct err *e)
{
	if (refuse_extras(s, e) != 0)
		return -1;
	if (depth > MAX_DEPTH)
		return refuse(s, "nested too deep", e);
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

static int parse_document(struct source *s, struct yaml_tree *t, struct err *e)
{
	/* The stream's start, then the document's. */
	if (skip_event(s, e) != 0 || next_event(s, e) != 0)
		return -1;
	if (s->event.type == YAML_STREAM_END_EVENT)
		return refuse(s, "the file is empty", e);
	if (next_event(s, e) != 0)
		return -1;
	if (s->event.type != YAML_MAPPING_START_EVENT)
		return refuse(s, "'key: value' lines are expected at the top", e);
	t->line = 1;
	if (parse_node(s, t, 0, e) != 0)
		return -1;
	/* The document's end, then nothing more. */
	if (skip_event(s, e) != 0 || next_event(s, e) != 0)
		return -1;
	return s->event.type == YAML_STREAM_END_EVENT ? 0 : refuse(s, "more than one document in the file", e);
}

int yaml_tree_read(const char *path, struct buf *out, struct err *e)
{
	if (fs_read(path, MAX_FILE, out, e) == 0)
		return 0;
	e->kind = ERR_CONFIG;
	return -1;
}

int yaml_tree_parse(const char *path, const struct buf *text, struct arena *a, struct yaml_tree *ret, struct err *e)
{
	CLEANUP(source_release) struct source s = {.path = path, .text = text, .arena = a};
	if (!yaml_parser_initialize(&s.parser))
		abort();
	yaml_parser_set_encoding(&s.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&s.parser, (const unsigned char *)buf_cstr(text), text->len);
	struct yaml_tree tree = {0};
	if (parse_document(&s, &tree, e) != 0)
		return -1;
	*ret = tree;
	return 0;
}

const struct yaml_tree *yaml_tree_find(const struct yaml_tree *t, const char *key, size_t len)
{
	if (t->kind != YAML_MAPPING)
		return NULL;
	size_t low = 0, high = t->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct yaml_tree *item = &t->items[mid];
		int c = strncmp(item->key, key, len);
		if (c == 0 && item->key[len])
			c = 1;
		if (c == 0)
			return item;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}
