/* Python build requirements: from the root where it has them in range, else a locked list with hashes, downloaded in the fetch step and installed offline into a build environment. */
#pragma once
#include "core/plan.h"
#include "core/sandbox.h"

struct store;

struct pyenv {
	const char *dir;     /* host directory to show at SANDBOX_VENV, NULL: the root's own Python has all that is needed */
	struct strlist have; /* "setuptools 78.1.1 (root)" ... what satisfies each requirement */
	char key[65];        /* digest of the locked list in use, "" for the root's own */
};

/* pyenv_check: runs the root's python once in the sandbox and compares each requirement ("setuptools>=62.3,<80") with what is installed there. *missing gets those not satisfied, with what was found. */
int pyenv_check(const struct plan *p, const struct root *root, enum sandbox_kind kind, const struct run *run, struct arena *a,
		struct strlist *have, struct strlist *missing, struct err *e) MUST_CHECK;
/* pyenv_prepare: when something is missing: downloads the locked list (profiles/requirements/<file>, every line with --hash) through the root's or host's pip with --require-hashes into the store (kind STORE_PYENV), then
 * installs it offline inside the sandbox into <build_dir>/venv, a virtual environment that also sees the root's packages. ERR_NETWORK offline without it; ERR_CONFIG if the release has no locked list. */
int pyenv_prepare(const struct plan *p, const char *profiles_dir, const struct root *root, enum sandbox_kind kind, struct store *store,
		  const char *build_dir, bool offline, const struct run *run, struct arena *a, struct pyenv *ret, struct err *e) MUST_CHECK;
