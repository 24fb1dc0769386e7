/* Checks of one row, for the tables and for files that a user writes: profiles and matrices. Each
 * gives 0, or ERR_CONFIG with "file:line: " in front. */
#pragma once
#include "base/yaml/yaml.h"
#include "core/tables/tables.h"

/* row_bad: sets that error; -1 always. */
int row_bad(const struct yaml_place *at, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* For schemas: a version; a range of versions as version_in reads it; a flag for a compiler; a
 * distribution's name and a range, "setuptools>=62.3,<80"; a file's name without a directory; a
 * path below the source tree; a URL or directory to fetch from; "3.13"; a size of memory, at least
 * 1M. */
int row_version(const struct yaml_place *at, const char *key, const char *text,
		struct err *e) MUST_CHECK;
int row_range(const struct yaml_place *at, const char *key, const char *text,
	      struct err *e) MUST_CHECK;
int row_flag(const struct yaml_place *at, const char *key, const char *text,
	     struct err *e) MUST_CHECK;
int row_requirement(const struct yaml_place *at, const char *key, const char *text,
		    struct err *e) MUST_CHECK;
int row_file_name(const struct yaml_place *at, const char *key, const char *text,
		  struct err *e) MUST_CHECK;
int row_inside(const struct yaml_place *at, const char *key, const char *text,
	       struct err *e) MUST_CHECK;
int row_url(const struct yaml_place *at, const char *key, const char *text,
	    struct err *e) MUST_CHECK;
int row_label(const struct yaml_place *at, const char *key, const char *text,
	      struct err *e) MUST_CHECK;
int row_python(const struct yaml_place *at, const char *key, const char *text,
	       struct err *e) MUST_CHECK;
int row_memory(const struct yaml_place *at, const char *key, const char *text,
	       struct err *e) MUST_CHECK;
/* row_first: no earlier row of the array has the same name. Rows are `size` bytes, begin with their
 * name, and have their line at offset `line`. */
int row_first(const struct yaml_place *at, const void *rows, size_t size, size_t line,
	      const void *row, struct err *e) MUST_CHECK;
/* row_settings: names, packages and versions, no name twice, and values that their toggles take. */
int row_settings(const struct tables *t, const char *file, const struct table_setting *s,
		 unsigned count, struct err *e) MUST_CHECK;
/* The schemas of the tables: what keys a file may have and which struct they fill. */

/* Files that fill members of struct tables. */
extern const struct yaml_schema schema_isa, schema_gpu, schema_cuda, schema_blas, schema_toggles,
	schema_corrections;
extern const struct yaml_schema schema_needs, schema_captured, schema_torch_extensions, schema_slim;
/* Files with a struct of their own. */
extern const struct yaml_schema schema_release, schema_matrix, schema_extensions, schema_dispatch,
	schema_manylinux;
extern const struct yaml_schema schema_threads;

/* schema_digest: sha256 of the values in `data` (strings, truth values and lists of them), without
 * keys that are for people only: files that mean the same have the same digest. `keys`: those of
 * the top level that count, NULL-terminated; NULL: all. */
void schema_digest(const struct yaml_schema *schema, const void *data, const char *const *keys,
		   char ret[65]);

/* What no schema can say about the tables: values that must fit each other. */
/* tables_check: ERR_CONFIG "file:line: ..." for the first row that does not hold together. Reads
 * nothing but whether a release's locked requirements are there. */
int tables_check(const struct tables *t, struct err *e) MUST_CHECK;
/* tables_check_release, _extension: the part of it for one release, for an extension's row. */
int tables_check_release(const struct tables *t, const struct release_row *r,
			 struct err *e) MUST_CHECK;
int tables_check_extension(const struct tables *t, const struct yaml_place *at, const void *row,
			   struct err *e) MUST_CHECK;
