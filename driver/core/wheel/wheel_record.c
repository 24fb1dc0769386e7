/* Reads RECORD, and formats one row of it. step/pack/pack.c writes a wheel's RECORD. */

#include <inttypes.h>

#include "base/sys/digest.h"
#include "core/wheel/wheel.h"

enum { FIELDS = 3 };

struct cursor {
	const char *at, *end;
	const char *what;
	unsigned line;
	struct arena *a;
};

static int bad(struct err *e, const struct cursor *c, const char *what)
{
	return err_set(e, ERR_INTEGRITY, "'%s' line %u: %s", c->what, c->line, what);
}

static bool ends_field(char c)
{
	return c == ',' || c == '\r' || c == '\n';
}

/* One field, unquoted; stops at the comma or the end of the line. */
static int read_field(struct cursor *c, struct buf *out, struct err *e)
{
	buf_reset(out);
	if (c->at < c->end && *c->at == '"') {
		for (c->at++;;) {
			const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
			if (!quote)
				return bad(e, c, "a quote is not closed");
			buf_add(out, c->at, (size_t)(quote - c->at));
			c->at = quote + 1;
			if (c->at == c->end || *c->at != '"')
				break;
			buf_addc(out, '"');
			c->at++;
		}

		return c->at < c->end && !ends_field(*c->at)
			       ? bad(e, c, "text after a closed quote")
			       : 0;
	}

	const char *from = c->at;
	while (c->at < c->end && !ends_field(*c->at))
		c->at++;
	buf_add(out, from, (size_t)(c->at - from));
	return memchr(from, '"', (size_t)(c->at - from))
		       ? bad(e, c, "a quote in a field that is not quoted")
		       : 0;
}

static int parse_digest(const struct cursor *c, const char *text, const char **ret, struct err *e)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t name = strcspn(text, "="),
	       length = digest_record_length(arena_strndup(c->a, text, name));

	if (*text && (!text[name] || !length))
		return bad(e, c, "the digest is neither sha256 nor a stronger one");
	if (*text &&
	    (strlen(text + name + 1) != length || strspn(text + name + 1, alphabet) != length))
		return bad(e, c, "the digest is not unpadded URL-safe base64 of its length");
	*ret = arena_strdup(c->a, text);
	return 0;
}

static int parse_size(const struct cursor *c, const char *text, int64_t *ret, struct err *e)
{
	size_t n = strlen(text);

	if (strspn(text, "0123456789") != n || n > 18)
		return bad(e, c, "the size is not a number");
	int64_t v = n ? 0 : -1;
	for (; *text; text++)
		v = v * 10 + (*text - '0');
	*ret = v;
	return 0;
}

static int parse_row(struct cursor *c, struct buf *field, struct wheel_record_row *row,
		     struct err *e)
{
	for (unsigned i = 0; i < FIELDS; i++) {
		if (i > 0) {
			if (c->at == c->end || *c->at != ',')
				return bad(e, c, "fewer than three fields");
			c->at++;
		}

		if (read_field(c, field, e) < 0)
			return -1;
		const char *text = buf_cstr(field);
		if (i == 0 && !*text)
			return bad(e, c, "the path is empty");
		if (i == 0)
			row->path = arena_strdup(c->a, text);
		else if ((i == 1 ? parse_digest(c, text, &row->digest, e)
				 : parse_size(c, text, &row->size, e)) < 0)
			return -1;
	}

	if (c->at < c->end && *c->at == '\r')
		c->at++;
	if (c->at == c->end)
		return 0;
	if (*c->at != '\n')
		return bad(e, c,
			   *c->at == ',' ? "more than three fields"
					 : "a carriage return inside a line");
	c->at++;
	return 0;
}

int wheel_record_parse(const char *text, size_t len, const char *what, struct arena *a,
		       struct wheel_record_row **ret, size_t *ret_count, struct err *e)
{
	struct cursor c = {text, text + len, what, 1, a};
	struct buf AUTO_BUF field = {0};
	struct wheel_record_row *rows = NULL;
	size_t count = 0, cap = 0;

	if (len && memchr(text, 0, len))
		return err_set(e, ERR_INTEGRITY, "'%s' holds NUL bytes", what);
	for (; c.at < c.end; c.line++) {
		rows = arena_room(a, rows, count, &cap, 256, sizeof(*rows));
		if (parse_row(&c, &field, &rows[count++], e) < 0)
			return -1;
	}

	*ret = rows;
	*ret_count = count;
	return 0;
}

int wheel_zip_record(const struct zip_reader *z, const char *info, struct arena *a,
		     struct wheel_record_row **ret, size_t *ret_count, struct err *e)
{
	enum { RECORD_MAX = 256 << 20 };
	struct buf AUTO_BUF text = {0};
	const char *path = path_join(a, info, "RECORD");

	if (wheel_zip_text(z, path, RECORD_MAX, &text, e) < 0)
		return -1;
	return wheel_record_parse(buf_cstr(&text), text.len, path, a, ret, ret_count, e);
}

void wheel_record_line(struct buf *out, const char *path, const char *digest, int64_t size)
{
	if (strpbrk(path, ",\"\r\n")) {
		buf_addc(out, '"');
		for (const char *s = path; *s; s++) {
			if (*s == '"')
				buf_addc(out, '"');
			buf_addc(out, *s);
		}

		buf_addc(out, '"');
	} else {
		buf_addstr(out, path);
	}

	buf_printf(out, ",%s,", digest);
	if (size >= 0)
		buf_printf(out, "%" PRId64, size);
	buf_addc(out, '\n');
}

const char *wheel_installed(const char *name)
{
	static const char *const roots[] = {"platlib/", "purelib/"}, *const sites[] = {
									     "/site-packages/",
									     "/dist-packages/"};
	const char *data = strstr(name, ".data/");
	const char *slash = strchr(name, '/');

	if (!data || !slash || data > slash)
		return name;
	const char *rest = data + strlen(".data/");
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		if (strncmp(rest, roots[i], strlen(roots[i])) == 0)
			return rest + strlen(roots[i]);
	}

	/* Below the environment's own directory, in which its packages are. */
	for (size_t i = 0; i < ARRAY_LEN(sites) && strncmp(rest, "data/", 5) == 0; i++)
		if (strstr(rest, sites[i]))
			return strstr(rest, sites[i]) + strlen(sites[i]);
	return NULL;
}
