/* Checks of one row, for the tables and for files that a user writes: profiles and matrices. Each
 * gives 0, or ERR_CONFIG with "file:line: " in front. */
#pragma once
#include "core/tables/tables.h"

struct row_place {
	const char *file;
	unsigned line;
};

/* row_bad: sets that error; -1 always. */
int row_bad(const struct row_place *at, struct err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* row_version: a single version; "" is allowed when `optional`. row_range: a range of versions as
 * version_in takes it; "" allows all. */
int row_version(const struct row_place *at, const char *key, const char *value, bool optional,
		struct err *e) MUST_CHECK;
int row_range(const struct row_place *at, const char *key, const char *value, struct err *e) MUST_CHECK;
/* row_one_of: the value is one of the words. row_all_of: so is each item of the list. */
int row_one_of(const struct row_place *at, const char *key, const char *value, const char *const *words, size_t count,
	       struct err *e) MUST_CHECK;
int row_all_of(const struct row_place *at, const char *key, const char *const *list, unsigned list_count,
	       const char *const *words, size_t count, struct err *e) MUST_CHECK;
/* row_first: no earlier row of the array has the same name. Rows are `size` bytes, begin with their
 * name, and have their line at offset `line`. */
int row_first(const struct row_place *at, const void *rows, size_t size, size_t line, const void *row,
	      struct err *e) MUST_CHECK;
/* row_identifier: whether a name is a C identifier, as options and variables have to be. */
bool row_identifier(const char *name);
/* row_settings: names, packages and versions, no name twice, and values that their toggles take. */
int row_settings(const struct tables *t, const char *file, const struct table_setting *s, unsigned count,
		 struct err *e) MUST_CHECK;
/* row_flags: each flag begins with '-' and has no white space or shell characters. */
int row_flags(const struct row_place *at, const char *key, const char *const *flags, unsigned count,
	      struct err *e) MUST_CHECK;
