/* Dotted versions and ranges of them. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

/* version_cmp: <0, 0, >0 by numeric components ("12.8" < "12.10"); a missing one is zero. What
 * follows the digits and single dots is ignored ("2.6.0a0+git1" == "2.6.0", "13.0-rc1" == "13");
 * text without a number in front is version zero. */
int version_cmp(const char *a, const char *b);
/* version_in: whether `v` (its numeric part, as above) satisfies every clause of `range`, which has
 * commas between clauses and blanks anywhere around them:
 *   >=V <=V >V <V ==V !=V   by version_cmp
 *   ==V.* !=V.*             the leading components are (not) those of V
 *   ~=V                     >=V, and all components of V but the last are equal: "~=3.1"
 *                           takes 3.9, but not 4.0
 * V must be version_valid. A blank range takes all. ERR_CONFIG for a malformed range or a `v` that
 * does not begin with a number. */
int version_in(const char *v, const char *range, bool *ret, struct err *e) MUST_CHECK;
/* version_valid: one or more numeric components with dots. */
bool version_valid(const char *v);
