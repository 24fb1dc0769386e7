/* History: what earlier builds of a release's package took, unit by unit; a file in the store for
 * each (cache/FORMAT.md). It only advises (estimates, pools, order) and is in no key, so no failure
 * of it stops a build. */
#pragma once
#include "cache/store.h"

enum history_kind { HISTORY_COMPILE, HISTORY_HEAVY, HISTORY_LINK, HISTORY_KINDS };

/* One output of the build system: an object file, a library, a program. */
struct history_unit {
	const char *path;    /* as ninja names it: "caffe2/CMakeFiles/torch_cpu.dir/a.cpp.o" */
	double seconds;      /* wall time, never that of a compiler cache hit; 0: unknown */
	uint64_t peak_bytes; /* resident memory of its processes together; 0: unknown */
	enum history_kind kind;
	unsigned seen; /* number of the build (1, 2, ...) that had it last; set by history_merge */
};

#define HISTORY_MAX_UNITS 20000 /* those of the latest builds are kept */
#define HISTORY_MAX_PATH 1024   /* longer paths, and those with control bytes, are not kept */

struct history {
	const struct history_unit *units; /* sorted by path (strcmp) */
	size_t count;
	unsigned builds; /* that were merged so far */
};

/* history_load: what is known, in the arena; empty when nothing is, or (with a warning) when the
 * file is damaged. */
const struct history *history_load(struct store *s, const char *package, const char *release, const struct run *run,
				   struct arena *a) __attribute__((returns_nonnull));
/* history_find: the unit of this path, or NULL. */
const struct history_unit *history_find(const struct history *h, const char *path);
/* history_peak: bytes that `percent` (1..100) of the measured units of a kind stayed within; 0 when
 * none was measured. history_measured: how many were. */
uint64_t history_peak(const struct history *h, enum history_kind kind, unsigned percent);
size_t history_measured(const struct history *h, enum history_kind kind);
/* history_merge: adds one build's units, in any order. Seconds become the mean of old and new, of
 * peaks the larger stays, 0 changes nothing. What cannot be kept is left out. ERR_CONFIG for a
 * package or release that cannot be a file name. */
int history_merge(struct store *s, const char *package, const char *release, const struct history_unit *units,
		  size_t count, const struct run *run, struct err *e) MUST_CHECK;

/* history_parse: the text of a history file. ERR_INTEGRITY names `name` and the line. */
int history_parse(const char *text, size_t len, const char *name, struct arena *a, struct history *ret,
		  struct err *e) MUST_CHECK;
