/* The parts of the build step that only build*.c share. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/toolkit.h"
#include "step/compile/build.h"

/* Backends: how each package's own build is driven. PyTorch's changed twice; torchvision and
 * torchaudio have their own. */

struct backend {
	const char *name;
	/* argv of a separate configuration run, NULL when the build does it by itself */
	const char *const *configure;
	const char *const *build; /* argv that leaves one wheel in SANDBOX_OUT */
	/* configures with CMake: the generated cache file is given, CMakeCache.txt and
	 * compile_commands.json are checked */
	bool cmake;
};

/* backend_find: ERR_CONFIG for a name that no backend has. */
int backend_find(const char *name, const struct backend **ret, struct err *e) MUST_CHECK;

/* backend_shares: whether a build can be divided into shards: it is configured before it compiles,
 * so that the compilations are known; else ERR_POLICY. */
int backend_shares(const struct backend *b, const char *package, struct err *e) MUST_CHECK;

/* BACKEND_RPATH: the DT_RPATH every library is linked with: a placeholder that relocation
 * overwrites with the final list. No '$', so that no shell or generator has to quote it. */
extern const char BACKEND_RPATH[];

/* BACKEND_MASQUERADE: a directory inside the sandbox that holds the compilers' names as links to
 * the compiler cache. */
#define BACKEND_MASQUERADE SANDBOX_CFG "/ccache"

/* BACKEND_CCACHE_REMOTE: where the socket of the compiler cache's remote storage ("s") is inside
 * the sandbox. */
#define BACKEND_CCACHE_REMOTE SANDBOX_TOP "/remote"

/* BACKEND_NVCC_LAUNCHER: the script inside the sandbox by which nvcc is run when there is a
 * compiler cache. */
#define BACKEND_NVCC_LAUNCHER SANDBOX_CFG "/ccache-nvcc"

/* BACKEND_HEAP: the script inside the sandbox by which the compiler cache runs a compiler if there
 * is memory to spare. BACKEND_HEAP_BYTES: what a compiler may then need more. */
#define BACKEND_HEAP SANDBOX_CFG "/ccache-heap"
#define BACKEND_HEAP_BYTES (UINT64_C(1) << 30)

/* BACKEND_MODULES: a directory inside the sandbox, on Python's path where setuptools builds, with a
 * package whose entry point setuptools calls: the units of all extension modules of a package are
 * compiled at once. */
#define BACKEND_MODULES SANDBOX_CFG "/modules"

/* The files ptbuild_modules.py, build_requires.py, nvcc_by_ccache.sh and larger_heap.sh beside this
 * one. */
extern const unsigned char modules_program[], requires_program[], nvcc_by_ccache_script[],
	larger_heap_script[];
extern const size_t modules_program_size, requires_program_size, nvcc_by_ccache_script_size,
	larger_heap_script_size;

struct backend_options {
	unsigned jobs;
	const char *linker;      /* for -fuse-ld; NULL: the compiler's own */
	const char *ccache;      /* path of ccache in the root; NULL: none */
	const char *ccache_size; /* "2048Mi"; NULL: the usual */
	/* directory inside the sandbox that has the torch to build against (before the root's own);
	 * NULL: the root's */
	const char *torch;
	const char *venv; /* build environment inside the sandbox; NULL: the root's own Python */
};

/* backend_linker: the linker that the plan names in PTBUILD_LINKER, if the root has it and its
 * compiler knows it; else NULL. */
const char *backend_linker(const struct plan *p, const struct toolchain *t);
/* backend_env: the plan's environment, with what does not change bytes (jobs, compiler cache, the
 * RPATH placeholder) and where things are. */
void backend_env(const struct plan *p, const struct backend *b, const struct backend_options *o,
		 struct arena *a, struct kvlist *ret);
/* backend_nvcc_launcher: the text of a script that runs nvcc by way of `ccache` (a path), but for
 * the two cases in which ccache returns another compilation's object (-dc after -c; code under
 * #ifndef __CUDA_ARCH__ in its preprocessor mode). */
char *backend_nvcc_launcher(const struct plan *p, const char *ccache, struct arena *a);
/* backend_heap: the text of BACKEND_HEAP: GCC collects garbage from BACKEND_HEAP_BYTES on. The
 * compiler cache's key does not have it, so where GCC would write its options into what it makes
 * (debug information, link-time optimisation) it runs as it is. */
char *backend_heap(struct arena *a);
/* backend_cache_file: the text of the file that CMake reads as its toolchain file: the plan's cache
 * entries and the prefix map, which is a compile option and not a flag so that torch.__config__
 * does not print it. */
char *backend_cache_file(const struct plan *p, struct arena *a);

/* Build logs: finds what went wrong in the output of compilers, linkers, CMake and ninja. */

struct build_log {
	/* the first line that says what went wrong, of the first unit that failed if there is one;
	 * cut at 500 bytes; "" for an empty log */
	const char *error;
	const char *unit; /* the first output that ninja says has failed, NULL */
	/* the first line that says that memory ran out or a compiler was killed, NULL */
	const char *killed;
};

/* build_log_killed: the first line that says that a signal ended a program, in any of the logs that
 * CMake keeps of its checks too; NULL. */
const char *build_log_killed(const char *text, struct arena *a);
/* build_log_read: reads the output of one command (pure); `text` ends with a NUL at text[len]. */
void build_log_read(const char *text, size_t len, struct arena *a, struct build_log *ret);

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
int build_command_run(const struct build_command *c, bool several, const struct run *run,
		      struct build_outcome *ret, struct err *e) MUST_CHECK;
/* build_too_large: sets `e` for a command that did not get through with one job at a time. */
int build_too_large(const struct build_command *c, const char *why, uint64_t memory, struct err *e);

/* How many jobs of each kind, and what they were computed from. */
struct build_pools {
	struct jobs_memory need;
	struct jobs_pools now;
	uint64_t memory; /* free when it began */
};

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
enum build_state_verdict build_state_judge(const struct build_state *last,
					   const struct build_state *now, unsigned *ret_cap);
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
struct build_command building_command(struct building *b, const char *const *argv,
				      const char *step);
/* building_save: the state file. */
int building_save(struct building *b, bool running, struct err *e) MUST_CHECK;
/* building_compile: plans the jobs and runs the build, with fewer jobs each time memory runs short;
 * each reduction is logged and noted. */
int building_compile(struct building *b, struct err *e) MUST_CHECK;
