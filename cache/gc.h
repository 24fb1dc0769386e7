/* What lies in the store, by kind, and what may go: least recently used first. */
#pragma once
#include "cache/store.h"

/* Kinds beside those of objects. */
#define GC_PARTIAL "partial"       /* broken downloads */
#define GC_QUARANTINE "quarantine" /* key: its name there */
#define GC_CCACHE "ccache"         /* the compiler cache's files */
#define GC_APT "apt"               /* package lists, which stores of earlier versions have */

#define GC_GRACE_SECONDS 3600 /* what the program leaves to who just used it */

struct gc_options {
	int64_t keep_seconds;  /* what was not used for so long goes; -1: age removes nothing */
	int64_t max_bytes;     /* the store is brought down to so much; -1: no limit */
	int64_t grace_seconds; /* what was used within so long stays */
	int64_t now;           /* seconds since the epoch; 0 = the clock's */
	bool dry_run;          /* only say what would go */
	const char *kind;      /* only this kind is looked at; NULL: all */
	/* what goes whatever its age, if grace_seconds allow it; NULL: nothing */
	bool (*unwanted)(void *user, const struct store_object *o);
	void *user;
};

struct gc_result {
	/* the compiler cache is one of these, with the key "N files" */
	struct store_object *removed;
	size_t count;
	uint64_t removed_bytes;
	uint64_t kept_bytes;
	size_t kept;
	size_t busy; /* of the kept: those whose lock is held */
};

/* store_gc: removes what was not used for keep_seconds, then, oldest first, until max_bytes holds:
 * objects, build trees, broken downloads, the quarantine (by the time things came there), package
 * lists, files of the compiler cache. What is locked stays, and so do fallback stores. */
int store_gc(struct store *s, const struct gc_options *o, const struct run *run, struct arena *a, struct gc_result *ret,
	     struct err *e) MUST_CHECK;

struct store_usage {
	const char *kind;
	size_t count;
	uint64_t bytes;
	int64_t oldest; /* the earliest of the last uses */
};

/* store_usage: a row per kind, objects first; kinds that have nothing are left out. */
int store_usage(struct store *s, const struct run *run, struct arena *a, struct store_usage **ret, size_t *ret_count,
		struct err *e) MUST_CHECK;
/* store_list_builds: the kept build trees, kind "build". */
int store_list_builds(struct store *s, struct arena *a, struct store_object **ret, size_t *ret_count,
		      struct err *e) MUST_CHECK;
