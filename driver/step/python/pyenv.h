/* Python build requirements: the root's own where they are in range, else those of a locked list,
 * downloaded in the fetch step and installed offline into a build environment. */
#pragma once
#include "core/plan/plan.h"

struct store;

struct pyenv {
	const char *dir;     /* host directory to show at SANDBOX_VENV; NULL: the root suffices */
	struct strlist have; /* what satisfies each requirement: "setuptools 78.1.1 (root)" */
	char key[65];        /* digest of the locked lines and their Python; "": the root's */
};

/* pyenv_check: compares each requirement ("setuptools>=62.3,<80") with what the root's Python has;
 * *missing: those not satisfied, with what was found. ERR_POLICY if the root has no Python or
 * another than the plan's. */
int pyenv_check(const struct plan *p, const struct root *root, enum sandbox_kind kind, const struct run *run,
		struct arena *a, struct strlist *have, struct strlist *missing, struct err *e) MUST_CHECK;
struct pyenv_request {
	const struct plan *plan;
	const char *profiles_dir;
	const struct root *root;
	enum sandbox_kind kind;
	struct store *store;
	const char *build_dir; /* <build_dir>/venv is made; NULL: download only */
	bool offline;
};

/* pyenv_installs: the normalised names of what pyenv_prepare would install; none where the root
 * suffices. Errors of pyenv_check, and ERR_CONFIG for the list. */
int pyenv_installs(const struct pyenv_request *q, const struct run *run, struct arena *a, struct strlist *ret,
		   struct err *e) MUST_CHECK;

/* pyenv_prepare: when something is missing, downloads the lines of the locked list
 * (profiles/requirements/<file>) whose markers hold for the root's Python into the store as wheels,
 * installs them offline in the sandbox into <build_dir>/venv, which also sees the root's packages,
 * and checks the requirements there again. The caller holds the build directory's lock. ERR_NETWORK
 * offline or when pip fails, ERR_INTEGRITY for other bytes, ERR_CONFIG without a locked list or
 * when the list is not enough, ERR_POLICY if the root lacks pip or the plan's Python. */
int pyenv_prepare(const struct pyenv_request *q, const struct run *run, struct arena *a, struct pyenv *ret,
		  struct err *e) MUST_CHECK;
