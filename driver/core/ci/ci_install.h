/* How a job gets ptbuild: its image has it, or the job installs the wheel of a release or builds
 * the checkout of the source. */
#pragma once
#include "core/ci/ci.h"

struct ci_wheel {             /* of a release of ptbuild */
	const char *place;    /* a URL of http or https, or a path in the repository */
	const char *sha256;   /* of the file */
	const char *platform; /* that it is for, by its name */
	bool here;            /* the place is a path */
};

/* ci_wheel_read: PLACE=SHA256. The last part of the place is the name that a release gives its
 * wheel. A place has no characters that a shell or pip reads, no user and no query. ERR_USAGE. */
int ci_wheel_read(const char *text, struct arena *a, struct ci_wheel *ret,
		  struct err *e) MUST_CHECK;
/* ci_wheel_of: the plan's wheel for the platform; NULL: none. */
const struct ci_wheel *ci_wheel_of(const struct ci_plan *p, const char *platform);
/* ci_install: lines for a shell that stops at errors; none where the image has ptbuild.
 * ci_install_checkout: whether they need the repository; ci_install_source: whether that must be
 * ptbuild's own. */
struct strlist ci_install(const struct ci_plan *p, struct arena *a);
bool ci_install_source(const struct ci_plan *p);
bool ci_install_checkout(const struct ci_plan *p);
