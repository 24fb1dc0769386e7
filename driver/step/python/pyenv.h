/* Python build requirements: from the root where it has them in range, else a locked list with
 * hashes, downloaded in the fetch step and installed offline into a build environment. */
#pragma once
#include "core/plan/plan.h"
#include "core/root/sandbox.h"

struct store;

struct pyenv {
	/* host directory to show at SANDBOX_VENV, NULL: the root's own Python has all that is
	 * needed */
	const char *dir;
	struct strlist have; /* "setuptools 78.1.1 (root)" ... what satisfies each requirement */
	/* digest of the lines of the locked list in use and of the Python they are for, "" for the
	 * root's own */
	char key[65];
};

/* pyenv_check: runs the root's python once in the sandbox and compares each requirement
 * ("setuptools>=62.3,<80") with what is installed there. *missing gets those not satisfied, with
 * what was found. ERR_POLICY if the root has no Python or another than the plan's. */
int pyenv_check(const struct plan *p, const struct root *root, enum sandbox_kind kind, const struct run *run,
		struct arena *a, struct strlist *have, struct strlist *missing, struct err *e) MUST_CHECK;
struct pyenv_request {
	const struct plan *plan;
	const char *profiles_dir;
	const struct root *root;
	enum sandbox_kind kind;
	struct store *store;
	/* <build_dir>/venv is made; NULL: only the download, ret->dir stays NULL */
	const char *build_dir;
	bool offline;
};

/* pyenv_prepare: when something is missing: downloads the lines of the locked list
 * (profiles/requirements/<file>, every line with --hash) whose markers hold for the root's Python
 * into the store (kind STORE_PYENV), wheels only, through the root's pip when the root is the host
 * and else the host's, with --require-hashes; then installs it offline inside the sandbox into
 * <build_dir>/venv, a virtual environment that also sees the root's packages, and checks the
 * requirements there again. Whoever calls holds the build directory's lock. ERR_NETWORK offline
 * without it or when pip fails; ERR_INTEGRITY for other bytes; ERR_CONFIG if the release has no
 * locked list or the list does not bring what is required; ERR_POLICY if the root has no pip, or
 * another Python than the plan's. */
int pyenv_prepare(const struct pyenv_request *q, const struct run *run, struct arena *a, struct pyenv *ret,
		  struct err *e) MUST_CHECK;
