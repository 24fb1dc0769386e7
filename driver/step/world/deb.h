/* One Debian package: an ar archive of a control and a data archive, read once from its beginning
 * to its end. Nothing of it is run. */
#pragma once
#include "base/sys/tar.h"

struct deb;

struct deb_control {
	const char *text; /* its fields but Package, a line each and their further lines */
	const char *name, *version, *arch;
	bool same;               /* "Multi-Arch: same" */
	struct strlist replaces; /* names, without their versions */
};

/* deb_open: reads up to the control file; *ret_control lives in the arena. ERR_INTEGRITY for what
 * is not a package, of a format other than 2.0, or has no control file with name, version and
 * architecture within 1 MiB. */
int deb_open(const char *path, const struct tar_limits *l, const struct run *run, struct arena *a, struct deb **ret,
	     struct deb_control *ret_control, struct err *e) MUST_CHECK;
/* deb_data: its data archive. */
struct tar *deb_data(const struct deb *d);
void deb_close(struct deb *d);
static inline void deb_cleanup(struct deb **d)
{
	deb_close(*d);
}
#define AUTO_DEB CLEANUP(deb_cleanup)
