/* Bench: the same workloads with the torch of two environments, in pairs of runs, each a fresh
 * process in the sandbox. */
#pragma once
#include "base/show.h"
#include "core/root/sandbox.h"

/* What a process of workloads printed: lines {"bench": KIND, ...}, as
 * profiles/bench/run_workloads.py says. Code of a wheel runs in it, so they may be anything. */

enum {
	BENCH_NAME_MAX = 64,      /* characters of a name */
	BENCH_WORKLOADS_MAX = 512 /* of a process */
};

struct bench_answer {
	const char *name;
	const char *why; /* it has no value: what failed, or why it was skipped; NULL */
	bool skipped;
	double value; /* above 0 */
	const char *unit;
	bool in_mean;
	bool has_sums; /* its result: two numbers, and how far they may differ by */
	double sums[2], tolerance;
};

struct bench_said {
	struct arena *arena;
	const char *torch, *cpu; /* of the line "about"; NULL without one */
	bool cuda;
	const char *open; /* began, and has no answer; NULL */
	bool done;
	struct bench_answer *answers;
	size_t count, cap;
	size_t lines;
	const char *wrong; /* the first line that cannot be right, and what is wrong; NULL */
	char words[1024];  /* the end of all else that was printed */
	size_t words_len;
};

/* bench_said_line: one line, of any bytes. After a wrong one nothing more is taken. */
void bench_said_line(struct bench_said *s, const char *line, size_t len);
/* bench_said_close: the workload that has no answer gets this reason for having none. */
void bench_said_close(struct bench_said *s, const char *why);
/* bench_said_find: its answer; NULL. */
const struct bench_answer *bench_said_find(const struct bench_said *s, const char *name);

enum bench_side { BENCH_OURS, BENCH_OTHER, BENCH_SIDES };

struct bench_request {
	const struct sandbox *sandboxes[BENCH_SIDES]; /* that each torch is installed in */
	const char *python;                           /* of the environments, as a path inside */
	const char *scripts_dir;                      /* <profiles>/bench */
	const unsigned *threads;                      /* how many, one set of runs for each */
	size_t threads_count;
	/* to pin to, the first ones first, as many as the most threads; NULL: nothing is pinned */
	const unsigned *processors;
	unsigned pairs;
	double seconds;                 /* that a workload is measured for in a run */
	double limit;                   /* that it may take; its process is then ended */
	struct strlist only;            /* names; none: all */
	const char *device;             /* "cpu" or "cuda" */
	const char *names[BENCH_SIDES]; /* of the wheels' files, for who reads of it */
};

struct bench_result {
	const char *torch[BENCH_SIDES], *cpu[BENCH_SIDES]; /* its version; the code that it chose */
	/* for each number of threads; bench_json then owns it */
	json_t *sets;
	double load;    /* the highest average of the machine while it ran; -1: unknown */
	bool disturbed; /* more ran than these runs */
};

/* bench_other_first: whether the pair (from 0) begins with the other side: every second one. */
bool bench_other_first(unsigned pair);
/* bench_judge: turns the results of runs (`pairs` times both sides, ours first) into medians,
 * ratios and the mean, in the document's form; a new reference. A pair in which a side has no value
 * counts for no ratio; a workload that failed in any run is not compared. Names the five lowest
 * ratios below 1. */
json_t *bench_judge(const struct bench_said *const *runs, unsigned pairs, unsigned threads, const unsigned *processors,
		    struct arena *a);
/* bench_choose: `only` has fnmatch patterns, and then which of the names they mean. ERR_USAGE for
 * one that means none. */
int bench_choose(struct bench_request *q, const struct strlist *names, struct arena *a, struct err *e) MUST_CHECK;
/* bench_run: ERR_POLICY with the last words of a
 * torch that does not import, or has no such device. What a workload does is in the result. */
int bench_run(const struct bench_request *q, const struct run *run, struct arena *a, struct bench_result *ret,
	      struct err *e) MUST_CHECK;

/* The arithmetic of a comparison. */
/* bench_median: of an even number the mean of the two in the middle; 0 without values, which stay
 * in their order. */
double bench_median(const double *values, size_t count);
/* bench_spread: (most - least) / median; 0 for fewer than two. */
double bench_spread(const double *values, size_t count);
/* bench_geometric_mean: of values above 0; 0 without any. */
double bench_geometric_mean(const double *values, size_t count);
/* bench_same: whether two results are one: each of the two sums differs by at most the part
 * `tolerance` of the larger first one, which is that of the magnitudes. */
bool bench_same(const double a[2], const double b[2], double tolerance);

/* bench_json: the document, a new reference. bench_rows show it: a table for each number of
 * threads. */
json_t *bench_json(const struct bench_request *q, const struct bench_result *r);
extern const struct show bench_rows[];
