/* Short forms of the files, made into the rows that everything else sees. */
#pragma once
#include "core/tables/tables_schema.h"

/* tables_expand_toggles: one row per name; `value` stands for cpu, cuda and mps; package and values
 * get their defaults. ERR_CONFIG "file:line: ..." for a row that says something twice or not at
 * all. */
int tables_expand_toggles(const char *file, struct arena *a, struct tables *t, struct err *e) MUST_CHECK;
/* tables_expand_settings: one row per name; rows without a package get `package`. */
int tables_expand_settings(const char *file, const char *package, struct arena *a, struct table_setting **settings,
			   unsigned *count, struct err *e) MUST_CHECK;
