/* What the files that make a world's tree share; nobody else includes this. */
#pragma once
#include "base/sys/tar.h"
#include "step/world/world_names.h"
#include "step/world/world_tree.h"

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
	uint64_t bytes; /* of a wheel, so far */
};

/* unpack_work: one package or archive into the tree. Errors do not name it. */
int unpack_work(struct unpacker *u, struct work *w, struct err *e) MUST_CHECK;
/* world_add_file, world_add_link: what no package brings (`unit`: the part's, or NULL for the
 * world's); ERR_CONFIG where something else is. */
int world_add_file(struct world_making *m, const struct world_unit *unit, const char *path, const void *data,
		   size_t len, struct err *e) MUST_CHECK;
int world_add_link(struct world_making *m, const struct world_unit *unit, const char *path, const char *to,
		   struct err *e) MUST_CHECK;
int world_add_dir(struct world_making *m, const struct world_unit *unit, const char *path, struct err *e) MUST_CHECK;
/* world_prefix: the toolkit of a part below its prefix, with its files hashed and their times set.
 * */
int world_prefix(struct world_making *m, size_t piece, const struct world_unit *unit, struct err *e) MUST_CHECK;
/* world_extras: the links and files of a part's table. */
int world_extras(struct world_making *m, const struct world_part *p, const struct world_unit *unit,
		 struct err *e) MUST_CHECK;
