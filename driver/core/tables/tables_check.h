/* What no schema can say about the tables: values that must fit each other. */
#pragma once
#include "core/tables/tables.h"

/* tables_check: ERR_CONFIG "file:line: ..." for the first row that does not hold together. Reads
 * nothing but whether a release's locked requirements are there. */
int tables_check(const struct tables *t, struct err *e) MUST_CHECK;
/* tables_check_release: the part of it for one release. */
int tables_check_release(const struct tables *t, const struct release_row *r, struct err *e) MUST_CHECK;

/* For the checks themselves, and for files that a user writes: where a row is. */
struct row_place {
	const char *file;
	unsigned line;
};

/* row_bad: ERR_CONFIG with "file:line: " in front. */
int row_bad(const struct row_place *at, struct err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* row_version: one version; "" too when it is optional. row_range: a range of versions, "" takes
 * all. */
int row_version(const struct row_place *at, const char *key, const char *value, bool optional,
		struct err *e) MUST_CHECK;
int row_range(const struct row_place *at, const char *key, const char *value, struct err *e) MUST_CHECK;
/* row_one_of: the value is one of the words. row_all_of: each of a list is. */
int row_one_of(const struct row_place *at, const char *key, const char *value, const char *const *words, size_t count,
	       struct err *e) MUST_CHECK;
int row_all_of(const struct row_place *at, const char *key, const char *const *list, unsigned list_count,
	       const char *const *words, size_t count, struct err *e) MUST_CHECK;
/* row_first: no row before `row` has its name, with which rows of every kind begin; `line`: where
 * a row of `size` bytes has its line. */
int row_first(const struct row_place *at, const void *rows, size_t size, size_t line, const void *row,
	      struct err *e) MUST_CHECK;
/* row_settings: names, packages, versions, and values against the toggles' rows. */
int row_settings(const struct tables *t, const char *file, const struct table_setting *s, unsigned count,
		 struct err *e) MUST_CHECK;
/* row_flags: each begins with '-' and holds no white space. */
int row_flags(const struct row_place *at, const char *key, const char *const *flags, unsigned count,
	      struct err *e) MUST_CHECK;
