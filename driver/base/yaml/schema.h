/* Words for schemas, so that a long one reads as a table: a key and the member it fills, which has
 * the same name. For files that define schemas; yaml_load takes them. */
#pragma once
#include "base/yaml/yaml.h"

static const cyaml_schema_value_t string_entry = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, CYAML_UNLIMITED)};

#define OPTIONAL_LIST (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
/* A string; one that may be absent. */
#define NEED(type, member) CYAML_FIELD_STRING_PTR(#member, CYAML_FLAG_POINTER, type, member, 1, CYAML_UNLIMITED)
#define MAY(type, member)                                                                                              \
	CYAML_FIELD_STRING_PTR(#member, CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL, type, member, 0, CYAML_UNLIMITED)
/* Strings. */
#define NEED_LIST(type, member)                                                                                        \
	CYAML_FIELD_SEQUENCE(#member, CYAML_FLAG_POINTER, type, member, &string_entry, 1, CYAML_UNLIMITED)
#define LIST(type, member) CYAML_FIELD_SEQUENCE(#member, OPTIONAL_LIST, type, member, &string_entry, 0, CYAML_UNLIMITED)
/* Mappings, each an ENTRY. */
#define NEED_ROWS(type, member, entry)                                                                                 \
	CYAML_FIELD_SEQUENCE(#member, CYAML_FLAG_POINTER, type, member, entry, 1, CYAML_UNLIMITED)
#define ROWS(type, member, entry) CYAML_FIELD_SEQUENCE(#member, OPTIONAL_LIST, type, member, entry, 0, CYAML_UNLIMITED)
#define FLAG(type, member) CYAML_FIELD_BOOL(#member, CYAML_FLAG_OPTIONAL, type, member)
#define NUMBER(type, member, flags) CYAML_FIELD_UINT(#member, flags, type, member)
#define ENTRY(type, fields)                                                                                            \
	{                                                                                                              \
		CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, type, fields)                                                  \
	}
#define TOP(type, fields)                                                                                              \
	{                                                                                                              \
		CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, type, fields)                                                  \
	}
/* The keys of a mapping, as NAME_fields; with ROW also NAME_entry, for lists of such mappings. */
#define FIELDS(name, ...) static const cyaml_schema_field_t name##_fields[] = {__VA_ARGS__, CYAML_FIELD_END}
#define ROW(name, type, ...)                                                                                           \
	FIELDS(name, __VA_ARGS__);                                                                                     \
	static const cyaml_schema_value_t name##_entry = ENTRY(type, name##_fields)
