/* Requirement lines of METADATA: "torch==2.6.0", "numpy (>=1.20) ; python_version < '3.12'". */
#pragma once
#include "core/wheel/wheel.h"

/* wheel_requires_name: the normalised distribution name at the start of a requirement, "" if
 * none. */
char *wheel_requires_name(const char *requirement, struct arena *a);
/* wheel_requires_replace: replaces the Requires-Dist lines of the same distribution, or adds
 * one. */
void wheel_requires_replace(struct wheel_headers *h, struct arena *a, const char *requirement);

enum wheel_python_fit {
	WHEEL_PYTHON_NEVER,
	WHEEL_PYTHON_BY_PATCH, /* some of its patch releases */
	WHEEL_PYTHON_ALWAYS
};

/* wheel_requires_python: whether a Python ("3.11", "3.13t") is one that a Requires-Python takes, as
 * PEP 440 has it. ERR_INTEGRITY for what is no range: installers then take all. */
int wheel_requires_python(const char *range, const char *python, struct arena *a, enum wheel_python_fit *ret,
			  struct err *e) MUST_CHECK;
