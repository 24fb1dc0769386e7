/* A quilt series: which patches there are, in which order. */
#pragma once
#include "base/base.h"

/* series_read: the names in a series file, in order, without those in `skip` (may be NULL). "#"
 * begins a comment; "-p1" is the one option allowed. ERR_CONFIG with file and line for another
 * option, an unsafe name and a name listed twice; ERR_CONFIG too for a name in `skip` that is not
 * in the series. */
int series_read(const char *series, const struct strlist *skip, struct arena *a, struct strlist *ret,
		struct err *e) MUST_CHECK;
