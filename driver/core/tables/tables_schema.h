/* The YAML schemas of the tables: what keys a file may have and which struct they fill. */
#pragma once
#include "base/yaml/yaml.h"
#include "core/tables/tables.h"

/* Top level of each file. The first six fill the members of struct tables. */
extern const cyaml_schema_value_t schema_isa, schema_gpu, schema_cuda, schema_blas, schema_toggles, schema_corrections;
extern const cyaml_schema_value_t schema_release, schema_extensions, schema_dispatch, schema_manylinux;
extern const cyaml_schema_value_t schema_taken, schema_threads;
extern const cyaml_schema_value_t schema_needs; /* fills a member of struct tables too */

/* schema_settle: makes what cyaml loaded whole: absent strings become "", and every row with a
 * `line` gets the line it stands on. */
void schema_settle(const cyaml_schema_value_t *schema, void *data, const struct yaml_lines *lines);
/* schema_digest: sha256 of the values in `data` (strings, truth values and lists of them), without
 * keys that are for people only: files that mean the same have the same digest. `keys`: those of
 * the top level that count, NULL-terminated; NULL: all. */
void schema_digest(const cyaml_schema_value_t *schema, const void *data, const char *const *keys, char ret[65]);
