/* Report: build.html, a page that shows a build and needs no network and no other file. */
#pragma once
#include <jansson.h>

#include "step/watch/report_units.h"

struct report_request {
	const json_t *record; /* build.json */
	const struct report_units *units;
	const struct watch_result *watched;
	const char *wheel; /* the file, for the sizes of its members */
};

/* report_write: the page at `path`, atomically. */
int report_write(const struct report_request *q, const char *path, struct err *e) MUST_CHECK;
/* report_units_json: for build.json: how many units, their times, the slowest and the largest (new
 * reference). */
json_t *report_units_json(const struct report_units *u);
/* report_ccache_json: for build.json: what the compiler cache did (new reference). */
json_t *report_ccache_json(const struct ccache_stats *s, const char *version, const char *mode, const char *sloppiness);

/* report_matrix: what "matrix --status" has, with links to the pages of the variants.
 * report_bench: what "bench" has, with bars of the ratios. */
void report_matrix(const json_t *doc, struct buf *out);
void report_bench(const json_t *doc, struct buf *out);

/* report_sizes: the members of a wheel as a tree of directories (new reference): n name, r bytes, p
 * packed bytes, k files, c children. Files too small to be seen are one child of their directory.
 * */
int report_sizes(const char *wheel, json_t **ret, struct err *e) MUST_CHECK;
