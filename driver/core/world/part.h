/* A part of a world as its table has it: profiles/worlds/<part>.yaml. A base is packages of one
 * Debian suite, and wheels of what that has too old; a toolkit is CUDA, a python a standalone
 * CPython, and a library what a build links in, out of wheels; these lie over a base. */
#pragma once
#include "base/base.h"

struct world_link { /* what a maintainer script would have made */
	const char *path, *to, *why;
};

struct world_wheel { /* where a directory of a wheel goes */
	const char *wheel;
	const char *from; /* directory of the wheel; ".": all of it */
	const char *to;   /* directory of the root, with '@' as in links */
};

struct world_made { /* a file that a maintainer script would have made */
	const char *path;
	const char *kind; /* "copy": of the file `from`; "join": of all *.crt below `from` */
	const char *from, *why;
};

struct world_part {
	const char *sources, *part;
	const char *kind;  /* "base", "toolkit", "python" or "library" */
	const char *suite; /* of its packages; "" without any */
	const char *python, *glibc;
	const char **platforms; /* that it is for; none: all */
	/* where the tree of what is not a base goes, "usr/local/cuda" */
	const char *prefix;
	const char *manifest; /* URL of NVIDIA's manifest with `archives`; "" without one */
	/* asked for: packages, and wheels as "name==version" */
	const char **components, **packages, **wheels;
	/* asked for: components of the manifest; of a python "cpython==3.12.7+20241008" */
	const char **archives;
	/* patterns of paths that are not unpacked, and of those that are all the same ('*' is any
	 * characters) */
	const char **exclude, **keep;
	struct world_link *links;
	/* one or more for each wheel of a base or a library, and for some of a toolkit */
	struct world_wheel *places;
	struct world_made *made;
	unsigned components_count, packages_count, wheels_count, archives_count, exclude_count, keep_count, links_count;
	unsigned made_count, places_count, platforms_count;
};

/* world_part_load: ERR_CONFIG with file:line for what does not follow the schema or does not fit
 * together; for an unknown part with the nearest name. */
int world_part_load(const char *profiles, const char *name, struct arena *a, const struct world_part **ret,
		    struct err *e) MUST_CHECK;
/* world_part_names: the parts that have a table, sorted. */
int world_part_names(const char *profiles, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
/* world_part_check_platform: ERR_CONFIG for a part that its table has for other platforms only. */
int world_part_check_platform(const struct world_part *p, const char *platform, struct err *e) MUST_CHECK;
/* world_part_asked: sha256 of what it asks for (suite, components, packages, wheels,
 * manifest, archives), as its lock has it. */
void world_part_asked(const struct world_part *p, char ret[65]);
/* world_part_rules: how it is unpacked, as text for world_lock_key. */
void world_part_rules(const struct world_part *p, struct buf *out);
/* world_part_excludes: whether a path below the root is not unpacked. A symbolic link stays where
 * it may be the directory of something kept. */
bool world_part_excludes(const struct world_part *p, const char *path, bool is_link);
/* world_part_place: the first place of a wheel; NULL: none, so it is a toolkit's and goes below its
 * prefix. */
const struct world_wheel *world_part_place(const struct world_part *p, const char *wheel);
/* world_part_path: a path of the table with '@' replaced by the platform's directory of libraries
 * ("x86_64-linux-gnu"). */
const char *world_part_path(const char *path, const char *platform, struct arena *a);
/* world_debian_arch: "amd64" of "x86_64-linux"; NULL for a platform that no part is for. */
const char *world_debian_arch(const char *platform);
