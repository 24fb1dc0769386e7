/* The root: the file system the build sees. The host's own ("/"), or an unpacked root file system. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/run.h"
#include "base/strlist.h"

struct root {
	const char *dir; /* absolute; "/" = the host */
	bool host;
	const char *id; /* ID and VERSION_ID of os-release: "debian 13" */
	char fingerprint
		[65]; /* sha256 over what identifies its contents: the package database (dpkg status without volatile fields), else os-release + toolchain */
};

/* root_open: `dir` NULL or "/" is the host. ERR_SYSTEM if it is no root (no usr/bin). */
int root_open(const char *dir, struct arena *a, struct root *ret, struct err *e) MUST_CHECK;
/* root_find_program: path inside the root ("/usr/bin/ninja") of a program in its PATH, following links inside the root; NULL if absent. */
char *root_find_program(const struct root *r, const char *name, struct arena *a);
/* root_resolve: an absolute path inside the root with all links resolved inside it, as a path inside the root; NULL if it does not exist. */
char *root_resolve(const struct root *r, const char *path, struct arena *a);
/* root_library_dirs: the loader's default directories inside the root (ld.so.conf and its includes, then /lib and /usr/lib), as paths inside it, that exist. */
int root_library_dirs(const struct root *r, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
/* root_package_of: name=version of the distribution package that owns a file inside the root; NULL if none (read from dpkg's lists). */
char *root_package_of(const struct root *r, const char *path, struct arena *a);
