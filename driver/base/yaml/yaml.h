/* YAML tables through libcyaml: strict, with the line of every node. */
#pragma once
#include <cyaml/cyaml.h>

#include "base/arena.h"
#include "base/err.h"

/* yaml_load: reads `path` (at most 4 MiB) by the schema (top level: a mapping, pointer value) into
 * the arena (never freed through cyaml). ERR_CONFIG, the message "file:line: ..." naming the key:
 * unknown, missing and duplicate keys, wrong types, whole numbers not in plain decimals, truth
 * values other than true and false, values outside a strict enumeration; invalid YAML, text that is
 * not UTF-8, no or more than one document, tags, aliases that blow the file up beyond 100,000
 * values. An unknown key gets the nearest known as a hint. A file that cannot be read is ERR_CONFIG
 * too. Plain scalars keep their text (9.0 stays "9.0"). Optional strings that are absent are NULL,
 * optional lists have no entries. */
int yaml_load(const char *path, const cyaml_schema_value_t *schema, struct arena *a, void **ret,
	      struct err *e) MUST_CHECK;

struct yaml_lines;

/* yaml_lines_load: an index from node path to line number for a file ("gpus/3/cuda_min",
 * "settings/USE_CUDA", "" = 1). Same errors as yaml_load, but for those of the schema. What is
 * below an alias has the lines of its anchor. */
int yaml_lines_load(const char *path, struct arena *a, struct yaml_lines **ret, struct err *e) MUST_CHECK;
/* yaml_line: the line of a node (of the key, for a mapping's field); the nearest known parent's
 * when the node is not there. */
unsigned yaml_line(const struct yaml_lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
