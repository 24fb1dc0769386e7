/* Python build requirements: the root's own where they are in range, else those of a locked list,
 * downloaded in the fetch step and installed offline into a build environment. */
#pragma once
#include "core/plan/plan.h"
#include "core/tables/tables.h"

struct store;

struct pyenv {
	const char *dir;     /* host directory to show at SANDBOX_VENV; NULL: the root suffices */
	struct strlist have; /* what satisfies each requirement: "setuptools 78.1.1 (root)" */
	char key[65];        /* digest of the locked lines and their Python; "": the root's */
};

/* pyenv_check: compares each requirement ("setuptools>=62.3,<80") with what the root's Python has;
 * *missing: those not satisfied, with what was found. ERR_POLICY if the root has no Python or
 * another than the plan's. */
int pyenv_check(const struct plan *p, const struct root *root, enum sandbox_kind kind,
		const struct run *run, struct arena *a, struct strlist *have,
		struct strlist *missing, struct err *e) MUST_CHECK;
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
int pyenv_installs(const struct pyenv_request *q, const struct run *run, struct arena *a,
		   struct strlist *ret, struct err *e) MUST_CHECK;

/* pyenv_prepare: when something is missing, downloads the lines of the locked list
 * (profiles/requirements/<file>) whose markers hold for the root's Python into the store as wheels,
 * installs them offline in the sandbox into <build_dir>/venv, which also sees the root's packages,
 * and checks the requirements there again. The caller holds the build directory's lock. ERR_NETWORK
 * offline or when pip fails, ERR_INTEGRITY for other bytes, ERR_CONFIG without a locked list or
 * when the list is not enough, ERR_POLICY if the root lacks pip or the plan's Python. */
int pyenv_prepare(const struct pyenv_request *q, const struct run *run, struct arena *a,
		  struct pyenv *ret, struct err *e) MUST_CHECK;

/* requirements_lock: a lock of what the build of an extension needs, where neither the root nor the
 * locked list of extensions has it: resolved once by the host's pip, as wheels for the root's
 * Python with that Python's markers, and kept in the store; *ret is its path, NULL: none is needed.
 * What the list pins stays at its versions where the requirements allow it. ERR_NETWORK offline and
 * when pip fails, ERR_POLICY where no wheels fit.
 * requirements_look: what it would do, without asking the index and with a `store` that may be
 * NULL. */
int requirements_lock(const struct pyenv_request *q, const struct run *run, struct arena *a,
		      const char **ret, struct err *e) MUST_CHECK;

enum lock_state {
	LOCK_NOT_NEEDED,
	LOCK_GIVEN,  /* the user's */
	LOCK_KEPT,   /* in the store, from an earlier build */
	LOCK_TO_MAKE /* by the next build, unless its root has all that the list has not */
};

struct lock_look {
	enum lock_state state;
	const char *path;     /* of a given or kept lock; NULL */
	struct strlist pins;  /* "cython==3.2.1", of a given or kept lock */
	struct strlist wants; /* what neither list has */
};

int requirements_look(const struct pyenv_request *q, struct arena *a, struct lock_look *ret,
		      struct err *e) MUST_CHECK;

/* What a back end asked for (build_asks) when a source was first built, kept in the store with the
 * locks. requirements_asked: adds it to *ret. requirements_ask: adds these to what is kept;
 * ERR_POLICY for a text that names no distribution of an index. */
int requirements_asked(const struct pyenv_request *q, struct arena *a, struct strlist *ret,
		       struct err *e) MUST_CHECK;
int requirements_ask(const struct pyenv_request *q, const struct strlist *more, struct arena *a,
		     struct err *e) MUST_CHECK;
/* requirements_text: "Name[x] >=1 ; marker" as one line that pip takes for nothing but a
 * distribution of an index; NULL for other texts. */
char *requirements_text(const char *requirement, struct arena *a);

/* A locked list of Python distributions, pinned by version and sha256. */

struct locked {
	const char *name;
	const char *version;
	const char *marker;    /* environment marker, 'python_version < "3.10"'; "" if none */
	struct strlist hashes; /* sha256, hex */
};

struct locked_list {
	struct locked *items;
	size_t count;
};

/* locked_list_read: "NAME==VERSION [; MARKER] --hash=sha256:HEX..." lines, comments, continued
 * lines. Anything else (options, URLs, ranges, no hash) is ERR_CONFIG "file:line: ...". */
int locked_list_read(const char *path, struct arena *a, struct locked_list *ret,
		     struct err *e) MUST_CHECK;
/* locked_lists_read: reads the lists of these files in a directory as one; skips NULL and "". */
int locked_lists_read(const char *dir, const char *const *files, size_t count, struct arena *a,
		      struct locked_list *ret, struct err *e) MUST_CHECK;

/* Whether a locked list has what a Python without packages of its own needs, known before there is
 * such a Python. */

struct covers_request {
	const struct tables *tables;
	const struct release_row *release;
	const char *package; /* "pytorch" */
	const char *part;    /* of the world, that brings the Python: for messages */
	const char *python;  /* "3.12" */
	const char *own;     /* of the world's base, which brings packages as well */
};

/* covers_check: whether the locked list of the package has a line for each of its python_requires
 * and for each module that its wheel is tried with. ERR_POLICY names what is missing, and the
 * Pythons that the release can be built for; ERR_CONFIG for a list that cannot be read. */
int covers_check(const struct covers_request *q, struct arena *a, struct err *e) MUST_CHECK;

/* locked_has: whether a line of the list is for that Python, and in the range of a requirement:
 * "setuptools>=62.3,<80". */
bool locked_has(const struct locked_list *l, const char *python, const char *requirement,
		struct arena *a);

/* marker_holds: whether a marker (PEP 508, "" = always) may hold for CPython `python`, "3.12".
 * What depends on the platform, and a text that cannot be read, may hold: the Python itself is
 * asked later. */
bool marker_holds(const char *marker, const char *python);
