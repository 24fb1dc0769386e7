/* A YAML file as a tree of nodes with their lines: what yaml*.c share. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAPPING };

struct yaml_tree {
	enum yaml_kind kind;
	unsigned line;           /* of the key for a mapping's field, else of the node */
	const char *key;         /* in a mapping */
	const char *text;        /* YAML_TEXT */
	struct yaml_tree *items; /* a list in order, a mapping sorted by key */
	size_t count;
};

/* yaml_tree_load: the file's bytes (at most 4 MiB) appended to `text`, and parsed: one document in
 * UTF-8 with a mapping at the top. An alias shares the nodes of its anchor, lines included.
 * ERR_CONFIG for what libcyaml would let pass: tags, keys that are not plain text, a key or anchor
 * given twice, an alias before its anchor, NUL in a text, more than 64 levels, or 100,000 values
 * with those behind aliases counted each time. */
int yaml_tree_load(const char *path, struct arena *a, struct buf *text, struct yaml_tree *ret,
		   struct err *e) MUST_CHECK;
/* yaml_tree_find: the field of a mapping; NULL if it is not there or `t` is not a mapping. */
const struct yaml_tree *yaml_tree_find(const struct yaml_tree *t, const char *key, size_t len);

struct cyaml_schema_value;

/* yaml_check: whether the tree is what the schema says. libcyaml checks too, but names the line
 * before an unknown key, takes "12abc" for a number and gives no hints. */
int yaml_check(const char *path, const struct yaml_tree *t, const struct cyaml_schema_value *schema,
	       struct err *e) MUST_CHECK;
