/* Build: runs a package's own build in the sandbox and checks its configuration against the plan.
 * */
#pragma once
#include "base/sys/file_lock.h"
#include "core/ninja/ninja.h"
#include "core/plan/plan.h"
#include "core/root/jobs.h"

/* Asked = got: PyTorch turns features off with no more than a warning, so the configuration is read
 * back and compared with the plan. */

struct config_report {
	size_t entries;  /* cache entries compared */
	size_t commands; /* compile commands looked at */
	size_t host_units, device_units;
	size_t overridden; /* host units that take a CPU flag of the plan back */
	char first_overridden[400];
};

/* All files are below `top`; `log` is the build's, NULL for none. */
/* The configuration of a build that is compared with its plan. Paths are relative to `top`. */
struct config_check {
	const struct plan *plan;
	const char *top;
	const char *log;              /* NULL: none */
	const char *file;             /* of check_config_cache and check_config_commands */
	const char *build;            /* of check_config_tree */
	bool cmake;                   /* it is a build by CMake */
	struct config_report *report; /* which is added to */
};

/* check_config_cache: every setting of plan->cmake against a CMakeCache.txt (booleans by meaning:
 * ON = 1 = TRUE), then against the summary that the configuration printed into the log, if any: it
 * shows what CMake variables became behind the cache's back. ERR_POLICY lists the differences, each
 * with the log line that explains it; ERR_INTEGRITY names the line of a damaged cache. */
int check_config_cache(const struct config_check *k, struct err *e) MUST_CHECK;
/* check_config_commands: checks in a compile_commands.json that every C and C++ command has all the
 * plan's CPU flags, none has -march=native or -mtune=native, and no CUDA command has a CPU flag.
 * ERR_POLICY names the first unit and the count. A flag that a later option overrides (-mno-avx2,
 * another -mcpu=) is counted, and refused if most units have one. */
int check_config_commands(const struct config_check *k, struct err *e) MUST_CHECK;
/* check_config_tree: finds CMakeCache.txt and compile_commands.json below `build` and checks them;
 * for extensions built without CMake, the commands in the log, and the build.ninja that the last of
 * them left. ERR_POLICY if nothing is found, or with `cmake` if one of CMake's two is missing.
 * ERR_BUILD if CMake's own log says that a program was killed. */
int check_config_tree(const struct config_check *k, struct err *e) MUST_CHECK;

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
	const char *ccache_relay_dir;
	const char *ccache_size; /* as ccache writes it ("2048Mi"); NULL: the usual */
	/* host directory that is shown at SANDBOX_TORCH, NULL: the root's torch, or none */
	const char *torch_dir;
	/* host directory that is shown at SANDBOX_VENV, NULL: the root's Python has all */
	const char *venv_dir;
	unsigned jobs;                         /* 0: from processors and memory */
	const struct build_observer *observer; /* NULL: nobody */
	/* seconds of a compiled output by the release's table, the same in every shard (0: not
	 * known); NULL: nothing is known */
	double (*seconds)(const char *output, void *user);
	void *user;
	const struct build_shard *shard; /* NULL: the whole is built */
	/* what `ptbuild shell VARIANT` needs to find this tree ("--cache DIR"); NULL: nothing */
	const char *shell_options;
	const struct run *run; /* where to log, and how the user stops it */
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
	double seconds;  /* elapsed, configuration included */
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
/* build_asks: what the back end of an extension wants besides [build-system] requires (PEP 517) and
 * the environment lacks, as it writes it: its code is run in the sandbox of the build. Empty where
 * that fails. */
int build_asks(const struct build_request *q, const struct run *run, struct arena *a,
	       struct strlist *ret, struct err *e) MUST_CHECK;
/* build_run: configures (where the back end has a run for that; checked at once), builds and
 * checks. A tree that an earlier run left is resumed. When the kernel kills compilers for memory,
 * it goes on with half as many jobs and notes that in the result; ERR_SYSTEM only when one job was
 * too many. ERR_BUILD gives the first error of the log, its unit, the command that repeats it and
 * the log. A shard needs a back end that can be shared out, else ERR_POLICY. */
int build_run(const struct build_request *q, struct arena *a, struct build_result *ret,
	      struct err *e) MUST_CHECK;

/* In the build directory, written last: the source is complete. A marker that cannot be read does
 * not count. */
#define BUILD_SOURCE_OK "src.ok"

/* build_mend: repairs a tree after a kill. All written files are complete except those that
 * distutils keeps outside any log (build/lib.*, bdist.*); these are removed, since a half-copied
 * library would count as complete. After a reboot (another boot id than the last run's) files may
 * be empty or have holes: the marker of complete sources is removed, so that the tree is unpacked
 * again. Logs its actions. */
int build_mend(const char *build_dir, const struct run *run, struct err *e) MUST_CHECK;

/* Build trees that were kept: their variants, and the sandboxes they were built in. */

struct build_tree {
	const char *variant;
	const char *dir; /* <store>/build/<key> */
	const char *key; /* the compile key */
	int64_t used;    /* ns since the epoch: when it was last built in */
};

/* build_tree_save: writes variant and sandbox into the tree `dir`. */
int build_tree_save(const char *dir, const struct plan *p, const struct sandbox *s,
		    struct err *e) MUST_CHECK;
/* build_tree_list: the trees below `builds` (<store>/build) with such a file, the latest first. A
 * missing directory has none. */
int build_tree_list(const char *builds, struct arena *a, struct build_tree **ret, size_t *ret_count,
		    struct err *e) MUST_CHECK;
/* A file in the tree's directory: its sources were changed by hand. It holds a digest of what they
 * are since. */
#define BUILD_TREE_CHANGED "changed"
/* build_tree_enter: runs argv (NULL: a shell) in the tree's sandbox with the caller's terminal and
 * streams, and leaves the mark where sources differ afterwards. A command's status other than 0 is
 * ERR_BUILD; a shell's is ignored. */
int build_tree_enter(const struct build_tree *t, const char *const *argv, const struct run *run,
		     struct err *e) MUST_CHECK;

/* The directory in which a build tree is used. Without a sandbox it is SANDBOX_TOP on this machine
 * (core/root/sandbox.h), which holds one tree at a time; between builds the tree is in the store
 * or, if the store is on another file system, in a waiting directory of SANDBOX_TOP. */

struct work_tree {
	const char *dir;  /* where it is worked in */
	const char *rest; /* its directory after work_tree_give_back */
	const char *home; /* the directory in the store, which stays while it is elsewhere */
	const char *top;  /* the place; NULL: it is worked in where it is */
	bool apart;       /* on another file system than the home */
	struct lock lock; /* of the place */
};

#define WORK_TREE_NONE ((struct work_tree){.lock = LOCK_NONE})
#define AUTO_WORK_TREE CLEANUP(work_tree_release)

/* work_tree_take: the tree of `home` into the place `top` (NULL: it is worked in at home). Waits
 * for who works there, as lock_acquire. A tree that a killed build left there goes to where it
 * rests; of a home that is gone it is removed. The caller holds the tree's own lock. ERR_POLICY:
 * the place cannot be had. */
int work_tree_take(const char *top, const char *home, const struct run *run, struct arena *a,
		   struct work_tree *ret, struct err *e) MUST_CHECK;
/* work_tree_give_back: moves the tree to w->rest and releases `top`. work_tree_remove: removes the
 * tree and its home instead. After either nothing is held, whatever was returned; the next user of
 * `top` moves what could not be moved. */
int work_tree_give_back(struct work_tree *w, struct err *e) MUST_CHECK;
int work_tree_remove(struct work_tree *w, struct err *e) MUST_CHECK;
/* work_tree_release: gives up the place as it is, as a kill does. */
void work_tree_release(struct work_tree *w);
/* work_tree_settle: moves a killed build's tree from `top` to its rest, unless another process uses
 * it. Leaves a failure to the next user of `top`. */
void work_tree_settle(const char *top, const struct run *run);
