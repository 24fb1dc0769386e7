/* The pages of a matrix and of a comparison of two wheels: the documents that the commands print,
 * for a browser. No script, and nothing from elsewhere. */
#pragma once
#include <jansson.h>

#include "base/buf.h"

/* report_matrix: what "matrix --status" has, with links to the pages of the variants.
 * report_bench: what "bench" has, with bars of the ratios. */
void report_matrix(const json_t *doc, struct buf *out);
void report_bench(const json_t *doc, struct buf *out);
