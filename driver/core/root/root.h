/* The root: the file system the build sees. The host's own ("/"), or an unpacked root file
 * system. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/run.h"
#include "base/strlist.h"

/* What a build has as PATH, and where programs are looked for: the distribution's own first, a
 * toolkit's default place last. */
#define ROOT_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/cuda/bin"

struct root {
	const char *dir; /* absolute; "/" = the host */
	bool host;
	const char *id; /* ID and VERSION_ID of os-release: "debian 13"; "unknown" without one */
	char fingerprint
		/* sha256 over what identifies its contents: the package database (dpkg status
		 * without volatile fields), else os-release + names and sizes in usr/bin and
		 * usr/lib */
		[65];
};

/* root_open: `dir` NULL or "/" is the host. ERR_SYSTEM if it is no root (no usr/bin). */
int root_open(const char *dir, struct arena *a, struct root *ret, struct err *e) MUST_CHECK;
/* root_host_path: where an absolute path inside the root lies on the host, as text: no link is
 * followed, so hand it what root_resolve gave. */
char *root_host_path(const struct root *r, const char *path, struct arena *a);
/* root_find_program: path inside the root ("/usr/bin/ninja") of a program in ROOT_PATH, under the
 * name it is called by (a link stays unresolved, since programs look at their name), if its links
 * end inside the root at an executable file; a name with a '/' is looked at as it is. NULL if
 * absent. */
char *root_find_program(const struct root *r, const char *name, struct arena *a);
/* root_resolve: an absolute path inside the root with all links resolved inside it, as a path
 * inside the root; NULL if it does not exist. Absolute link targets start at the root, and ".."
 * ends there. */
char *root_resolve(const struct root *r, const char *path, struct arena *a);
/* root_library_dirs: the loader's default directories inside the root (ld.so.conf and its includes,
 * then lib64, usr/lib64, lib, usr/lib), as paths inside it, that exist, each text once. */
int root_library_dirs(const struct root *r, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
/* root_package_of: name=version of the distribution package that owns a file inside the root, also
 * under its other name where /lib is a link to /usr/lib, or through links; NULL if none (read from
 * dpkg's lists). */
char *root_package_of(const struct root *r, const char *path, struct arena *a);
