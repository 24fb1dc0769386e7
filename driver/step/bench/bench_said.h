/* What a process of workloads printed: lines {"bench": KIND, ...}, as
 * profiles/bench/run_workloads.py says. Code of a wheel runs in it, so they may be anything. */
#pragma once
#include "base/strlist.h"

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
	struct strlist names; /* of all workloads that there are, likewise */
	const char *open;     /* began, and has no answer; NULL */
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
