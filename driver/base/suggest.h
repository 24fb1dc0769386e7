/* The nearest known name to a mistyped one. */
#pragma once
#include <stddef.h>

#include "base/err.h"

/* suggest_nearest: the first candidate with the smallest edit distance (a transposition counts
 * one, other case nothing); NULL when that is above 2 + length/4 or all of the name. Names above
 * 128 bytes are never near. */
const char *suggest_nearest(const char *name, const char *const *candidates, size_t count);
/* suggest_version: the candidate (they ascend) that a version is meant to be: "2.11" the newest
 * 2.11.x, "128" 12.8, "latest" the newest; else suggest_nearest. */
const char *suggest_version(const char *version, const char *const *candidates, size_t count);
/* suggest_hint: the hint "did you mean 'NEAR'? REST"; `near` NULL: the rest alone. -1. */
int suggest_hint(struct err *e, const char *near, const char *rest);
