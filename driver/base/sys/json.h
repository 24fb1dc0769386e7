/* JSON glue over jansson. */
#pragma once
#include <jansson.h>

#include "base/base.h"

static inline void json_cleanup(json_t **j)
{
	json_decref(*j);
}
#define AUTO_JSON CLEANUP(json_cleanup)

/* json_from_strlist: an array of strings. json_or_null: a string, or null for NULL; json_filled:
 * null for "" too. All are new references; bytes that are not UTF-8 become U+FFFD. */
json_t *json_from_strlist(const struct strlist *l);
json_t *json_from_strings(const char *const *items, size_t count);
json_t *json_or_null(const char *s);
json_t *json_filled(const char *s);
/* json_member: a member that is a string; NULL for none. json_text: "" for none. json_int: a whole
 * number; 0 for none. */
static inline const char *json_member(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}
static inline json_int_t json_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}
const char *json_text(const json_t *o, const char *key) __attribute__((returns_nonnull));
/* json_print: the document and a newline to standard output, keys in the order they were set. */
int json_print(const json_t *j, struct err *e) MUST_CHECK;
/* json_write: the same to a file, as fs_write. */
int json_write(const json_t *j, const char *top, const char *rel, struct err *e) MUST_CHECK;
/* json_read: a file of at most 64 MiB without duplicate keys, as fs_read; a new reference.
 * ERR_INTEGRITY names file, line and column. */
int json_read(const char *top, const char *rel, json_t **ret, struct err *e) MUST_CHECK;
