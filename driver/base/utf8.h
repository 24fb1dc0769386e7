/* UTF-8, for names and texts that come from outside. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"

bool utf8_valid(const char *s);
/* utf8_printable: a copy in which bytes that are no UTF-8, and control characters, are '?'. */
char *utf8_printable(const char *s, struct arena *a) __attribute__((returns_nonnull));
