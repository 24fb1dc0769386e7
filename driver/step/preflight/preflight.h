/* Preflight: what a build needs, in one table that all commands ask. Its first stage, what words
 * and tables alone decide, is plan_resolve, which makes the plan that is asked about. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/toolkit.h"

struct world; /* core/world/world.h */

/* In this order; a failure of one stage ends a build before the next. */
enum preflight_stage {
	PREFLIGHT_TABLES = 1,  /* of plan and world */
	PREFLIGHT_MACHINE = 2, /* sandbox, disk, memory, programs */
	PREFLIGHT_NETWORK = 4, /* the places of what is to be downloaded */
	PREFLIGHT_ROOT = 8,    /* tools, headers, Python, toolkit; a small build */
};

enum preflight_level { PREFLIGHT_OK, PREFLIGHT_WARNING, PREFLIGHT_FAILURE };

struct preflight_line {
	enum preflight_level level;
	enum err_kind kind; /* of a failure: ERR_SYSTEM is missing, ERR_POLICY does not fit */
	const char *name;
	const char *text;
	const char *fix;     /* "" if there is nothing to do */
	const char *package; /* of Debian, that brings it; "" none known */
	bool on_host;        /* where it is to be installed: on this machine, or in the root */
};

struct preflight;

struct preflight_request {
	unsigned stages;
	const struct tables *tables;
	const struct release_row *release; /* NULL: a world alone is made */
	const struct plan *plan;           /* NULL: what every build of the release needs */
	/* of a world that is not made yet: this machine's, where only the sandbox is tried */
	const struct root *root;
	const struct world *world; /* of the build; NULL: none */
	/* what to say of a world that is not made yet; NULL: the root is there */
	const char *not_made;
	uint64_t world_bytes; /* disk space for creating it */
	enum sandbox_kind kind;
	const struct toolchain *toolchain; /* NULL: it is probed */
	const struct toolkits *toolkits;   /* NULL: they are looked for when the plan needs one */
	const char *cuda_home;
	const char *store_dir, *out_dir; /* need not exist yet; out_dir NULL: nothing goes there */
	const char *build_dir;           /* of an earlier run, whose size counts; NULL: none */
	unsigned jobs;
	bool offline; /* nothing is fetched; without a sandbox the network is looked at */
	bool whole;   /* doctor: goes on after failures */
	bool tried;   /* the trial passed before, on the same of everything */
	/* What only other steps know; NULL: not asked. installs: the normalised names of the Python
	 * distributions that the build installs for itself. reach: adds a line about the places of
	 * what is to be downloaded. trial: adds one about a small build. */
	int (*installs)(void *user, struct preflight *d, struct strlist *ret, struct err *e);
	int (*reach)(void *user, struct preflight *d, struct err *e);
	int (*trial)(void *user, struct preflight *d, struct err *e);
	void *user;
};

struct preflight {
	const struct preflight_request *q;
	const struct run *run;
	struct arena *arena;
	const struct toolchain *toolchain; /* NULL: it could not be probed */
	const struct toolkit *toolkit;     /* of the plan's CUDA; NULL: absent, or not needed */
	bool stop;                         /* another platform: what follows is of no use */
	bool emulated;                     /* the plan is for another platform, run here */
	bool no_root;                      /* no sandbox shows it */
	struct preflight_line lines[128];
	size_t count;
};

/* preflight_run: the rows of the stages, each with its lines; -1 only when interrupted. */
int preflight_run(struct preflight *d, const struct preflight_request *q, const struct run *run,
		  struct arena *a, struct err *e) MUST_CHECK;
/* preflight_check: one row of the table by its name, of a preflight that was begun. */
int preflight_check(struct preflight *d, const char *row, struct err *e) MUST_CHECK;
/* preflight_verdict: 0 if nothing failed. Else all failures as one error, as far as it has room:
 * ERR_CONFIG if a table knows too little, else ERR_SYSTEM if anything is missing; the hint is what
 * installs it. */
int preflight_verdict(const struct preflight *d, struct err *e) MUST_CHECK;
size_t preflight_failures(const struct preflight *d);

/* preflight_add, by its short forms: adds a line; `fix` is what to do ("": nothing). A line of
 * preflight_install is fixed by a Debian package ("": unknown), of this machine or of the root. */
void preflight_add(struct preflight *d, struct preflight_line line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define PREFLIGHT_LINE(l, k, n, f)                                                                 \
	((struct preflight_line){.level = (l), .kind = (k), .name = (n), .fix = (f)})
#define preflight_ok(d, name, ...)                                                                 \
	preflight_add(d, PREFLIGHT_LINE(PREFLIGHT_OK, ERR_NONE, name, ""), __VA_ARGS__)
#define preflight_warn(d, name, fix, ...)                                                          \
	preflight_add(d, PREFLIGHT_LINE(PREFLIGHT_WARNING, ERR_NONE, name, fix), __VA_ARGS__)
#define preflight_fail(d, kind, name, fix, ...)                                                    \
	preflight_add(d, PREFLIGHT_LINE(PREFLIGHT_FAILURE, kind, name, fix), __VA_ARGS__)
#define preflight_install(d, what, deb, host, ...)                                                 \
	preflight_add(d,                                                                           \
		      (struct preflight_line){.level = PREFLIGHT_FAILURE,                          \
					      .kind = ERR_SYSTEM,                                  \
					      .name = (what),                                      \
					      .package = (deb),                                    \
					      .on_host = (host)},                                  \
		      __VA_ARGS__)
/* preflight_err: a failure with the texts of an error; -1 only for an interruption, put into `e`.
 * preflight_fix_world: the last one's way out is a change of the root; in a world of the store,
 * which is never changed, it is root_world_fix. */
int preflight_err(struct preflight *d, const char *name, const struct err *why,
		  struct err *e) MUST_CHECK;
void preflight_fix_world(struct preflight *d);

/* preflight_build_bytes: returns the disk space for a build of a package, without its world. */
double preflight_build_bytes(const struct release_row *r, const char *package)
	__attribute__((pure));

/* preflight_data_files: compares the data files of an installation, share/ptbuild, with the list
 * that was made with it; files beyond the list are allowed. ERR_INTEGRITY names what is missing or
 * changed. *ret_count: how many the list has. */
int preflight_data_files(const char *dir, struct arena *a, size_t *ret_count,
			 struct err *e) MUST_CHECK;

/* The tests of the table's rows: each adds lines, and gives -1 only when interrupted. */
typedef int preflight_test(struct preflight *d, struct err *e);

preflight_test preflight_platform, preflight_sandbox, preflight_emulation, preflight_cpu,
	preflight_torch_fits, preflight_places, preflight_memory,
	preflight_decoder; /* the machine */
preflight_test preflight_tools, preflight_python, preflight_flags, preflight_blas, preflight_torch,
	preflight_cuda; /* the root */
/* Those of needs.yaml that are found without running anything: programs of this machine, programs
 * and headers of the root. */
preflight_test preflight_programs, preflight_files;
