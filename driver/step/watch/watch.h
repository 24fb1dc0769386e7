/* Watch: while a variant is made, once a second, what the processes below this one use: a series
 * for the report, peaks per step, and the memory of each compile unit. */
#pragma once
#include "base/arena.h"
#include "base/err.h"

struct watch;

struct watch_request {
	/* of the compile key: its file system is watched, and units are named from its src/build */
	const char *build_dir;
	double interval_s; /* 0: one second */
};

/* WATCH_MAX_SAMPLES: a series of this length is halved: two neighbours become one, and each point
 * stands for twice the time. */
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
	 * (/proc/pressure, 10 s); 0 when the kernel does not tell */
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
/* watch_stop: ends an open step and the thread, and frees the watch; the result (may be NULL) lives
 * in the arena. watch_free: the same for a cleanup attribute. */
void watch_stop(struct watch *w, struct arena *a, struct watch_result *ret);
void watch_free(struct watch **w);
#define AUTO_WATCH CLEANUP(watch_free)

/* watch_unit_name: how weights, report and watch name an output, which is as the build or the host
 * sees it from `dir`: relative to the tree's build directory, or else its full path. */
char *watch_unit_name(const char *build_dir, const char *dir, const char *output, struct arena *a);
/* watch_output: what a compiler's or linker's command line (arguments ended by NULs) makes ("-o
 * X"); NULL for other commands. */
const char *watch_output(const char *command, size_t len);
