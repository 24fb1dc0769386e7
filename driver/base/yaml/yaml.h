/* YAML files as structs: a schema says which keys a file may have and which members they fill. */
#pragma once

#include "base/yaml/yaml_tree.h"

enum yaml_type {
	YAML_STRING, /* const char *: the text as it stands (9.0 stays "9.0"); absent: "" */
	YAML_TRUTH,  /* bool */
	YAML_NUMBER, /* an unsigned type of `size` bytes: 2, 4 or 8 */
	YAML_STRINGS,
	YAML_ROWS, /* an array of structs, its length in an unsigned member; absent: NULL and 0 */
	YAML_ROW,  /* a pointer to a struct; absent: NULL */
	YAML_NODE, /* const struct yaml_tree *: whatever stands there; absent: NULL */
};

struct yaml_key {
	const char *name;
	enum yaml_type type;
	size_t offset;
	size_t count; /* offset of a list's length */
	size_t size;
	bool need;                    /* it must be there */
	bool filled;                  /* and not be empty */
	const struct yaml_schema *of; /* of YAML_ROWS and YAML_ROW */
};

struct yaml_schema {
	const struct yaml_key *keys; /* ends with one without a name */
	size_t size;                 /* of the struct */
	size_t line;                 /* offset of an unsigned member for the line; 0: it has none */
};

/* Words for schemas: a key fills the member of its name in struct T. */
#define MAY(T, member)                                                                                                 \
	{                                                                                                              \
#member, YAML_STRING, .offset = offsetof(T, member)                                                    \
	}
#define NEED(T, member)                                                                                                \
	{                                                                                                              \
#member, YAML_STRING, .offset = offsetof(T, member), .need = true, .filled = true                      \
	}
#define FLAG(T, member)                                                                                                \
	{                                                                                                              \
#member, YAML_TRUTH, .offset = offsetof(T, member)                                                     \
	}
#define NUMBER(T, member)                                                                                              \
	{                                                                                                              \
#member, YAML_NUMBER, .offset = offsetof(T, member), .size = sizeof(((T *)0)->member)                  \
	}
#define NEED_NUMBER(T, member)                                                                                         \
	{                                                                                                              \
#member, YAML_NUMBER, .offset = offsetof(T, member), .size = sizeof(((T *)0)->member), .need = true    \
	}
#define NODE(T, member)                                                                                                \
	{                                                                                                              \
#member, YAML_NODE, .offset = offsetof(T, member)                                                      \
	}
#define LIST_AT(T, member) .offset = offsetof(T, member), .count = offsetof(T, member##_count)
#define LIST(T, member)                                                                                                \
	{                                                                                                              \
#member, YAML_STRINGS, LIST_AT(T, member)                                                              \
	}
#define NEED_LIST(T, member)                                                                                           \
	{                                                                                                              \
#member, YAML_STRINGS, LIST_AT(T, member), .need = true, .filled = true                                \
	}
#define ROWS(T, member, row)                                                                                           \
	{                                                                                                              \
#member, YAML_ROWS, LIST_AT(T, member), .of = &row##_schema                                            \
	}
#define NEED_ROWS(T, member, row)                                                                                      \
	{                                                                                                              \
#member, YAML_ROWS, LIST_AT(T, member), .need = true, .filled = true, .of = &row##_schema              \
	}
/* The schema ID_schema of a struct that has no line, or has it in a member `line`. */
#define PLAIN(id, T, ...)                                                                                              \
	static const struct yaml_key id##_keys[] = {__VA_ARGS__, {.name = NULL}};                                      \
	static const struct yaml_schema id##_schema = {id##_keys, sizeof(T), 0}
#define ROW(id, T, ...)                                                                                                \
	static const struct yaml_key id##_keys[] = {__VA_ARGS__, {.name = NULL}};                                      \
	static const struct yaml_schema id##_schema = {id##_keys, sizeof(T), offsetof(T, line)}

/* yaml_load: fills *data, which the schema describes, from a file as yaml_tree_load takes it; what
 * it points to is in the arena. `ret_tree` (may be NULL): its nodes. ERR_CONFIG "file:line: ..."
 * for unknown (with the nearest known as a hint), missing and duplicate keys, wrong types and
 * values. On failure *data is partly filled. */
int yaml_load(const char *path, const struct yaml_schema *schema, struct arena *a, void *data,
	      const struct yaml_tree **ret_tree, struct err *e) MUST_CHECK;
/* yaml_at: the node at a path of keys and indices ("gpus/3/cuda_min"; "" is `t`), the nearest
 * parent when it is not there. yaml_line: its line. */
const struct yaml_tree *yaml_at(const struct yaml_tree *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define yaml_line(...) (yaml_at(__VA_ARGS__)->line)
