/* The parts of the build step that only build*.c share. */
#pragma once
#include "step/compile/backend.h"
#include "step/compile/build.h"
#include "step/compile/build_log.h"

/* Places below the build directory, none of which is TRUSTED (base/sys/fs.h). */
#define BUILD_LOG "log/build.log"
#define BUILD_TREE "src/build"
#define BUILD_NINJA BUILD_TREE "/build.ninja"
#define BUILD_SHARE BUILD_TREE "/" NINJA_SHARE ".ninja"

/* One command of the build. */
struct build_command {
	const struct build_request *q;
	const struct sandbox *sandbox;
	const char *const *argv;
	const char *step; /* for messages: "configure", "build" */
	const char *log;  /* both streams are appended to it */
	bool *ret_unit;   /* set when one unit failed, as its compiler said; NULL: not asked */
};

struct build_outcome {
	struct proc_result proc; /* when it was not stopped */
	double seconds;
	uint64_t kills; /* processes that the kernel killed for memory meanwhile */
	/* it failed, or was stopped, because memory was short; `why` says what showed that */
	bool short_of_memory;
	char why[640];
};

/* build_command_run: runs it to its end. A non-zero exit is ERR_BUILD with the first error of its
 * output and the log's path; a full disk is ERR_SYSTEM. Short memory is an outcome, not an error.
 * `several`: more than one job may run in it, so lasting memory pressure stops it. */
int build_command_run(const struct build_command *c, bool several, const struct run *run, struct build_outcome *ret,
		      struct err *e) MUST_CHECK;
/* build_too_large: sets `e` for a command that did not get through with one job at a time. */
int build_too_large(const struct build_command *c, const char *why, uint64_t memory, struct err *e);

/* How many jobs of each kind, and what they were computed from. */
struct build_pools {
	struct jobs_memory need;
	struct jobs_pools now;
	uint64_t memory; /* free when it began */
};

/* build_pools_plan: from the machine, the release's table and --jobs. */
void build_pools_plan(const struct build_request *q, struct build_pools *ret);

/* What the next run must know of this one, a small file in the build directory. */
struct build_state {
	char boot[64];      /* which start of the machine it ran in */
	uint64_t oom_kills; /* machine_oom_kills when it began */
	uint64_t memory;    /* free when it began */
	unsigned jobs;      /* at once, last */
	bool lowered;       /* because memory was short */
	bool running;       /* it has not ended yet, or was killed */
};

/* build_state_now: what this machine says; jobs and the rest are 0. */
void build_state_now(struct build_state *ret);
/* build_state_read: false when the file is missing or damaged. */
bool build_state_read(const char *build_dir, struct build_state *ret);
/* build_state_judge: whether this run must begin with fewer jobs (*ret_cap): the last one was
 * killed while the kernel was out of memory, or lowered its jobs with about as much memory as now.
 * */
enum build_state_verdict { BUILD_STATE_FINE, BUILD_STATE_KILLED, BUILD_STATE_LOWERED };
enum build_state_verdict build_state_judge(const struct build_state *last, const struct build_state *now,
					   unsigned *ret_cap);
int build_state_write(const char *build_dir, const struct build_state *s, struct err *e) MUST_CHECK;

/* A running build. */
struct building {
	const struct build_request *q;
	const struct run *run;
	struct arena *arena;
	const struct backend *backend;
	struct sandbox sandbox;
	struct build_pools pools;
	struct build_state state, last; /* of this run and the one before */
	bool has_last;
	bool tight; /* memory ran short, in this run or the last */
	bool unit;  /* a unit failed, as its compiler said */
	struct build_result result;
	double began;
};

/* building_command: one of its commands. */
struct build_command building_command(struct building *b, const char *const *argv, const char *step);
/* building_begin: reads what the last run left, before building_save replaces it. */
void building_begin(struct building *b);
/* building_save: the state file. */
int building_save(struct building *b, bool running, struct err *e) MUST_CHECK;
/* building_compile: plans the jobs and runs the build, with fewer jobs each time memory runs short;
 * each reduction is logged and noted. */
int building_compile(struct building *b, struct err *e) MUST_CHECK;
