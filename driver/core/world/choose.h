/* Which world a build stands on. */
#pragma once
#include "core/tables/tables.h"
#include "core/world/world.h"

struct world_wanted {
	const char *platform;
	const char *cuda;    /* the toolkit; NULL: no CUDA */
	const char *python;  /* NULL: any */
	const char *library; /* the part that the BLAS is in; NULL or "": none */
};

struct world_choice {
	const char *name;   /* "debian13+python3_12+cuda13_0" */
	const char *python; /* of the build */
};

/* world_choose: by the release's rows and what is wanted (any Python: the base's own if the release
 * has it, else the newest that the release has). ret->name is NULL where the release has no rows or
 * the platform has no worlds. ERR_POLICY where a part is needed that has no table; errors of the
 * tables of those that are. */
int world_choose(const struct tables *t, const struct release_row *r, const struct world_wanted *want, struct arena *a,
		 struct world_choice *ret, struct err *e) MUST_CHECK;
/* world_check_tools: whether the compiler, CMake and ninja of its base are those that the release
 * takes, by the lock: before anything is downloaded. ERR_POLICY names tool and range. */
int world_check_tools(const struct world *w, const struct release_row *r, struct arena *a, struct err *e) MUST_CHECK;
/* world_python: the version of the Python that its programs find first: of its last part with
 * one. */
const char *world_python(const struct world *w);
/* world_python_part: its part with a Python that is not the base's own; NULL: none.
 * world_python_program: the path of that one's python3 in the world; NULL likewise. */
const struct world_part *world_python_part(const struct world *w);
const char *world_python_program(const struct world *w, struct arena *a);
/* world_check_parts: whether its tables have the toolkit, the Python and the library (or another
 * with the same prefix: an older one) that are wanted; its platform is its own. ERR_POLICY names
 * what is not in it, with the release's own world as the hint. */
int world_check_parts(const struct tables *t, const struct world *w, const struct release_row *r,
		      const struct world_wanted *want, struct arena *a, struct err *e) MUST_CHECK;
