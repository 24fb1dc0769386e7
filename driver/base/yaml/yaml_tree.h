/* A YAML file as a tree of nodes with their lines. */
#pragma once

#include "base/base.h"

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAPPING };

struct yaml_tree {
	enum yaml_kind kind;
	unsigned line, column;   /* of the key for a mapping's field, else of the node; from 1 */
	const char *key;         /* in a mapping */
	const char *text;        /* YAML_TEXT */
	struct yaml_tree *items; /* in the file's order; a mapping may have a key twice */
	size_t count;
};

/* yaml_tree_load: parses a file of at most 4 MiB: one document in UTF-8 with a mapping at the top.
 * An alias shares the nodes of its anchor, lines included. ERR_CONFIG, with the line where there is
 * one, also for tags, keys that are not plain text, an anchor given twice, an alias before its
 * anchor, NUL in a text, more than 64 levels, or 100,000 values with those behind aliases counted
 * each time. */
int yaml_tree_load(const char *path, struct arena *a, struct yaml_tree *ret,
		   struct err *e) MUST_CHECK;
