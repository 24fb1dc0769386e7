/* The schemas of the tables: what keys a file may have and which struct they fill. */
#pragma once
#include "base/yaml/yaml.h"
#include "core/tables/tables.h"

/* Files that fill members of struct tables. */
extern const struct yaml_schema schema_isa, schema_gpu, schema_cuda, schema_blas, schema_toggles, schema_corrections;
extern const struct yaml_schema schema_needs, schema_taken, schema_torch_extensions;
/* Files with a struct of their own. */
extern const struct yaml_schema schema_release, schema_matrix, schema_extensions, schema_dispatch, schema_manylinux;
extern const struct yaml_schema schema_threads;

/* schema_digest: sha256 of the values in `data` (strings, truth values and lists of them), without
 * keys that are for people only: files that mean the same have the same digest. `keys`: those of
 * the top level that count, NULL-terminated; NULL: all. */
void schema_digest(const struct yaml_schema *schema, const void *data, const char *const *keys, char ret[65]);
