/* YAML tables through libcyaml: strict, with the line of every node. */
#pragma once
#include <cyaml/cyaml.h>

#include "base/arena.h"
#include "base/err.h"

/* yaml_load: reads `path` by the schema (top level: a mapping, pointer value) into the arena (never freed through cyaml).
 * Unknown keys, missing keys, wrong types and duplicate keys are ERR_CONFIG, the message "file:line: ..." naming the key. Plain scalars keep their text (9.0 stays "9.0"). */
int yaml_load(const char *path, const cyaml_schema_value_t *schema, struct arena *a, void **ret, struct err *e) MUST_CHECK;

struct yaml_lines;

/* yaml_lines_load: an index from node path to line number for a file ("gpus/3/cuda_min", "settings/USE_CUDA", "" = 1). Same errors as yaml_load. */
int yaml_lines_load(const char *path, struct arena *a, struct yaml_lines **ret, struct err *e) MUST_CHECK;
/* yaml_line: the line of a node (of the key, for a mapping's field); the nearest known parent's when the node is not there. */
unsigned yaml_line(const struct yaml_lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
