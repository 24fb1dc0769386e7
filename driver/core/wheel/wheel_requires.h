/* Requirement lines of METADATA: "torch==2.6.0", "numpy (>=1.20) ; python_version < '3.12'". */
#pragma once
#include "core/wheel/wheel.h"

/* wheel_requires_name: the normalised distribution name that a requirement begins with, "" if
 * none. */
char *wheel_requires_name(const char *requirement, struct arena *a);
/* wheel_requires_replace: `requirement` takes the place of the first Requires-Dist line of the same
 * distribution, the others of it go; without one it is added. */
void wheel_requires_replace(struct wheel_headers *h, struct arena *a, const char *requirement);
