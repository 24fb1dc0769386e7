/* The root: the file system that a build sees. The host's own ("/"), or an unpacked root file
 * system. */
#pragma once
#include "base/base.h"

/* PATH of a build, and where programs are looked for; a toolkit's default place comes last. */
#define ROOT_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/cuda/bin"

struct root {
	const char *dir; /* absolute; "/" is the host */
	bool host;
	const char *world;    /* key of the world of a store that it is; NULL: something else */
	const char *platform; /* of its programs: "x86_64-linux"; this machine's if none says so */
	/* how its programs run here where they are for another platform; NULL: as they are, or not
	 * at all */
	const struct emulation *emulation;
	const char *id; /* ID and VERSION_ID of os-release: "debian 13"; "unknown" without one */
	/* sha256 of what identifies its contents: the package database (dpkg's status without
	 * volatile fields) and the key of its world, else os-release with names and sizes in
	 * usr/bin and usr/lib */
	char fingerprint[65];
};

/* root_open: `dir` NULL or "/" is the host. ERR_USAGE if it has no usr/bin. */
int root_open(const char *dir, struct arena *a, struct root *ret, struct err *e) MUST_CHECK;
/* root_world_fix: what to do where a world of the store lacks something: it is read-only and others
 * share it. NULL for any other root, a copy of a world too. */
const char *root_world_fix(const struct root *r, struct arena *a);
/* root_install: what installs Debian's packages on this machine, or else in the root: the command
 * where there is apt, else words. */
char *root_install(const struct root *r, bool on_host, const char *packages, struct arena *a);
/* root_host_path: an absolute path inside the root as a path of the host. No link is followed, so
 * resolve the path first. */
char *root_host_path(const struct root *r, const char *path, struct arena *a);
/* root_resolve: an absolute path inside the root with all links resolved; NULL with errno if it
 * does not exist or cannot be looked at. Absolute links start at the root, and ".." ends there. */
char *root_resolve(const struct root *r, const char *path, struct arena *a);
/* root_find: like root_resolve, but separates absence from failure: NULL if the path does not exist
 * or this user cannot reach it; ERR_SYSTEM on an I/O error. */
int root_find(const struct root *r, const char *path, struct arena *a, const char **ret,
	      struct err *e) MUST_CHECK;
/* root_read: a file inside the root, appended to `out`: 1; 0 if it does not exist. */
int root_read(const struct root *r, const char *path, uint64_t max, struct buf *out,
	      struct err *e) MUST_CHECK;
/* root_list: the names in a directory inside the root, as fs_list; none if it does not exist. */
int root_list(const struct root *r, const char *dir, struct arena *a, struct strlist *ret,
	      struct err *e) MUST_CHECK;
/* root_files: the paths below a directory inside the root, relative to it, that are or lead to
 * regular files; none if it does not exist. */
int root_files(const struct root *r, const char *dir, struct arena *a, struct strlist *ret,
	       struct err *e) MUST_CHECK;
/* root_find_program: the path inside the root ("/usr/bin/ninja") of a program in ROOT_PATH, or of a
 * name with a '/'. Links are followed to an executable file, but the path given is the link, since
 * programs look at their name. NULL if absent. */
char *root_find_program(const struct root *r, const char *name, struct arena *a);
/* root_build_path: PATH of what runs the root's Python: /usr/bin:/bin, and before them the
 * directory of its python3 where that is another, as of a Python in /usr/local. root_path_of: the
 * same for a python3 of this path; NULL: of none. */
char *root_build_path(const struct root *r, struct arena *a);
char *root_path_of(const char *python, struct arena *a);
/* root_python: returns the version in the file name of its python3, so that nothing is run: "3.13";
 * NULL without a python3. */
char *root_python(const struct root *r, struct arena *a);
/* root_library_dirs: the loader's default directories (ld.so.conf and its includes, then lib64,
 * usr/lib64, lib, usr/lib) that exist, as paths inside the root, each once. */
int root_library_dirs(const struct root *r, struct arena *a, struct strlist *ret,
		      struct err *e) MUST_CHECK;
/* root_glibc: the version of its C library, "2.41"; "" if it has another, or none. */
int root_glibc(const struct root *r, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* root_package_of: name=version of the package that owns a file inside the root, by dpkg's lists,
 * also through links and where /lib is a link to /usr/lib; NULL if none. */
int root_package_of(const struct root *r, const char *path, struct arena *a, const char **ret,
		    struct err *e) MUST_CHECK;
/* root_package_files: the paths that dpkg's list of a package ("name=version" or its name) has;
 * none if there is no such list. */
int root_package_files(const struct root *r, const char *package, struct arena *a,
		       struct strlist *ret, struct err *e) MUST_CHECK;
/* root_dpkg_text: adds dpkg's database as sorted lines "package architecture version status".
 * Returns 1; 0 if the root has no database. */
int root_dpkg_text(const struct root *r, struct buf *out, struct err *e) MUST_CHECK;
