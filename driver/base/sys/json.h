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
/* A struct member written as a member of an object, in a form by its type. AS_TEXT writes NULL as
 * null, AS_FILLED "" too; `make` gets a pointer to the member. */
enum json_form {
	AS_MADE,
	AS_TEXT,
	AS_FILLED,
	AS_CHARS,
	AS_FLAG,
	AS_DOUBLE,
	AS_INT,
	AS_UNSIGNED,
	AS_LONG,
	AS_LIST
};
struct json_field {
	const char *key;
	enum json_form form;
	size_t at, count; /* count: of AS_LIST, where the number of an array is, an unsigned */
	json_t *(*make)(const void *member);
};

/* clang-format off */
#define JSON_FORM(x)                                                                                                   \
	_Generic((x), const char *: AS_TEXT, char *: AS_CHARS, bool: AS_FLAG, double: AS_DOUBLE, int: AS_INT,          \
		 unsigned: AS_UNSIGNED, struct strlist: AS_LIST, long: AS_LONG, unsigned long: AS_LONG,                \
		 long long: AS_LONG, unsigned long long: AS_LONG)
/* JSON_AS: under another key than its name. JSON_STRINGS: `member` and `member`_count. */
#define JSON_AS(T, member, its_key) {its_key, JSON_FORM(((T *)0)->member), .at = offsetof(T, member)}
#define JSON_FIELD(T, member) JSON_AS(T, member, #member)
#define JSON_IF_FILLED(T, member, its_key) {its_key, AS_FILLED, .at = offsetof(T, member)}
#define JSON_STRINGS(T, member) {#member, AS_LIST, .at = offsetof(T, member), .count = offsetof(T, member##_count)}
#define JSON_BY(T, member, its_key, fn) {its_key, AS_MADE, .at = offsetof(T, member), .make = (fn)}
#define JSON_FIELDS(id, ...) static const struct json_field id[] = {__VA_ARGS__, {.key = NULL}}
/* clang-format on */
/* json_add: adds them to an object. json_rows: an array of objects (new reference), one for each of
 * `count` structs of `size` bytes. */
void json_add(json_t *o, const void *from, const struct json_field *fields);
json_t *json_rows(const void *items, size_t count, size_t size, const struct json_field *fields);
/* json_print: the document and a newline to standard output, keys in the order they were set. What
 * utf8_printable replaces is escaped ("\u202e"). */
int json_print(const json_t *j, struct err *e) MUST_CHECK;
/* json_write: like json_print, to a file by fs_write. */
int json_write(const json_t *j, const char *top, const char *rel, struct err *e) MUST_CHECK;
/* json_read: a file of at most 64 MiB without duplicate keys, as fs_read; a new reference.
 * ERR_INTEGRITY names file, line and column. */
int json_read(const char *top, const char *rel, json_t **ret, struct err *e) MUST_CHECK;
