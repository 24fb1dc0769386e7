/* Dotted versions and ranges of them. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/* version_cmp: compares numeric components ("12.8" < "12.10"; "2.6" == "2.6.0"); what follows '+', '-' or a letter is ignored. <0, 0, >0. */
int version_cmp(const char *a, const char *b);
/* version_in: whether `v` satisfies every comma-separated clause of `range` (">=3.27,<4", "==2.9.*", "!=1.2"); an empty range takes all.
 * A malformed range is ERR_CONFIG. */
int version_in(const char *v, const char *range, bool *ret, struct err *e) MUST_CHECK;
/* version_valid: one or more numeric components with dots. */
bool version_valid(const char *v);
