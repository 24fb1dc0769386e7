/* One Debian package: an ar archive of a control and a data archive, read once from its beginning
 * to its end. Nothing of it is run. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strlist.h"

struct archive;
struct archive_entry;
struct deb;

struct deb_control {
	const char *text; /* its fields but Package, a line each and their further lines */
	const char *name, *version, *arch;
	bool same;               /* "Multi-Arch: same" */
	struct strlist replaces; /* names, without their versions */
};

/* deb_open: reads up to the control file; *ret_control lives in the arena. ERR_INTEGRITY for what
 * is not a package, of a format other than 2.0, or has no control file with name, version and
 * architecture within 1 MiB. Names in the archive are read in the locale of the calling thread
 * (deb_locale). */
int deb_open(const char *path, struct arena *a, struct deb **ret, struct deb_control *ret_control,
	     struct err *e) MUST_CHECK;
/* deb_next: the next entry of the data archive: 1; 0 at its end; ERR_INTEGRITY for a damaged one.
 * */
int deb_next(struct deb *d, struct archive_entry **ret, struct err *e) MUST_CHECK;
/* deb_data: reads the bytes of the entry. */
struct archive *deb_data(const struct deb *d);
void deb_close(struct deb *d);
/* deb_damaged: -1 with what libarchive says of `a`. */
int deb_damaged(struct archive *a, struct err *e);

static inline void deb_cleanup(struct deb **d)
{
	deb_close(*d);
}
#define AUTO_DEB CLEANUP(deb_cleanup)
