/* Verify by use: installs the wheel into a clean environment inside the sandbox, imports it there
 * and runs an operation of each kind against references. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/sandbox.h"

struct verify_run_request {
	const struct plan *plan;
	const struct root *root;
	enum sandbox_kind kind;
	const char *wheel; /* host path */
	/* host path of the torch wheel it goes with, NULL: the root's torch, or the wheel is torch
	 * itself */
	const char *torch_wheel;
	/* <profiles>/checks: check_<distribution>.py and check_common.py */
	const char *checks_dir;
	/* host directory for the environment; created, removed afterwards */
	const char *work_dir;
};

struct verify_run_check {
	const char *name;
	const char *detail;
	bool ok;
};

struct verify_run_result {
	bool ran;
	const char *why_not; /* when it could not run here: what this machine lacks */
	struct verify_run_check *checks;
	size_t count;
	double seconds;
};

/* verify_run: ERR_POLICY names the first failed check and how many failed, or says what Python said
 * when the import itself fails. A machine that lacks the wheel's instructions or is of another
 * platform cannot run it: ran = false, no error. */
int verify_run(const struct verify_run_request *q, const struct run *run, struct arena *a,
	       struct verify_run_result *ret, struct err *e) MUST_CHECK;
/* verify_run_copy: all of it in another arena. */
void verify_run_copy(const struct verify_run_result *r, struct arena *a, struct verify_run_result *ret);
