/* YAML tables through libcyaml: strict, with the line of every node. */
#pragma once
#include <cyaml/cyaml.h>

#include "base/arena.h"
#include "base/err.h"

struct yaml_lines; /* of every node of a file */

/* yaml_load: the file (at most 4 MiB) as the schema's structs, and its lines, in the arena. The top
 * is a mapping by pointer. Scalars keep their text (9.0 stays "9.0"); an absent optional string is
 * NULL, an absent list empty. ERR_CONFIG "file:line: ..." for whatever is not plain YAML of that
 * schema: unknown (with the nearest known as a hint), missing and duplicate keys, wrong types and
 * values, tags, a second document, more than 100,000 values behind aliases; also for a file that
 * cannot be read. */
int yaml_load(const char *path, const cyaml_schema_value_t *schema, struct arena *a, void **ret,
	      struct yaml_lines **ret_lines, struct err *e) MUST_CHECK;
/* yaml_line: the line of the node at a path of keys and indices ("gpus/3/cuda_min"; "" is line 1),
 * of the key for a mapping's field; the nearest parent's when the node is not there. What is below
 * an alias has the lines of its anchor. */
unsigned yaml_line(const struct yaml_lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
