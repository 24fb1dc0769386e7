/* A world: the parts that a root is made of, each with its lock. "debian13", or with a toolkit and
 * a Python over the base: "debian13+cuda13_0", "debian13+python3_12". */
#pragma once
#include "core/tables/tables.h"

/* A part of a world as its table has it: profiles/worlds/<part>.yaml. A base is packages of one
 * Debian suite, and wheels of what that has too old; a toolkit is CUDA, a python a standalone
 * CPython, and a library what a build links in, out of wheels; these lie over a base. A cross part
 * is a tree of its own: what runs a base of another platform on this one (cross.h). */

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

struct world_move { /* where a file or directory of a package goes instead */
	const char *from, *to;
};

struct world_same { /* a package and the one of the base that it takes the place of */
	const char *package, *as;
};

/* How much slower emulated builds are than those for this machine's platform. */
struct world_slower {
	const char *compilers; /* "native" or "emulated" */
	const char *source;
	unsigned percent; /* of the time of a unit */
	unsigned seconds; /* more for a package */
};

struct world_part {
	const char *sources, *part;
	const char *kind;  /* "base", "toolkit", "python", "library" or "cross" */
	const char *suite; /* of its packages; "" without any */
	const char *python, *glibc;
	const char **platforms; /* that it is for; none: all */
	/* where the tree of what is not a base goes, "usr/local/cuda" */
	const char *prefix;
	const char *manifest; /* URL of NVIDIA's manifest with `archives`; "" without one */
	/* of a cross part: the platform that it runs, its program that does, and as which
	 * processor (QEMU_CPU); else "" */
	const char *target, *emulator, *cpu;
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
	struct world_move *moves;
	struct world_same *same;
	struct world_slower *slower;
	/* what a cross part takes of a toolkit's wheels for this machine's platform (cross.h) */
	struct world_wheel *programs;
	unsigned moves_count, same_count, slower_count, programs_count;
	unsigned components_count, packages_count, wheels_count, archives_count, exclude_count,
		keep_count, links_count;
	unsigned made_count, places_count, platforms_count;
};

/* world_part_load: ERR_CONFIG with file:line for what does not follow the schema or does not fit
 * together; for an unknown part with the nearest name. */
int world_part_load(const char *profiles, const char *name, struct arena *a,
		    const struct world_part **ret, struct err *e) MUST_CHECK;
/* world_part_exists: whether a part has a table, which may be wrong. */
bool world_part_exists(const char *profiles, const char *name, struct arena *a);
/* world_part_names: the parts that have a table, sorted. */
int world_part_names(const char *profiles, struct arena *a, struct strlist *ret,
		     struct err *e) MUST_CHECK;
/* world_part_check_platform: ERR_CONFIG for a part that its table has for other platforms only. */
int world_part_check_platform(const struct world_part *p, const char *platform,
			      struct err *e) MUST_CHECK;
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
/* world_part_move: where a path of a package goes: the first move that it is at or below, else the
 * path itself. */
const char *world_part_move(const struct world_part *p, const char *path, struct arena *a);
/* world_debian_arch: "amd64" of "x86_64-linux"; NULL for a platform that no part is for. */
const char *world_debian_arch(const char *platform);

/* The lock of a part of a world: every file of it, pinned, for one platform. docs/worlds.md has the
 * text form. */

/* The kinds in the order of the file: a Debian package, a wheel of the Python index, and any other
 * file. */
enum world_kind { WORLD_DEB, WORLD_WHEEL, WORLD_FILE };
extern const char *const world_kind_names[];

struct world_entry {
	enum world_kind kind;
	const char *name, *version;
	const char *arch; /* of a Debian package: "amd64", "all"; else "" */
	const char *sha256;
	/* below the archive for a package ("pool/..."), the file name of a wheel, the URL of a file
	 */
	const char *place;
	uint64_t size; /* 0: not known, which only a file may be; "-" in the text */
};

struct world_lock {
	const char *part;     /* "debian13" */
	const char *platform; /* "x86_64-linux" */
	const char *asked;    /* sha256 of what the part's table asks for */
	/* where its Debian packages are: "debian", "trixie", the sha256 of the suite's
	 * InRelease and its time, "2025-01-31T12:00:00Z"; all NULL without packages */
	const char *archive, *suite, *release, *date;
	const char *tree; /* sha256 of the unpacked part's manifest; NULL: not known yet */
	struct world_entry *entries;
	size_t count;
};

/* world_lock_parse: a whole lock; the strings live in the arena. ERR_CONFIG "file:line: ..." for
 * anything that world_lock_write would not have written. `file` is for messages. */
int world_lock_parse(const struct file_bytes *in, struct arena *a, struct world_lock *ret,
		     struct err *e) MUST_CHECK;
/* world_lock_read: like world_lock_parse, for a file of at most 4 MiB; ERR_CONFIG if it cannot be
 * read. */
int world_lock_read(const char *path, struct arena *a, struct world_lock *ret,
		    struct err *e) MUST_CHECK;
/* world_lock_write: its text, entries sorted, appended to `out`. */
void world_lock_write(const struct world_lock *l, struct buf *out);
/* world_lock_save: writes a lock to its file. ERR_INTEGRITY, with nothing written, if
 * world_lock_parse refuses it. */
int world_lock_save(const struct world_lock *l, const char *path, struct err *e) MUST_CHECK;
/* world_entry_cmp: of two entries, the order of the file. world_lock_sorted: all in that order. */
int world_entry_cmp(const void *x, const void *y);
const struct world_entry *world_lock_sorted(const struct world_lock *l, struct arena *a);
/* world_lock_find: the entry of a kind and name; NULL. */
const struct world_entry *world_lock_find(const struct world_lock *l, enum world_kind kind,
					  const char *name);
/* world_lock_path: returns the path of a part's lock below the tables' directory. */
char *world_lock_path(const char *profiles, const char *part, const char *platform,
		      struct arena *a);
/* world_lock_bytes: what its files of known size take to download. */
uint64_t world_lock_bytes(const struct world_lock *l);
/* world_lock_key: sha256 of what the unpacked part depends on: part, platform, each entry but its
 * place, and `rules`, the text of how it is unpacked (world_part_rules). */
void world_lock_key(const struct world_lock *l, const char *rules, char ret[65]);

/* A file of a world's root that names it: one line, "<name> <platform> <key>". */
#define WORLD_STAMP "etc/ptbuild-world"

struct world_piece {
	const struct world_part *part;
	struct world_lock lock;
};

struct world {
	const char *name; /* the parts' names with '+' between, as world_put_in_order has them */
	const char *platform;
	struct world_piece *pieces;
	size_t count;
	char key[65];      /* sha256 over the keys of all parts (world_lock_key) */
	uint64_t download; /* bytes of all its files */
	/* sha256 of toolkit_tree.yaml without comments, in the key of worlds with a toolkit */
	char toolkit_rules[65];
};

/* world_load: the parts of a name, in whichever order behind the base, with their tables and locks.
 * A cross part has no base; one toolkit may follow it, whose piece is its programs alone.
 * ERR_CONFIG for a name whose first part is neither or whose others are bases, for one part twice,
 * a part that is not for the platform or has no lock for it, a lock that was made for another
 * request than the table's, and a part with packages of another suite than the base's. */
int world_load(const char *profiles, const char *name, const char *platform, struct arena *a,
	       const struct world **ret, struct err *e) MUST_CHECK;
/* world_with_locks: returns a world of the same parts with other locks, one for each: another
 * key. */
const struct world *world_with_locks(const struct world *w, const struct world_lock *locks,
				     struct arena *a);
struct world_stamp {
	char *name, *key;
};

/* world_read_stamp: the stamp of the root at `dir`: 1; 0 if it is not made from a world. */
int world_read_stamp(const char *dir, struct arena *a, struct world_stamp *ret,
		     struct err *e) MUST_CHECK;

/* Selects the world of a build. */

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

/* What is asked of worlds: by the tables, for builds of a release. */
struct world_question {
	const struct tables *tables;
	const struct release_row *release;
	const struct world_wanted *want;
	struct arena *arena; /* of the answer */
};

/* world_choose: by the release's rows and what is wanted (any Python: the base's own if the release
 * has it, else the newest that the release has). ret->name is NULL where the release has no rows or
 * the platform has no worlds. ERR_POLICY where a part is needed that has no table; errors of the
 * tables of those that are. */
int world_choose(const struct world_question *q, struct world_choice *ret,
		 struct err *e) MUST_CHECK;
/* world_check_tools: whether the release supports the compiler, CMake and ninja of its base, by the
 * lock: before anything is downloaded. ERR_POLICY names tool and range. */
int world_check_tools(const struct world *w, const struct release_row *r, struct arena *a,
		      struct err *e) MUST_CHECK;
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
int world_check_parts(const struct world_question *q, const struct world *w,
		      struct err *e) MUST_CHECK;
