/* Verification by use: installs the wheel into a clean environment in the sandbox, imports it and
 * compares operations of each kind with references. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/sandbox.h"

struct verify_run_request {
	const struct plan *plan;
	const struct root *root;
	enum sandbox_kind kind;
	const char *wheel;       /* host path */
	const char *torch_wheel; /* that it is built for; NULL: the root's torch, or it is torch */
	/* host paths of wheels that are unpacked as well, without asking pip; of a file that
	 * several have the first one stays */
	struct strlist beside;
	const char *checks_dir; /* <profiles>/checks */
	const char *venv;       /* of the build, whose packages are seen too; NULL: none */
	const char *work_dir;   /* host directory for the environment; created and removed */
};

struct verify_run_check {
	const char *name;
	const char *detail;
	bool ok;
};

struct verify_run_result {
	bool ran;
	const char *why_not; /* what this machine lacks, if it did not run */
	struct verify_run_check *checks;
	size_t count;
	double seconds;
};

/* verify_run: ERR_POLICY names the first failed check and how many failed, or has Python's words if
 * the import fails. On a machine that cannot run the wheel's code: ran = false, no error. */
int verify_run(const struct verify_run_request *q, const struct run *run, struct arena *a,
	       struct verify_run_result *ret, struct err *e) MUST_CHECK;
/* verify_python: ERR_POLICY where the root's Python is none of those that the wheel's name is for.
 * One that the root does not tell is left to pip. */
int verify_python(const struct root *root, const char *wheel, struct arena *a, struct err *e) MUST_CHECK;
/* verify_environment: only the environment, in work_dir, which stays, and the sandbox that sees it.
 * Only root, kind, wheel (NULL: the root's own packages), torch_wheel, beside and work_dir count,
 * and the toolkit of a plan that is not NULL. */
int verify_environment(const struct verify_run_request *q, const struct run *run, struct arena *a, struct sandbox *ret,
		       struct err *e) MUST_CHECK;
#define VERIFY_PYTHON (SANDBOX_OUT "/venv/bin/python")
/* verify_run_copy: a deep copy in another arena. */
void verify_run_copy(const struct verify_run_result *r, struct arena *a, struct verify_run_result *ret);
