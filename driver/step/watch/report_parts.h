/* The parts of the report that only report*.c share. */
#pragma once
#include "step/watch/report.h"

/* The pages: driver/step/watch/report/, put together when the program is built. @TITLE@, @DATA@ and
 * others mark the places of what is different each time. */
extern const unsigned char report_page[], matrix_page[], bench_page[];
extern const size_t report_page_size, matrix_page_size, bench_page_size;

struct report_rest { /* of a page */
	const unsigned char *at, *end;
};
/* report_up_to: adds the page up to `mark`, and goes on behind it. */
void report_up_to(struct report_rest *page, const char *mark, struct buf *out);
/* report_sizes: the members of a wheel as a tree of directories (new reference): n name, r bytes, p
 * packed bytes, k files, c children. Files too small to be seen are one child of their directory.
 * */
int report_sizes(const char *wheel, json_t **ret, struct err *e) MUST_CHECK;
