/* Build: runs a package's own build in the sandbox and checks its configuration against the plan.
 * */
#pragma once
#include "core/ninja/ninja.h"
#include "core/root/jobs.h"
#include "step/compile/check_config.h"

/* Gets the events of a build, in the caller's thread. Functions may be NULL. */
struct build_observer {
	/* a command starts: "prepare (...)", "configure", "build" */
	void (*begin)(const char *command, void *user);
	/* each line of its output, as proc_run gives it */
	proc_line_fn line;
	void (*tick)(void *user); /* about once a second while it runs */
	void (*end)(void *user);  /* it has ended, or could not be run */
	/* of a shard: what its "build" will compile, as build.ninja names it */
	void (*share)(const struct strlist *outputs, void *user);
	void *user;
};

/* One of several builds of the same plan, each of which compiles a part into the compiler cache. */
struct build_shard {
	unsigned index, count; /* this one (from 1) of so many */
};

struct build_request {
	const struct plan *plan;
	const struct root *root;
	enum sandbox_kind kind;
	const struct toolchain *toolchain;
	/* host directory of this compile key; its src/ holds the patched tree */
	const char *build_dir;
	/* where people find it after the build; NULL: there */
	const char *rest_dir;
	const char *ccache_dir; /* host directory of the compiler cache */
	/* host directory with the socket of the compiler cache's remote storage; NULL: none */
	const char *ccache_remote_dir;
	const char *ccache_size; /* as ccache writes it ("2048Mi"); NULL: the usual */
	/* host directory that is shown at SANDBOX_TORCH, NULL: the root's torch, or none */
	const char *torch_dir;
	/* host directory that is shown at SANDBOX_VENV, NULL: the root's Python has all */
	const char *venv_dir;
	unsigned jobs;                         /* 0: from processors and memory */
	const struct build_observer *observer; /* NULL: nobody */
	/* what a compiled output takes by the release's table, the same in every shard (0: not
	 * known); NULL: nothing is known */
	double (*seconds)(const char *output, void *user);
	void *user;
	const struct build_shard *shard; /* NULL: the whole is built */
	/* what `ptbuild shell VARIANT` needs to find this tree ("--cache DIR"); NULL: nothing */
	const char *shell_options;
};

/* Memory ran short and the number of jobs was lowered. */
struct build_reduction {
	const char *at; /* "2026-01-31T12:00:00Z" */
	double after;   /* seconds since the build step began */
	unsigned from, to;
	const char *why;
};

struct build_result {
	/* host path of the wheel that the package's build left; NULL of a shard */
	const char *raw_wheel;
	const char *log; /* host path */
	double seconds;  /* wall, configuration included */
	unsigned jobs;   /* at the end */
	struct jobs_pools pools;
	uint64_t memory; /* bytes free when it began */
	struct build_reduction *reductions;
	size_t reductions_count;
	bool resumed;                 /* the tree had been configured before */
	struct config_report checked; /* the configuration */
	struct ninja_share share;     /* of a shard */
};

/* build_prepare: runs the plan's prepare commands in the patched tree. ERR_BUILD names the command
 * and shows its last output. */
int build_prepare(const struct build_request *q, const struct run *run, struct err *e) MUST_CHECK;
/* build_run: configures (where the back end has a run for that; checked at once), builds and
 * checks. A tree that an earlier run left is resumed. When the kernel kills compilers for memory,
 * it goes on with half as many jobs and notes that in the result; ERR_SYSTEM only when one job was
 * too many. ERR_BUILD gives the first error of the log, its unit, the command that repeats it and
 * the log. A shard needs a back end that can be shared out, else ERR_POLICY. */
int build_run(const struct build_request *q, const struct run *run, struct arena *a, struct build_result *ret,
	      struct err *e) MUST_CHECK;

/* In the build directory, written last: the source is whole. A marker that cannot be seen is
 * none. */
#define BUILD_SOURCE_OK "src.ok"

/* build_mend: after a kill all that was written is there, but what distutils keeps outside any log
 * (build/lib.*, bdist.*) is removed, since a half-copied library there would pass for a whole one.
 * After a reboot (another boot id than the last run's) files may be empty or have holes: the mark
 * of whole sources is removed, so that the tree is made anew. It logs what it does. */
int build_mend(const char *build_dir, const struct run *run, struct err *e) MUST_CHECK;
