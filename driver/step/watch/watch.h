/* Watch: while a variant is made, once a second, what the processes below this one use: a series
 * for the report, peaks per step, and the memory of each compile unit. */
#pragma once
#include <jansson.h>

#include "core/ninja/ninja.h"
#include "core/root/jobs.h"

struct watch;

struct watch_request {
	/* of the compile key: its file system is watched, and units are named from its src/build */
	const char *build_dir;
	double interval_s; /* 0: one second */
};

/* WATCH_MAX_SAMPLES: a series of this length is halved: two neighbours become one, and each point
 * covers twice the time. */
#define WATCH_MAX_SAMPLES 2048
#define WATCH_MAX_UNITS 20000

/* One point of the series, of an interval that ends at `at`. Memory is the sum of resident sets:
 * shared pages count for each process, since a proportional count costs a walk over page tables. */
struct watch_sample {
	double at;             /* seconds since watch_start */
	double processors;     /* busy, on average */
	uint64_t memory_bytes; /* the largest in the interval */
	unsigned compilers;    /* running units, the most */
	/* the largest share of time (0..100) in which some process of the machine waited for memory
	 * (/proc/pressure, 10 s); 0 if the kernel does not report it */
	double pressure;
};

struct watch_step {
	const char *name;
	double begin, end; /* seconds since watch_start */
	double cpu_seconds;
	uint64_t peak_memory, least_disk_free;
	unsigned peak_processes;
	double peak_pressure;
	uint64_t tree_bytes; /* size of the build directory when the step ended; 0: not measured */
};

/* One compile or link command, named by what it makes (see watch_unit_name). */
struct watch_unit {
	const char *path;
	/* of its processes together: the largest sum of what each had held at most (VmHWM) while
	 * they lived */
	uint64_t peak_bytes;
	double first, last; /* when it was first and last seen, seconds since watch_start */
};

struct watch_now {
	uint64_t memory_bytes, disk_free;
	unsigned processes, compilers; /* compilers: running units */
	double pressure;
};

struct watch_result {
	double started;    /* seconds since the epoch */
	double interval_s; /* of a point of the series */
	struct watch_sample *samples;
	size_t samples_count;
	struct watch_step *steps;
	size_t steps_count;
	struct watch_unit *units; /* sorted by path */
	size_t units_count;
	double own_cpu_seconds; /* what watching cost */
};

/* watch_start: starts a thread that samples this process and all below it. */
int watch_start(const struct watch_request *q, struct watch **ret, struct err *e) MUST_CHECK;
/* watch_begin: a step begins; an open one ends. watch_end: it ends; measure_tree: the size of the
 * build directory is taken (a walk over its files). */
void watch_begin(struct watch *w, const char *step);
void watch_end(struct watch *w, bool measure_tree);
/* watch_now: the latest figures. */
void watch_now(struct watch *w, struct watch_now *ret);
/* A unit that is running. */
struct watch_running {
	const char *path; /* lives as long as the watch */
	double age;       /* seconds since it was first seen */
};

/* watch_running: up to `max` units that were running at the last look. Returns how many. */
size_t watch_running(struct watch *w, struct watch_running *units, size_t max);
/* watch_stop: ends an open step and the thread, and frees the watch; the result (may be NULL) is in
 * the arena. watch_free: watch_stop for a cleanup attribute. */
void watch_stop(struct watch *w, struct arena *a, struct watch_result *ret);
void watch_free(struct watch **w);
#define AUTO_WATCH CLEANUP(watch_free)

/* watch_unit_name: how weights, report and watch name an output, which is as the build or the host
 * sees it from `dir`: relative to the tree's build directory, or else its full path. */
char *watch_unit_name(const char *build_dir, const char *dir, const char *output, struct arena *a);
/* watch_output: what a compiler's or linker's command line (arguments ended by NULs) makes ("-o
 * X"); it points into the command. NULL for other commands. */
const char *watch_output(const char *command, size_t len);

/* The compile and link commands of a build, from the logs of ninja and ccache and from the watch.
 * */

enum report_state {
	REPORT_MADE, /* by a compiler, in this run of ptbuild */
	REPORT_HIT,  /* taken from the compiler cache */
	/* by an earlier run, which was killed or failed; whether it came from the cache is not
	 * known */
	REPORT_BEFORE
};

enum report_kind { REPORT_COMPILE, REPORT_HEAVY, REPORT_LINK };

struct report_unit {
	const char *path;   /* as watch_unit_name */
	const char *source; /* its first input as the build saw it, "" if not known */
	double start, end;  /* seconds since the epoch */
	/* the processor slot that it presumably had: the lowest that was free */
	unsigned slot;
	uint64_t peak_bytes; /* 0: not seen */
	enum report_state state;
	enum report_kind kind;
};

struct report_units {
	struct report_unit *units; /* sorted by start */
	size_t count;
	unsigned slots;
	struct ccache_stats ccache; /* of the last run of the build */
	size_t logs;                /* how many logs of ninja were found */
};

/* report_units_collect: reads ninja's logs anywhere below src/build of the build directory and
 * ccache's in out/. `since`: when this run of ptbuild began (seconds since the epoch); units that
 * started before were made by an earlier one. `heavy`: the release's table of heavy units, may be
 * NULL. A log that cannot be read is a warning. */
void report_units_collect(const char *build_dir, const struct watch_result *watched, double since,
			  const struct memory_row *heavy, const struct run *run, struct arena *a,
			  struct report_units *ret);

/* Report: build.html, a page that shows a build and needs no network and no other file. */

struct report_request {
	const json_t *record; /* build.json */
	const struct report_units *units;
	const struct watch_result *watched;
	const char *wheel; /* the file, for the sizes of its members */
};

/* report_write: the page at `path`, atomically. */
int report_write(const struct report_request *q, const char *path, struct err *e) MUST_CHECK;
/* report_units_json: for build.json: how many units, their times, the slowest and the largest (new
 * reference). */
json_t *report_units_json(const struct report_units *u);
/* report_ccache_json: for build.json: what the compiler cache did (new reference). */
json_t *report_ccache_json(const struct ccache_stats *s, const char *version, const char *mode,
			   const char *sloppiness);

/* report_matrix: what "matrix --status" has, with links to the pages of the variants.
 * report_bench: what "bench" has, with bars of the ratios. */
void report_matrix(const json_t *doc, struct buf *out);
void report_bench(const json_t *doc, struct buf *out);

/* report_sizes: the members of a wheel as a tree of directories (new reference): n name, r bytes, p
 * packed bytes, k files, c children. Files too small to be seen are one child of their directory.
 * */
int report_sizes(const char *wheel, json_t **ret, struct err *e) MUST_CHECK;
