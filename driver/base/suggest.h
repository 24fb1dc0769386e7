/* The nearest known name to a mistyped one. */
#pragma once
#include <stddef.h>

/* suggest_nearest: the candidate with the smallest edit distance (transpositions count one), the
 * first in order on a tie; NULL when none is near (distance > 2 + length/4), or none has anything
 * in common with it. Names above 128 bytes are never near. */
const char *suggest_nearest(const char *name, const char *const *candidates, size_t count);
