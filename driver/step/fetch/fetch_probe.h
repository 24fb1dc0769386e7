/* Whether what is to be downloaded can be had: one small request to each of its places, all at
 * once, before anything long. */
#pragma once
#include "step/fetch/fetch.h"

enum { FETCH_PROBE_MS = 3000 }; /* for all of them together */

/* fetch_probe: ret_why[i] is NULL where a place of sources[i], or a mirror, answers or has the
 * file; else what each said. A server that says that it has no such file does not have it, but for
 * a Debian archive, whose files come and go. Nothing is kept. -1 only when interrupted. */
int fetch_probe(const struct fetch_source *sources, size_t count, const struct fetch_options *o, const struct run *run,
		struct arena *a, const char **ret_why, struct err *e) MUST_CHECK;
