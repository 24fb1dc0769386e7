/* Build: runs a package's own build in the sandbox and checks that the configuration is what was asked. */
#pragma once
#include "base/proc.h"
#include "core/toolchain.h"
#include "step/asked.h"

/* Who is told how a build goes, in the caller's thread. Functions may be NULL. */
struct build_observer {
	void (*begin)(const char *command, void *user); /* a command starts: "prepare (...)", "configure", "build" */
	proc_line_fn line;                              /* each line that it says, as proc_run gives it */
	void (*tick)(void *user);                       /* about once a second while it runs */
	void (*end)(void *user);                        /* it has ended, or could not be run */
	void *user;
};

struct build_request {
	const struct plan *plan;
	const struct root *root;
	enum sandbox_kind kind;
	const struct toolchain *toolchain;
	const char *build_dir;                 /* host directory of this compile key; its src/ holds the patched tree */
	const char *ccache_dir;                /* host directory of the compiler cache */
	const char *torch_dir;                 /* host directory that is shown at SANDBOX_TORCH, NULL: the root's torch, or none */
	const char *venv_dir;                  /* host directory that is shown at SANDBOX_VENV, NULL: the root's Python has all */
	unsigned jobs;                         /* 0: from processors and memory */
	const struct build_observer *observer; /* NULL: nobody */
};

struct build_result {
	const char *raw_wheel; /* host path of the wheel that the package's build left */
	const char *log;       /* host path */
	double seconds;        /* wall, configuration included */
	unsigned jobs;
	bool resumed; /* the tree had been configured before */
	unsigned cache_hits, cache_misses;
	struct asked_report asked;
};

/* build_jobs: how many compilers at once: the processors, but no more than memory has room for (BUILD_JOB_BYTES each), at least 1. */
#define BUILD_JOB_BYTES (UINT64_C(1536) << 20)
unsigned build_jobs(unsigned processors, uint64_t memory);
/* build_prepare: the plan's prepare commands in the patched tree. ERR_BUILD names the command and shows its last words. */
int build_prepare(const struct build_request *q, const struct run *run, struct err *e) MUST_CHECK;
/* build_run: configuration (where the back end has one of its own; checked at once), build, check. A tree that an earlier run left goes on where it was. ERR_BUILD gives the first error of the log and where the log is. */
int build_run(const struct build_request *q, const struct run *run, struct arena *a, struct build_result *ret, struct err *e) MUST_CHECK;
