/* What packages need: the closure of a list by libsolv, with Debian's rules. */
#pragma once
#include "base/strlist.h"
#include "core/archive/packages.h"

struct resolve_request {
	const struct archive_packages *packages; /* sorted */
	const char *arch;                        /* "amd64" */
	const struct strlist *asked;             /* names of packages */
	/* and those that the suite marks essential, on which others need not depend */
	bool essential;
};

/* resolve: the packages asked for and what they depend on, sorted by name; recommended ones are
 * left out. Of alternatives the first that can be had, unless another is there anyway; of several
 * packages that provide a name, the one of the highest priority, then the first by name; of
 * several versions the newest. ERR_CONFIG for a name that no package has, or for packages that
 * cannot be together, with the reasons. */
int resolve(const struct resolve_request *q, struct arena *a, const struct archive_package ***ret, size_t *ret_count,
	    struct err *e) MUST_CHECK;
/* resolve_newest: the newest version of a package, by Debian's order; NULL: there is none. */
const struct archive_package *resolve_newest(const struct archive_packages *packages, const char *name);
/* resolve_compare: <0, 0, >0 by Debian's order of versions. */
int resolve_compare(const char *x, const char *y);
