/* Environment markers of a locked list, judged by the version of a Python alone. */
#pragma once
#include <stdbool.h>

/* marker_holds: whether a marker (PEP 508, "" = always) may hold for CPython `python`, "3.12".
 * Compared are python_version and python_full_version, joined by and, or and parentheses. A
 * comparison of anything else, and a text that cannot be read, may hold: the Python itself is
 * asked later. */
bool marker_holds(const char *marker, const char *python);
