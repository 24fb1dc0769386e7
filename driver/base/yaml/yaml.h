/* YAML files as structs: a schema says which keys a file may have and which members they fill. */
#pragma once

#include "base/yaml/yaml_tree.h"

enum yaml_type {
	YAML_STRING, /* const char *: the text as written (9.0 stays "9.0"); absent: "" */
	YAML_TRUTH,  /* bool */
	YAML_NUMBER, /* an unsigned type of `size` bytes: 2, 4 or 8 */
	YAML_STRINGS,
	YAML_ROWS, /* an array of structs, its length in an unsigned member; absent: NULL and 0 */
	YAML_ROW,  /* a pointer to a struct; absent: NULL */
	YAML_NODE, /* const struct yaml_tree *: any node; absent: NULL */
};

struct yaml_place {
	const char *file;
	unsigned line;
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
	/* of texts and each text of a list, unless it is empty: what it may be, with blanks
	 * between, or what says so, and what a wrong one then is not, "a commit"; `check` has an
	 * error of its own, which begins with the place */
	const char *words;
	bool (*good)(const char *text);
	const char *is;
	int (*check)(const struct yaml_place *at, const char *key, const char *text, struct err *e);
};

struct yaml_schema {
	const struct yaml_key *keys; /* ends with one without a name */
	size_t size;                 /* of the struct */
	size_t line;                 /* offset of an unsigned member for the line; 0: it has none */
};

/* yaml_size: for `check`: a size as size_parse reads it. */
int yaml_size(const struct yaml_place *at, const char *key, const char *text,
	      struct err *e) MUST_CHECK;

/* Words for schemas: a key fills the member of its name in struct T; more of its fields follow. */
/* clang-format off */
#define KEY(T, member, type, ...) {#member, type, .offset = offsetof(T, member), ##__VA_ARGS__}
#define LIST_AT(T, member) .offset = offsetof(T, member), .count = offsetof(T, member##_count)
#define KEYS(T, member, type, ...) {#member, type, LIST_AT(T, member), ##__VA_ARGS__}
#define NEEDED .need = true, .filled = true
/* clang-format on */
#define MAY(T, member, ...) KEY(T, member, YAML_STRING, ##__VA_ARGS__)
#define NEED(T, member, ...) KEY(T, member, YAML_STRING, NEEDED, ##__VA_ARGS__)
#define FLAG(T, member) KEY(T, member, YAML_TRUTH)
#define NUMBER(T, member, ...)                                                                     \
	KEY(T, member, YAML_NUMBER, .size = sizeof(((T *)0)->member), ##__VA_ARGS__)
#define NEED_NUMBER(T, member) NUMBER(T, member, .need = true)
#define NODE(T, member) KEY(T, member, YAML_NODE)
#define LIST(T, member, ...) KEYS(T, member, YAML_STRINGS, ##__VA_ARGS__)
#define NEED_LIST(T, member, ...) KEYS(T, member, YAML_STRINGS, NEEDED, ##__VA_ARGS__)
#define ROWS(T, member, row, ...) KEYS(T, member, YAML_ROWS, .of = &row##_schema, ##__VA_ARGS__)
#define NEED_ROWS(T, member, row) ROWS(T, member, row, NEEDED)
/* The schema ID_schema of a struct that has no line, or has it in a member `line`. */
#define PLAIN(id, T, ...)                                                                          \
	static const struct yaml_key id##_keys[] = {__VA_ARGS__, {.name = NULL}};                  \
	static const struct yaml_schema id##_schema = {id##_keys, sizeof(T), 0}
#define ROW(id, T, ...)                                                                            \
	static const struct yaml_key id##_keys[] = {__VA_ARGS__, {.name = NULL}};                  \
	static const struct yaml_schema id##_schema = {id##_keys, sizeof(T), offsetof(T, line)}

/* yaml_load: fills *data, which the schema describes, from a file that yaml_tree_load reads; its
 * pointers are into the arena. `ret_tree` (may be NULL): its nodes. ERR_CONFIG "file:line: ..." for
 * unknown (with the nearest known as a hint), missing and duplicate keys, wrong types and values.
 * On failure *data is partly filled. */
int yaml_load(const char *path, const struct yaml_schema *schema, struct arena *a, void *data,
	      const struct yaml_tree **ret_tree, struct err *e) MUST_CHECK;
/* yaml_at: the node at a path of keys and indices ("gpus/3/cuda_min"; "" is `t`), the nearest
 * parent when it is not there. yaml_line: its line. */
const struct yaml_tree *yaml_at(const struct yaml_tree *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define yaml_line(...) (yaml_at(__VA_ARGS__)->line)
