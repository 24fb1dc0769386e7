/* UTF-8, for names and texts that come from outside. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"

bool utf8_valid(const char *s);
/* utf8_printable: a copy with '?' for control characters and bytes that are not UTF-8. */
char *utf8_printable(const char *s, struct arena *a) __attribute__((returns_nonnull));
