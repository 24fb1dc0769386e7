/* History: what earlier builds of a release's package really took, unit by unit; one small file in
 * the store per package and release (see cache/FORMAT.md). It only advises (estimates, pool sizes,
 * order): nothing of it is in a key or can change compiled bytes, so no failure of it stops a
 * build. */
#pragma once
#include "cache/store.h"

enum history_kind { HISTORY_COMPILE, HISTORY_HEAVY, HISTORY_LINK, HISTORY_KINDS };

/* One output of the build system: an object file, a library, a program. */
struct history_unit {
	/* as ninja names it, relative to the build directory:
	 * "caffe2/CMakeFiles/torch_cpu.dir/a.cpp.o" */
	const char *path;
	/* wall time of really making it, never that of a compiler cache hit; 0: not known */
	double seconds;
	/* resident memory of the processes that made it, together, at most; 0: not known */
	uint64_t peak_bytes;
	enum history_kind kind;
	unsigned seen; /* number of the build (1, 2, ...) that had it last; set by history_merge */
};

/* HISTORY_MAX_UNITS: more are not kept; those go first that the latest builds did not have. */
#define HISTORY_MAX_UNITS 20000
#define HISTORY_MAX_PATH 1024 /* a unit of a longer path, or one with control bytes, is not kept */

struct history {
	const struct history_unit *units; /* sorted by path (strcmp) */
	size_t count;
	unsigned builds; /* that were merged so far */
};

/* history_load: what is known, in the arena; empty when nothing is, or when the file is damaged (a
 * warning names it; the next merge replaces it). */
const struct history *history_load(struct store *s, const char *package, const char *release, const struct run *run,
				   struct arena *a) __attribute__((returns_nonnull));
/* history_find: the unit of this path, or NULL. */
const struct history_unit *history_find(const struct history *h, const char *path);
/* history_peak: bytes that `percent` (1..100) of the measured units of a kind stayed within, the
 * largest for 100; 0 when none was measured. history_measured: how many were. */
uint64_t history_peak(const struct history *h, enum history_kind kind, unsigned percent);
size_t history_measured(const struct history *h, enum history_kind kind);
/* history_merge: adds one build's units, any order, under a lock of the file's own; written
 * atomically. Seconds become the mean of old and new, so that one busy hour does not count for
 * ever; of peaks the larger stays, since memory that was once needed will be needed again; 0 (not
 * known) leaves what was. Paths and values that cannot be kept are left out. ERR_CONFIG for a
 * package or release that is no file name. */
int history_merge(struct store *s, const char *package, const char *release, const struct history_unit *units,
		  size_t count, const struct run *run, struct err *e) MUST_CHECK;

/* history_parse: the text of a history file (pure; for the above and for tests). ERR_INTEGRITY
 * names `name` and the line. */
int history_parse(const char *text, size_t len, const char *name, struct arena *a, struct history *ret,
		  struct err *e) MUST_CHECK;
