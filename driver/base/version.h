/* Dotted versions and ranges of them. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/* version_cmp: compares numeric components one by one ("12.8" < "12.10"); a missing one is zero
 * ("2.6" == "2.6.0"), leading zeros do not count. The comparison ends where the text is no longer
 * digits with single dots between: local labels, pre-releases and build suffixes are ignored
 * ("2.6.0a0+git1" == "2.6.0", "13.0-rc1" == "13"), and text without a number in front is version
 * zero. <0, 0, >0. */
int version_cmp(const char *a, const char *b);
/* version_in: whether `v` (its numeric part, as above) satisfies every clause of `range`. Clauses
 * have commas between and blanks around as you like:
 *   >=V <=V >V <V ==V !=V   by version_cmp
 *   ==V.* !=V.*             the leading components are (not) those of V
 *   ~=V                     >=V, and all components of V but the last are the same ("~=3.1" takes 3.9, not 4.0)
 * V must be version_valid: a suffix there would be ignored in silence. A blank range takes all. A
 * malformed range, or a `v` that does not begin with a number, is ERR_CONFIG. */
int version_in(const char *v, const char *range, bool *ret, struct err *e) MUST_CHECK;
/* version_valid: one or more numeric components with dots. */
bool version_valid(const char *v);
