#include "base/buf.h"

char *buf_reserve(struct buf *b, size_t extra)
{
	size_t need;

	if (__builtin_add_overflow(b->len, extra, &need) || __builtin_add_overflow(need, 1, &need))
		abort();
	if (need > b->cap) {
		size_t cap = b->cap ? b->cap : 64;
		while (cap < need)
			cap = cap > SIZE_MAX / 2 ? need : cap * 2;
		char *data = realloc(b->data, cap);
		if (!data)
			abort();
		b->data = data;
		b->cap = cap;
	}

	b->data[b->len] = '\0';
	return b->data + b->len;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	char *to = buf_reserve(b, len);

	if (len)
		memcpy(to, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_addstr(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;

	va_copy(again, ap);
	char *to = buf_reserve(b, 0);
	size_t room = b->cap - b->len;
	int n = vsnprintf(to, room, fmt, again);
	va_end(again);
	if (n < 0)
		abort();
	if ((size_t)n >= room)
		vsnprintf(buf_reserve(b, (size_t)n), (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
}

void buf_addurl(struct buf *b, const char *s, const char *also)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *s; s++)
		buf_printf(b, strchr(plain, *s) || strchr(also, *s) ? "%c" : "%%%02X",
			   (unsigned char)*s);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

const char *buf_cstr(const struct buf *b)
{
	if (!b->data)
		return "";
	/* A caller of buf_reserve raises len by itself; buf_reserve keeps the byte for this NUL. */
	b->data[b->len] = '\0';
	return b->data;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}
