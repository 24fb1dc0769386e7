/* The root of a world in the store: taken from there, or fetched and made. */
#pragma once
#include "base/sys/file_lock.h"
#include "core/world/world.h"
#include "step/fetch/fetch.h"

struct store;

struct world_request {
	const struct world *world;
	const char *profiles; /* the tables' directory */
	struct store *store;
	struct fetch_options fetch;
	bool no_drift;       /* a package that has left the archive is an error */
	const char *keyring; /* of the archive, for drift; NULL: Debian's of this machine */
	unsigned jobs;
	/* how its programs run here if it is for another platform (core/root/emulation.h); NULL */
	const struct emulation *emulation;
	bool look; /* of one that is there the directories alone are looked at (store_world_find) */
	const struct run *run; /* where to log, and how the user stops it */
};

struct world_result {
	const char *dir;           /* the root: read-only, in the store */
	const struct world *world; /* as it was made: with drift other than asked for */
	bool hit;                  /* it was there */
	const char *key;           /* the world's, or with drift that of what was made */
	/* of packages that left the archive, whose present versions were taken: "name locked
	 * present"; empty: none */
	struct strlist drift;
	struct fetch_stats fetched;
	double seconds;
	/* held: garbage collection leaves the root alone until the caller releases it, or ends */
	struct lock use;
};

/* world_missing: returns bytes of the world's files that neither the store (NULL: none) nor a
 * fallback has, each file once, and how many more files have an unknown size. Adds to `archives`
 * the Debian archives that they come from. */
uint64_t world_missing(struct store *store, const struct world *w, struct arena *a,
		       struct strlist *archives, unsigned *ret_unknown);
/* world_places: returns one source for each archive, index or server of the files that the store
 * (NULL: none) lacks, and their number. */
size_t world_places(struct store *store, const struct world *w, struct arena *a,
		    struct fetch_source **ret);
/* world_ensure: finds or creates a world; replaces a damaged one (store_world_find). Two processes
 * create it once; a kill at any moment leaves no half world, and the next store_open removes its
 * leftovers. ERR_INTEGRITY if the tree has another digest than its lock. ERR_NETWORK offline when
 * files are missing: the hint is the `ptbuild world make` that fetches them. */
int world_ensure(const struct world_request *q, struct arena *a, struct world_result *ret,
		 struct err *e) MUST_CHECK;

struct world_files {
	/* what they make: the one that was asked for, or with drift one of another key */
	const struct world *world;
	/* for each piece, for each entry of its lock in `world` */
	const char *const *const *paths;
	struct strlist drift; /* as struct world_result */
	struct fetch_stats fetched;
};

/* world_files: fetches what the store lacks. If all URLs certainly lack a package, it is no longer
 * in the archive: its current version by the signed index replaces it, with a warning; with
 * no_drift that is ERR_NETWORK. Other errors: those of drift_resolve, fetch_all and
 * archive_index_read. */
int world_files(const struct world_request *q, struct arena *a, struct world_files *ret,
		struct err *e) MUST_CHECK;

/* "ptbuild world make --copy": the root of a world as a directory of the user's own. */

/* world_copy_place: ERR_USAGE for a path that no copy may have: `to`, an absolute path, is the
 * store or in it, or a link in it leads nowhere. Neither must exist. */
int world_copy_place(const char *to, const char *store_dir, struct arena *a,
		     struct err *e) MUST_CHECK;
/* world_copy_look: sets *ret_there if `to` is a copy of this world already, with or without
 * changes; `key` NULL: with any key. ERR_USAGE for any other file at `to`, also for a copy with
 * another key: it is the user's, and is never replaced. */
int world_copy_look(const char *to, const char *name, const char *key, struct arena *a,
		    bool *ret_there, struct err *e) MUST_CHECK;

struct world_copied {
	bool there; /* before this call: it stays as it is */
	/* of the world's files, those that are gone from it or have another kind, size, mode or
	 * time in seconds; contents are not read, and new files count for nothing */
	size_t differ;
	const char *first; /* of these, relative; NULL: none */
};

/* world_copy: copies the root at `from` to `to`, an absolute path whose parents are made; nothing
 * of it is shared with `from`. It appears whole or not at all: it grows as <to>.ptbuild-part, which
 * the next call removes after a kill. Errors as for world_copy_look, else ERR_SYSTEM. */
int world_copy(const char *from, const char *to, const char *name, const char *key,
	       const struct run *run, struct arena *a, struct world_copied *ret,
	       struct err *e) MUST_CHECK;
