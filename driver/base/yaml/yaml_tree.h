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

/* yaml_tree_read: the bytes of a table file of at most 4 MiB. ERR_CONFIG. */
int yaml_tree_read(const char *path, struct buf *out, struct err *e) MUST_CHECK;
/* yaml_tree_parse: one document in UTF-8 with a mapping at the top. An alias shares the nodes of
 * its anchor (so their lines are the anchor's) and has its own line itself. Refused with the line:
 * tags, keys that are no plain text, a key or an anchor given twice, an alias without an anchor
 * before it, NUL in a text, more than 64 levels, more than 100,000 values once aliases are counted
 * in full. */
int yaml_tree_parse(const char *path, const struct buf *text, struct arena *a, struct yaml_tree *ret,
		    struct err *e) MUST_CHECK;
/* yaml_tree_find: the field of a mapping, NULL if it is not there or `t` is no mapping. */
const struct yaml_tree *yaml_tree_find(const struct yaml_tree *t, const char *key, size_t len);

struct cyaml_schema_value;

/* yaml_check: whether the tree is what the schema says. cyaml looks at this too, but names the line
 * before an unknown key and takes "12abc" for a number. */
int yaml_check(const char *path, const struct yaml_tree *t, const struct cyaml_schema_value *schema,
	       struct err *e) MUST_CHECK;
