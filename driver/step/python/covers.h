/* Whether a locked list has what a Python without packages of its own needs, known before there is
 * such a Python. */
#pragma once
#include "core/tables/tables.h"

struct covers_request {
	const struct tables *tables;
	const struct release_row *release;
	const char *package; /* "pytorch" */
	const char *part;    /* of the world, that brings the Python: for messages */
	const char *python;  /* "3.12" */
	const char *own;     /* of the world's base, which brings packages as well */
};

/* covers_check: whether the locked list of the package has a line for each of its python_requires
 * and for each module that its wheel is tried with. ERR_POLICY names what is missing, and the
 * Pythons that the release can be built for; ERR_CONFIG for a list that cannot be read. */
int covers_check(const struct covers_request *q, struct arena *a, struct err *e) MUST_CHECK;
