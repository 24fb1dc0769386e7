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

/* Short forms of the files, made into the rows that everything else sees. */
/* tables_expand_toggles: one row per name; `value` stands for cpu, cuda and mps; package and values
 * get their defaults. ERR_CONFIG "file:line: ..." for a row that says something twice or not at
 * all. */
int tables_expand_toggles(const char *file, struct arena *a, struct tables *t, struct err *e) MUST_CHECK;
/* tables_expand_settings: one row per name; rows without a package get `package`. */
int tables_expand_settings(const char *file, const char *package, struct arena *a, struct table_setting **settings,
			   unsigned *count, struct err *e) MUST_CHECK;

/* What no schema can say about the tables: values that must fit each other. */
/* tables_check: ERR_CONFIG "file:line: ..." for the first row that does not hold together. Reads
 * nothing but whether a release's locked requirements are there. */
int tables_check(const struct tables *t, struct err *e) MUST_CHECK;
/* tables_check_release, _extension: the part of it for one release, for an extension's row. */
int tables_check_release(const struct tables *t, const struct release_row *r, struct err *e) MUST_CHECK;
struct row_place;
int tables_check_extension(const struct tables *t, const struct row_place *at, const void *row,
			   struct err *e) MUST_CHECK;
