#include "core/archive/control.h"

#include <string.h>
#include <strings.h>

enum { LINE_MAX_BYTES = 1 << 20, FIELD_MAX_BYTES = 64 << 20 };

void control_open(struct control *c, const char *file, const char *text, size_t len)
{
	*c = (struct control){.file = file, .pos = text, .end = text + len};
}

bool control_is(const struct control_field *f, const char *name)
{
	return strlen(name) == f->name_len && strncasecmp(f->name, name, f->name_len) == 0;
}

static int deny(const struct control *c, const char *what, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "%s:%u: %s", c->file, c->line, what);
}

static bool is_blank(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

/* One line without its end. */
static int take_line(struct control *c, const char **line, size_t *len, struct err *e)
{
	const char *nl = memchr(c->pos, '\n', (size_t)(c->end - c->pos));
	const char *stop = nl ? nl : c->end;
	*line = c->pos;
	*len = (size_t)(stop - c->pos);
	c->line++;
	if (*len > LINE_MAX_BYTES)
		return deny(c, "a line of more than 1 MiB", e);
	for (const char *p = c->pos; p < stop; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t' && *p != '\r') || *p == 0x7f)
			return deny(c, "a control character in the text", e);
	c->pos = nl ? nl + 1 : c->end;
	return 0;
}

static bool all_blank(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_blank(s[i]))
			return false;
	return true;
}

static int split(const struct control *c, const char *line, size_t len, struct control_field *ret, struct err *e)
{
	const char *colon = memchr(line, ':', len);
	if (!colon || colon == line)
		return deny(c, "neither 'Field: value' nor the continuation of one", e);
	for (const char *p = line; p < colon; p++)
		if (*p <= ' ' || (unsigned char)*p > 0x7e)
			return deny(c, "not the name of a field", e);
	*ret = (struct control_field){.name = line,
				      .name_len = (size_t)(colon - line),
				      .value = colon + 1,
				      .value_len = (size_t)(line + len - colon - 1),
				      .line = c->line};
	return 0;
}

int control_next(struct control *c, enum control_got *ret, struct control_field *ret_field, struct err *e)
{
	const char *line;
	size_t len;
	for (;;) {
		if (c->pos >= c->end) {
			*ret = c->inside ? CONTROL_PARAGRAPH_END : CONTROL_END;
			c->inside = false;
			return 0;
		}
		if (take_line(c, &line, &len, e) < 0)
			return -1;
		if (!all_blank(line, len))
			break;
		if (c->inside) {
			c->inside = false;
			*ret = CONTROL_PARAGRAPH_END;
			return 0;
		}
	}
	struct control_field f = {0};
	if (is_blank(*line))
		return deny(c, "a continuation without a field before it", e);
	if (split(c, line, len, &f, e) < 0)
		return -1;
	while (c->pos < c->end && (*c->pos == ' ' || *c->pos == '\t')) {
		const char *more = c->pos;
		if (take_line(c, &line, &len, e) < 0)
			return -1;
		if (all_blank(line, len)) { /* ends the paragraph, for the next call */
			c->pos = more;
			c->line--;
			break;
		}
		f.value_len = (size_t)(line + len - f.value);
		if (f.value_len > FIELD_MAX_BYTES)
			return deny(c, "a field of more than 64 MiB", e);
	}
	while (f.value_len && is_blank(*f.value)) {
		f.value++;
		f.value_len--;
	}
	while (f.value_len && is_blank(f.value[f.value_len - 1]))
		f.value_len--;
	c->inside = true;
	*ret = CONTROL_FIELD;
	*ret_field = f;
	return 0;
}
