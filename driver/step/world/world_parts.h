/* What the files that make a world's tree share; nobody else includes this. */
#pragma once
#include "base/sys/tar.h"
#include "step/world/world_tree.h"

/* All paths of a world while it is made: what is there, and who brought it. */

enum name_kind { NAME_DIR, NAME_FILE, NAME_LINK };

/* One of the files that a world is made of, or NULL for what ptbuild adds itself. */
struct world_unit {
	const char *name; /* for messages */
	size_t piece;
	size_t at;                      /* in the order of the world */
	const struct strlist *replaces; /* packages whose files it may have as well */
};

struct name {
	const char *path;
	enum name_kind kind;
	bool executable;
	const struct world_unit *unit; /* the first of them, for a directory */
	uint32_t pieces;               /* bits: which bring it */
	uint64_t size;
	char sha256[65];
	const char *target;
	struct timespec mtime; /* of a directory the newest */
	/* What others brought at the same path: `spare` is where the bytes of a file wait. */
	struct name *rival;
	const char *spare;
	struct name *next;
};

struct names {
	pthread_mutex_t mutex;
	struct arena arena;
	void *tree; /* of tsearch, by path */
	struct name *all;
	size_t count, spares;
};

#define NAMES_SPARE ".ptbuild-world" /* directory of spare files at the top of the tree */

void names_release(struct names *n);
/* What a unit brings. */
struct name_claim {
	const char *path;
	enum name_kind kind;
	struct timespec mtime;
	const struct world_unit *unit;
};

/* names_claim: an entry for what a unit brings, for its caller alone to fill in; directories above
 * it are claimed too. Where another unit has the path as well it has a `spare`. A directory that is
 * there gets its bit. ERR_INTEGRITY for a path that a unit brings twice, and for a directory where
 * another has none. Any thread. */
int names_claim(struct names *n, const struct name_claim *c, struct name **ret,
		struct err *e) MUST_CHECK;
/* names_find: returns the entry of a path, NULL if it has none. */
struct name *names_find(const struct names *n, const char *path);
/* names_settle: decides what stays where units have the same path: one that has the same bytes as
 * the others, or that replaces them. The winner's facts are moved to the entry itself, whose
 * `spare` is then the file to move, and `rival` non-NULL. ERR_INTEGRITY names path and two units.
 * */
int names_settle(struct names *n, struct err *e) MUST_CHECK;
/* names_sorted: all of them by path. */
struct name **names_sorted(const struct names *n, struct arena *a);
/* names_text: a line for each of the sorted entries that a piece brings (SIZE_MAX: of all). */
void names_text(struct name *const *sorted, size_t count, size_t piece, struct buf *out);

#define WORLD_MAX_BYTES (UINT64_C(32) << 30) /* of one package */

/* One file that is unpacked by itself: a Debian package, a Python's archive or a wheel that
 * has a place. */
struct work {
	struct world_unit unit;
	const struct world_part *part;
	const struct world_entry *entry;
	const char *path;
	struct strlist replaces;
	/* of a package: its paragraph of dpkg's status, its list, and the name of that */
	const char *status, *list_name;
	struct buf list;
	struct timespec newest; /* of its entries */
};

struct world_making {
	const struct world_tree_request *q;
	const struct run *run;
	struct names names;
	struct work *works; /* in the order of the world */
	size_t count;
	struct timespec newest; /* of all: the time of what ptbuild adds */
	struct tree tree;       /* for what is added when all is unpacked */
};

/* One thread's view of the tree. */
struct unpacker {
	struct world_making *m;
	struct tree tree;
	struct arena arena; /* of the work */
	struct work *work;
	struct tar *tar; /* that is read; not of a wheel */
	uint64_t bytes;  /* of a wheel, so far */
};

/* unpack_work: one package or archive into the tree. Errors do not name it. */
int unpack_work(struct unpacker *u, struct work *w, struct err *e) MUST_CHECK;

/* One Debian package: an ar archive of a control and a data archive, read once from its beginning
 * to its end. Nothing of it is run. */

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
int deb_open(const char *path, const struct tar_limits *l, const struct run *run, struct arena *a,
	     struct deb **ret, struct deb_control *ret_control, struct err *e) MUST_CHECK;
/* deb_data: its data archive. */
struct tar *deb_data(const struct deb *d);
void deb_close(struct deb *d);
static inline void deb_cleanup(struct deb **d)
{
	deb_close(*d);
}
#define AUTO_DEB CLEANUP(deb_cleanup)
