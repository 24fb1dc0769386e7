/* The page of a comparison of two wheels: bars of ratios, and all figures. No script, and nothing
 * from elsewhere. */
#pragma once
#include "step/watch/report_matrix.h"

/* Texts as they are shown; "" for what is not there. */
struct report_bar {
	const char *name, *ours, *other, *ratio, *spread;
	double value;    /* the ratio; 0: it was not compared */
	const char *why; /* it was not */
};

struct report_bars { /* with one number of threads */
	const char *title, *note;
	const struct report_bar *bars;
	size_t count;
};

struct report_bench {
	const char *title, *summary;
	const struct report_tile *tiles;
	size_t tiles_count;
	const struct report_bars *sets;
	size_t sets_count;
};

/* report_bench: adds the page. */
void report_bench(const struct report_bench *b, struct buf *out);
