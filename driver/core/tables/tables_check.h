/* What no schema can say about the tables: values that must fit each other. */
#pragma once
#include "core/tables/tables.h"

/* tables_check: ERR_CONFIG "file:line: ..." for the first row that does not hold together. Reads
 * nothing but whether a release's locked requirements are there. */
int tables_check(const struct tables *t, struct err *e) MUST_CHECK;
/* tables_check_release, _extension: the part of it for one release, for an extension's row. */
int tables_check_release(const struct tables *t, const struct release_row *r, struct err *e) MUST_CHECK;
struct row_place;
int tables_check_extension(const struct tables *t, const struct row_place *at, const void *row,
			   struct err *e) MUST_CHECK;
