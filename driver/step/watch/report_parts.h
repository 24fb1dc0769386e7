/* The parts of the report that only report*.c share. */
#pragma once
#include <stddef.h>

#include "step/watch/report.h"

/* The page: driver/step/watch/report/, put together when the program is built. @TITLE@ and @DATA@
 * mark the places of title and document. */
extern const unsigned char report_page[];
extern const size_t report_page_size;

/* report_sizes: the members of a wheel as a tree of directories (new reference): n name, r bytes, p
 * packed bytes, k files, c children. Files too small to be seen are one child of their directory.
 * */
int report_sizes(const char *wheel, json_t **ret, struct err *e) MUST_CHECK;
