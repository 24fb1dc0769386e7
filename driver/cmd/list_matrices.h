/* The matrices as rows for 'ptbuild list'. */
#pragma once
#include <jansson.h>

#include "core/tables/tables.h"

/* list_matrices: an object for each: name, release, how many variants it has, how many of them
 * cannot be built, how many there are of each package, what it is a view of, note. New
 * reference. */
int list_matrices(const struct tables *t, struct arena *a, json_t **ret, struct err *e) MUST_CHECK;
