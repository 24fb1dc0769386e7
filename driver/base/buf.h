/* Buffer: growing bytes, always NUL-terminated behind `len`. Allocation failure aborts. */
#pragma once
#include <sys/types.h>

#include "base/cleanup.h"

/* Zero-initialise: `struct buf b = {0};` */
struct buf {
	char *data; /* NULL while nothing was added: use buf_cstr */
	size_t len;
	size_t cap;
};

void buf_add(struct buf *b, const void *data, size_t len);
void buf_addstr(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* buf_addurl: percent-encoded, but for what is plain in any URL (RFC 3986, 2.3) and the bytes of
 * `also`. */
void buf_addurl(struct buf *b, const char *s, const char *also);
/* buf_reserve: where `extra` more bytes may be written; the caller then raises len (buf_cstr puts
 * the NUL behind it). */
char *buf_reserve(struct buf *b, size_t extra) __attribute__((returns_nonnull));
/* buf_cstr: the bytes as a string; "" when empty. Valid until the next change. */
const char *buf_cstr(const struct buf *b) __attribute__((returns_nonnull));
/* buf_reset: len = 0, memory kept. */
void buf_reset(struct buf *b);
/* buf_release: frees; the buffer may be used again. */
void buf_release(struct buf *b);

#define AUTO_BUF CLEANUP(buf_release)
