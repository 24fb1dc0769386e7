/* UTF-8, for names and texts that come from outside: a build's log, a server's answer, names in an
 * archive. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

bool utf8_valid(const char *s);
/* utf8_printable: a copy with '?' for control characters, for what changes the direction or the
 * order of what is read, and for bytes that are not UTF-8. */
char *utf8_printable(const char *s, struct arena *a) __attribute__((returns_nonnull));
/* utf8_show: appends a text for a terminal. New lines and tabs stay; what utf8_printable replaces
 * is written as "\x1b" or "\u{202e}". With `colours`, the sequences of term_style stay as well. */
void utf8_show(struct buf *out, const char *s, size_t len, bool colours);
