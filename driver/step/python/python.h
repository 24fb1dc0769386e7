/* The root's Python, run in the sandbox. */
#pragma once
#include "core/root/sandbox.h"

struct python {
	const struct root *root;
	enum sandbox_kind kind;
	const struct run *run;
	struct arena *arena;
	const char *program; /* path inside the root or the sandbox */
	const char *venv;    /* host directory shown read-only at SANDBOX_VENV; NULL: none */
};

/* python_find: the root's python3.X, else its python3. ERR_POLICY if there is none. */
int python_find(const char *version, const struct root *root, enum sandbox_kind kind, const struct run *run,
		struct arena *a, struct python *ret, struct err *e) MUST_CHECK;
/* python_sandbox: an offline sandbox with a bare environment for it. */
int python_sandbox(const struct python *p, struct sandbox *ret, struct err *e) MUST_CHECK;
/* python_script: runs the text with these arguments, isolated from user sites and PYTHON*
 * variables; gives the printed lines. */
int python_script(const struct python *p, const char *script, const struct strlist *args, struct strlist *ret_lines,
		  struct err *e) MUST_CHECK;
