/* The Python that the user of this machine runs. */
#pragma once
#include "base/base.h"

struct host_python {
	const char *version; /* "3.11", "3.13t"; NULL: missing, or of unknown version */
	const char *venv;    /* the active virtual environment that it is of; NULL: the machine's */
};

/* host_python: finds the version of $VIRTUAL_ENV in its pyvenv.cfg, or else of python3 in PATH by
 * the name of the program that it links to. Runs python3, isolated, only where that name has no
 * version. Whatever is missing or unreadable leaves `version` NULL. */
void host_python(const struct run *run, struct arena *a, struct host_python *ret);
