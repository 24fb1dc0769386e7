/* The place: SANDBOX_TOP as a directory of this machine. A build without a sandbox lies there, so
 * that its paths are those of one in the sandbox. */
#pragma once
#include "core/root/sandbox.h"

/* ptbuild's own directory in the place: the marker that says whose the place is, the lock of who
 * works there, the name of the tree that lies there, trees that wait. */
#define SANDBOX_PLACE_OWN ".ptbuild"
#define SANDBOX_PLACE_MARKER SANDBOX_PLACE_OWN "/marker"
#define SANDBOX_PLACE_TEXT "a place of ptbuild's for builds without a sandbox\n"
#define SANDBOX_PLACE_TREE SANDBOX_PLACE_OWN "/tree"

struct sandbox_place {
	bool fine;       /* it can be had: it is there and ptbuild's, or empty, or can be made */
	bool there;      /* the directory exists */
	const char *why; /* it cannot: what stands against it */
	const char *fix; /* and the way out */
};

/* sandbox_place_look: whether a build can lie in `top`. Refused are a link, another user's
 * directory, one that others may write, one that cannot be written or run from, and one with
 * anything in it that ptbuild did not make. Changes nothing; a place in use is fine. */
void sandbox_place_look(const char *top, struct arena *a, struct sandbox_place *ret);
/* sandbox_elsewhere: whether a build without a sandbox cannot lie in SANDBOX_TOP. */
bool sandbox_elsewhere(enum sandbox_kind kind);
/* sandbox_place_names: the names that a build tree has in the place; nothing else is moved or
 * removed there. */
extern const char *const sandbox_place_names[];
extern const size_t sandbox_place_names_count;
