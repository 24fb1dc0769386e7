/* All paths of a world while it is made: what is there, and who brought it. */
#pragma once
#include <pthread.h>
#include <time.h>

#include "base/err.h"
#include "base/strlist.h"

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

void names_init(struct names *n);
void names_release(struct names *n);
/* names_claim: an entry for what a unit brings, for its caller alone to fill in; directories above
 * it are claimed too. *ret_first false: another unit has the path as well, so that a file goes to
 * `spare`. A directory that is there gets its bit. ERR_INTEGRITY for a path that a unit brings
 * twice, and for a directory where another has none. Any thread. */
int names_claim(struct names *n, const char *path, enum name_kind kind, const struct world_unit *unit,
		struct timespec mtime, struct name **ret, bool *ret_first, struct err *e) MUST_CHECK;
/* names_find: NULL if there is none. */
struct name *names_find(const struct names *n, const char *path);
/* names_settle: decides what stays where units have the same path: one that has the same bytes as
 * the others, or that replaces them. The winner's facts are moved to the entry itself, whose
 * `spare` is then the file to move, and `rival` non-NULL. ERR_INTEGRITY names path and two units.
 * */
int names_settle(struct names *n, struct err *e) MUST_CHECK;
/* names_sorted: all of them by path. */
struct name **names_sorted(const struct names *n, struct arena *a);
/* names_text: a line for each of the sorted entries that a piece brings (SIZE_MAX: of all). */
struct buf;
void names_text(struct name *const *sorted, size_t count, size_t piece, struct buf *out);
