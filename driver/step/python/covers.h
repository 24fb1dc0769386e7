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

/* marker_holds: whether a marker (PEP 508, "" = always) may hold for CPython `python`, "3.12".
 * Compared are python_version and python_full_version, joined by and, or and parentheses. A
 * comparison of anything else, and a text that cannot be read, may hold: the Python itself is
 * asked later. */
bool marker_holds(const char *marker, const char *python);
