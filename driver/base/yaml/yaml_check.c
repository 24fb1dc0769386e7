#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/strlist.h"
#include "base/suggest.h"
#include "base/yaml/yaml_tree.h"

/* What is being checked, for messages. */
struct place {
	const char *path;
	const char *name; /* the nearest key */
};

static const char *kind_name(enum yaml_kind k)
{
	static const char *const names[] = {[YAML_TEXT] = "text", [YAML_LIST] = "a list", [YAML_MAPPING] = "a mapping"};
	return names[k];
}

static int expect_kind(const struct place *p, const struct yaml_tree *t, enum yaml_kind want, struct err *e)
{
	if (t->kind == want)
		return 0;
	return err_set(e, ERR_CONFIG, "%s:%u: wrong type: %s'%s' must be %s, not %s", p->path, t->line,
		       t->key ? "" : "an entry of ", p->name, kind_name(want), kind_name(t->kind));
}

static int bad_value(const struct place *p, const struct yaml_tree *t, const char *want, struct err *e)
{
	return err_set(e, ERR_CONFIG, "%s:%u: wrong value of '%s': '%s' is not %s", p->path, t->line, p->name, t->text,
		       want);
}

static int check_value(const struct place *p, const struct yaml_tree *t, const cyaml_schema_value_t *schema,
		       struct err *e);

static int unknown_key(const struct place *p, const struct yaml_tree *t, const cyaml_schema_field_t *fields,
		       struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0};
	for (const cyaml_schema_field_t *f = fields; f->key; f++)
		strlist_ref(&known, &a, f->key);
	err_set(e, ERR_CONFIG, "%s:%u: unknown key '%s'", p->path, t->line, t->key);
	const char *near = suggest_nearest(t->key, strlist_argv(&known, &a), known.count);
	return near ? err_hint(e, "did you mean '%s'?", near)
		    : err_hint(e, "known keys: %s", strlist_join(&known, &a, ", "));
}

static const cyaml_schema_field_t *find_field(const cyaml_schema_field_t *fields, const char *key)
{
	for (const cyaml_schema_field_t *f = fields; f->key; f++)
		if (strcmp(f->key, key) == 0)
			return f;
	return NULL;
}

/* The unknown key that comes first in the file: the fields are sorted by name. */
static const struct yaml_tree *first_unknown(const struct yaml_tree *t, const cyaml_schema_field_t *fields)
{
	const struct yaml_tree *first = NULL;
	for (size_t i = 0; i < t->count; i++)
		if (!find_field(fields, t->items[i].key) && (!first || t->items[i].line < first->line))
			first = &t->items[i];
	return first;
}

static int check_mapping(const struct place *p, const struct yaml_tree *t, const cyaml_schema_value_t *schema,
			 struct err *e)
{
	const cyaml_schema_field_t *fields = schema->mapping.fields;
	const struct yaml_tree *unknown = first_unknown(t, fields);
	if (unknown)
		return unknown_key(p, unknown, fields, e);
	for (const cyaml_schema_field_t *f = fields; f->key; f++) {
		const struct yaml_tree *item = yaml_tree_find(t, f->key, strlen(f->key));
		if (!item && !(f->value.flags & CYAML_FLAG_OPTIONAL))
			return err_set(e, ERR_CONFIG, "%s:%u: missing key '%s'", p->path, t->line, f->key);
		const struct place below = {.path = p->path, .name = f->key};
		if (item && check_value(&below, item, &f->value, e) < 0)
			return -1;
	}
	return 0;
}

static int check_list(const struct place *p, const struct yaml_tree *t, const cyaml_schema_value_t *schema,
		      struct err *e)
{
	if (t->count < schema->sequence.min)
		return err_set(e, ERR_CONFIG, "%s:%u: '%s' needs at least %u entries", p->path, t->line, p->name,
			       schema->sequence.min);
	if (t->count > schema->sequence.max)
		return err_set(e, ERR_CONFIG, "%s:%u: '%s' takes at most %u entries", p->path, t->line, p->name,
			       schema->sequence.max);
	for (size_t i = 0; i < t->count; i++)
		if (check_value(p, &t->items[i], schema->sequence.entry, e) < 0)
			return -1;
	return 0;
}

/* A whole number that the schema's field can hold. */
static bool is_number(const char *s, const cyaml_schema_value_t *schema)
{
	bool is_signed = schema->type == CYAML_INT;
	const char *digits = s + (is_signed && *s == '-');
	/* A leading zero would mean octal to libcyaml and decimal to the reader. */
	if (!*digits || strspn(digits, "0123456789") != strlen(digits) || (digits[0] == '0' && digits[1]))
		return false;
	uint64_t max = UINT64_MAX >> (64 - 8 * schema->data_size + is_signed);
	errno = 0;
	uint64_t n = strtoull(digits, NULL, 10);
	return errno == 0 && n <= max + (digits != s);
}

static int check_enum(const struct place *p, const struct yaml_tree *t, const cyaml_schema_value_t *schema,
		      struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist known = {0};
	for (uint32_t i = 0; i < schema->enumeration.count; i++) {
		if (strcmp(schema->enumeration.strings[i].str, t->text) == 0)
			return 0;
		strlist_ref(&known, &a, schema->enumeration.strings[i].str);
	}
	return bad_value(p, t, arena_printf(&a, "one of: %s", strlist_join(&known, &a, ", ")), e);
}

static int check_text(const struct place *p, const struct yaml_tree *t, const cyaml_schema_value_t *schema,
		      struct err *e)
{
	size_t len = strlen(t->text);
	switch (schema->type) {
	case CYAML_STRING:
		if (len < schema->string.min)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is %s", p->path, t->line, p->name,
				       len ? "too short" : "empty");
		if (len > schema->string.max)
			return err_set(e, ERR_CONFIG, "%s:%u: '%s' is longer than %u bytes", p->path, t->line, p->name,
				       schema->string.max);
		return 0;
	case CYAML_INT:
	case CYAML_UINT:
		return is_number(t->text, schema) ? 0 : bad_value(p, t, "a whole number in range", e);
	case CYAML_BOOL:
		if (strcmp(t->text, "true") == 0 || strcmp(t->text, "false") == 0)
			return 0;
		return bad_value(p, t, "one of: true, false", e);
	case CYAML_ENUM:
		return schema->flags & CYAML_FLAG_STRICT ? check_enum(p, t, schema, e) : 0;
	default:
		return 0; /* no schema has floats, flags or bit fields */
	}
}

/* "key:" with nothing behind, where the schema lets that mean absent. */
static bool is_absent(const struct yaml_tree *t, const cyaml_schema_value_t *schema)
{
	return t->kind == YAML_TEXT && !*t->text &&
	       (schema->flags & CYAML_FLAG_POINTER_NULL) == CYAML_FLAG_POINTER_NULL;
}

static int check_value(const struct place *p, const struct yaml_tree *t, const cyaml_schema_value_t *schema,
		       struct err *e)
{
	if (schema->type == CYAML_IGNORE || is_absent(t, schema))
		return 0;
	enum yaml_kind want = YAML_TEXT;
	if (schema->type == CYAML_MAPPING || schema->type == CYAML_BITFIELD)
		want = YAML_MAPPING;
	else if (schema->type == CYAML_SEQUENCE || schema->type == CYAML_SEQUENCE_FIXED || schema->type == CYAML_FLAGS)
		want = YAML_LIST;
	if (expect_kind(p, t, want, e) < 0)
		return -1;
	if (schema->type == CYAML_MAPPING)
		return check_mapping(p, t, schema, e);
	if (schema->type == CYAML_SEQUENCE || schema->type == CYAML_SEQUENCE_FIXED)
		return check_list(p, t, schema, e);
	return want == YAML_TEXT ? check_text(p, t, schema, e) : 0;
}

int yaml_check(const char *path, const struct yaml_tree *t, const struct cyaml_schema_value *schema, struct err *e)
{
	const struct place top = {.path = path, .name = "file"};
	return check_value(&top, t, schema, e);
}
