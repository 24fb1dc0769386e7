/* Requirement lines of METADATA: "torch==2.6.0", "numpy (>=1.20) ; python_version < '3.12'". */
#pragma once
#include "core/wheel/wheel.h"

/* wheel_requires_name: the normalised distribution name at the start of a requirement, "" if
 * none. */
char *wheel_requires_name(const char *requirement, struct arena *a);
/* wheel_requires_replace: replaces the Requires-Dist lines of the same distribution, or adds
 * one. */
void wheel_requires_replace(struct wheel_headers *h, struct arena *a, const char *requirement);
