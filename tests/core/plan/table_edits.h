/* A table as the list of its scalars, and copies of it with some of them changed or gone. */
#pragma once
#include "support.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/yaml/yaml_tree.h"

#define SIBLINGS_MAX 24

/* A scalar of a table. */
struct leaf {
	/* row: the nearest entry of a list that is a mapping; NULL: none */
	const struct yaml_tree *node, *row;
	const char *path; /* "gpus[].cuda_min" */
	size_t way;       /* that had an effect */
};

struct file {
	const char *name; /* below profiles/ */
	struct yaml_tree tree;
	struct leaf *leaves;
	size_t count, cap;
};

/* Another text for a value, or NULL: it goes. */
struct edit {
	const struct yaml_tree *node;
	const char *text;
};

static inline void emit_text(const char *text, struct buf *out)
{
	buf_addc(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_addc(out, '\\');
		if (*text == '\n')
			buf_addstr(out, "\\n");
		else
			buf_addc(out, *text);
	}
	buf_addc(out, '"');
}

static inline const struct edit *edit_of(const struct yaml_tree *node, const struct edit *edits,
					 size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (edits[i].node == node)
			return &edits[i];
	return NULL;
}

/* JSON is YAML. */
static inline void emit(const struct yaml_tree *t, const struct edit *edits, size_t count,
			struct buf *out)
{
	const struct edit *edit = edit_of(t, edits, count);
	bool first = true;
	if (t->kind == YAML_TEXT) {
		emit_text(edit ? edit->text : t->text, out);
		return;
	}
	buf_addc(out, t->kind == YAML_LIST ? '[' : '{');
	for (size_t i = 0; i < t->count; i++) {
		const struct edit *below = edit_of(&t->items[i], edits, count);
		if (below && !below->text)
			continue;
		buf_addstr(out, first ? "" : ",\n");
		first = false;
		if (t->kind == YAML_MAPPING) {
			emit_text(t->items[i].key, out);
			buf_addstr(out, ": ");
		}
		emit(&t->items[i], edits, count, out);
	}
	buf_addc(out, t->kind == YAML_LIST ? ']' : '}');
}

static inline void write_table(const char *dir, const struct file *f, const struct edit *edits,
			       size_t count)
{
	AUTO_BUF struct buf text = {0};
	AUTO_ARENA struct arena a = {0};
	emit(&f->tree, edits, count, &text);
	test_write(path_join(&a, dir, f->name), buf_cstr(&text));
}

static inline void collect(struct arena *a, struct file *f, const struct yaml_tree *t,
			   const struct yaml_tree *row, const char *path)
{
	if (t->kind == YAML_TEXT) {
		if (f->count == f->cap)
			f->leaves = arena_grow(a, f->leaves, &f->cap, 64, sizeof(*f->leaves));
		f->leaves[f->count++] = (struct leaf){t, row, path, 0};
		return;
	}
	for (size_t i = 0; i < t->count; i++) {
		const struct yaml_tree *below = &t->items[i];
		const char *to = t->kind == YAML_LIST ? arena_printf(a, "%s[]", path)
						      : arena_printf(a, "%s%s%s", path,
								     *path ? "." : "", below->key);
		collect(a, f, below,
			t->kind == YAML_LIST && below->kind == YAML_MAPPING ? below : row, to);
	}
}

static inline struct file read_table(const char *name, struct arena *a)
{
	struct err e = {0};
	struct file f = {.name = name};
	assert_ok(yaml_tree_load(path_join(a, PROFILES_DIR, name), a, &f.tree, &e), &e);
	collect(a, &f, &f.tree, NULL, "");
	return f;
}

/* The last number of a text one higher or lower; without a number, another text. */
static inline const char *bumped(const char *text, int by, struct arena *a)
{
	size_t end = strlen(text);
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return text[0] == 't' ? "false" : "true";
	while (end && !isdigit((unsigned char)text[end - 1]))
		end--;
	size_t start = end;
	while (start && isdigit((unsigned char)text[start - 1]) && end - start < 9)
		start--;
	if (!end)
		return arena_printf(a, "%sx", text);
	long n = strtol(text + start, NULL, 10) + by;
	return arena_printf(a, "%.*s%0*ld%s", (int)start, text, (int)(end - start), n < 0 ? 9 : n,
			    text + end);
}

/* The ways in which a value is changed, each tried until one has an effect:
 * other values, those that stand at the same place of other rows, and none. */
static inline void ways_of(const struct file *f, const struct leaf *l, struct arena *a,
			   struct strlist *ret)
{
	strlist_ref(ret, a, bumped(l->node->text, 1, a));
	strlist_ref(ret, a, bumped(l->node->text, -1, a));
	size_t before = ret->count;
	for (size_t i = 0; i < f->count && ret->count < before + SIBLINGS_MAX; i++)
		if (strcmp(f->leaves[i].path, l->path) == 0 &&
		    strcmp(f->leaves[i].node->text, l->node->text) != 0 &&
		    !strlist_contains(ret, f->leaves[i].node->text))
			strlist_ref(ret, a, f->leaves[i].node->text);
	if (strcmp(l->node->text, "ON") == 0 || strcmp(l->node->text, "OFF") == 0)
		strlist_ref(ret, a, l->node->text[1] == 'N' ? "OFF" : "ON");
	if (strncmp(l->node->text, ">=", 2) == 0)
		strlist_ref(ret, a, ">=99");
	strlist_addf(ret, a, "%sx", l->node->text);
	strlist_ref(ret, a, "1.0"); /* a version before all */
}
