#include "base/sys/json.h"

#include "base/sys/fs.h"

#define MAX_FILE ((uint64_t)64 << 20)
#define FORMAT (JSON_INDENT(1) | JSON_ENCODE_ANY)

/* jansson accepts only UTF-8, but a file name may be any bytes: others show as U+FFFD. */
static json_t *any_string(const char *s)
{
	json_t *j = json_string(s);

	if (j)
		return j;
	AUTO_BUF struct buf b = {0};
	for (; *s; s++) {
		if ((unsigned char)*s < 0x80)
			buf_addc(&b, *s);
		else
			buf_addstr(&b, "\xef\xbf\xbd");
	}

	return json_string(buf_cstr(&b));
}

const char *json_text(const json_t *o, const char *key)
{
	const char *s = json_member(o, key);
	return s ? s : "";
}

json_t *json_or_null(const char *s)
{
	return s ? any_string(s) : json_null();
}

json_t *json_filled(const char *s)
{
	return json_or_null(s && *s ? s : NULL);
}

json_t *json_from_strings(const char *const *items, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		if (json_array_append_new(array, any_string(items[i])) != 0)
			abort();
	return array;
}

json_t *json_from_strlist(const struct strlist *l)
{
	return json_from_strings(l->items, l->count);
}

static json_t *json_member_of(const char *from, const struct json_field *f)
{
	const void *at = from + f->at;

	switch (f->form) {
	case AS_MADE:
		return f->make(at);
	case AS_TEXT:
		return json_or_null(*(const char *const *)at);
	case AS_CHARS:
		return json_or_null(at);
	case AS_FILLED:
		return json_filled(*(const char *const *)at);
	case AS_FLAG:
		return json_boolean(*(const bool *)at);
	case AS_DOUBLE:
		return json_real(*(const double *)at);
	case AS_INT:
		return json_integer(*(const int *)at);
	case AS_UNSIGNED:
		return json_integer(*(const unsigned *)at);
	case AS_LONG:
		return json_integer(*(const int64_t *)at);
	case AS_LIST:
		break;
	}

	return f->count ? json_from_strings(*(const char *const *const *)at,
					    *(const unsigned *)(const void *)(from + f->count))
			: json_from_strlist(at);
}

void json_add(json_t *o, const void *from, const struct json_field *fields)
{
	for (; fields->key; fields++)
		json_object_set_new(o, fields->key, json_member_of(from, fields));
}

json_t *json_rows(const void *items, size_t count, size_t size, const struct json_field *fields)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *o = json_object();
		json_add(o, (const char *)items + i * size, fields);
		json_array_append_new(list, o);
	}

	return list;
}

static int dump(const json_t *j, struct buf *b, struct err *e)
{
	AUTO_FREE char *text = json_dumps(j, FORMAT);

	if (!text)
		return err_set(e, ERR_SYSTEM, "the document cannot be written as JSON");
	utf8_escape(b, text);
	buf_addc(b, '\n');
	return 0;
}

int json_print(const json_t *j, struct err *e)
{
	AUTO_BUF struct buf b = {0};

	return dump(j, &b, e) < 0
		       ? -1
		       : fs_write_all(STDOUT_FILENO, b.data, b.len, "standard output", e);
}

int json_write(const json_t *j, const char *top, const char *rel, struct err *e)
{
	AUTO_BUF struct buf b = {0};
	return dump(j, &b, e) < 0 ? -1 : fs_write(top, rel, b.data, b.len, 0644, e);
}

int json_read(const char *top, const char *rel, json_t **ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf b = {0};
	json_error_t why;

	if (fs_read(top, rel, MAX_FILE, &b, e) < 0)
		return -1;
	json_t *j = json_loadb(buf_cstr(&b), b.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (!j)
		return err_set(e, ERR_INTEGRITY, "%s:%d:%d: invalid JSON: %s",
			       top == TRUSTED ? rel : path_join(&a, top, rel), why.line, why.column,
			       why.text);
	*ret = j;
	return 0;
}
