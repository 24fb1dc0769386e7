/* Preflight: what a build needs of the machine and its root, looked for before anything long. The
 * same checks for build and doctor. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/toolchain.h"

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

struct preflight_request {
	const struct tables *tables;
	const struct release_row *release;
	const struct plan *plan; /* NULL: what every build of the release needs */
	const struct root *root;
	/* of a world that is not made yet, what to say of it: `root` is then the machine's, where
	 * only the sandbox is tried; NULL: the root is there */
	const char *world;
	uint64_t world_bytes; /* that making it takes on disk */
	enum sandbox_kind kind;
	const struct toolchain *toolchain; /* NULL: it is probed */
	const struct toolkits *toolkits;   /* NULL: they are looked for when the plan needs one */
	const char *cuda_home;
	const char *store_dir, *out_dir; /* need not exist yet; out_dir NULL: nothing goes there */
	const char *build_dir;           /* of an earlier run, whose size counts; NULL: none */
	unsigned jobs;
	bool offline; /* nothing is fetched; without a sandbox the network is looked at */
	bool whole;   /* doctor: goes on after failures */
	/* gives the normalised names of the Python distributions that the build installs for
	 * itself; asked where the root's Python lacks a module. NULL: none */
	int (*installs)(void *user, struct strlist *ret, struct err *e);
	void *user;
	bool tried; /* the compilers were tried before, on the same of everything */
};

struct preflight {
	const struct preflight_request *q;
	const struct run *run;
	struct arena *arena;
	const struct toolchain *toolchain; /* NULL: it could not be probed */
	const struct toolkit *toolkit;     /* of the plan's CUDA; NULL: absent, or not needed */
	bool foreign;                      /* another platform: nothing more was looked at */
	struct preflight_line lines[128];
	size_t count;
};

/* preflight_run: adds a line for each check; -1 only when interrupted. */
int preflight_run(struct preflight *d, const struct preflight_request *q, const struct run *run, struct arena *a,
		  struct err *e) MUST_CHECK;
/* preflight_verdict: 0 if nothing failed. Else all failures as one error, of kind ERR_SYSTEM if
 * anything is missing; the hint is what installs it. */
int preflight_verdict(const struct preflight *d, struct err *e) MUST_CHECK;
/* preflight_fail_err: a failure with the texts of an error; -1 only for an interruption, put into
 * `e`. */
int preflight_fail_err(struct preflight *d, const char *name, const struct err *why, struct err *e) MUST_CHECK;
/* preflight_add, by one of its three short forms: adds a line. preflight_fix: what to do about the
 * last. preflight_install: the Debian package that brings what the last one lacks.
 * preflight_fix_world: the last one's way out is a change of the root; in a world of the store,
 * which is never changed, it is root_world_fix. */
void preflight_add(struct preflight *d, enum preflight_level level, enum err_kind kind, const char *name,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define preflight_ok(d, ...) preflight_add(d, PREFLIGHT_OK, ERR_NONE, __VA_ARGS__)
#define preflight_warn(d, ...) preflight_add(d, PREFLIGHT_WARNING, ERR_NONE, __VA_ARGS__)
#define preflight_fail(d, kind, ...) preflight_add(d, PREFLIGHT_FAILURE, kind, __VA_ARGS__)
void preflight_fix(struct preflight *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void preflight_install(struct preflight *d, const char *package, bool on_host);
void preflight_fix_world(struct preflight *d);
