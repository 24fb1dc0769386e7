/* The pieces of pyenv.c that making a lock needs as well. */
#pragma once
#include "step/python/pyenv.h"

struct python {
	const struct root *root;
	enum sandbox_kind kind;
	const struct run *run;
	struct arena *arena;
	const char *program; /* path inside the root or the sandbox */
	const char *venv;    /* host directory shown read-only at SANDBOX_VENV; NULL: none */
};

/* The lines of the list that apply to one Python, and the wheel tags that it supports. */
struct pyenv_wanted {
	struct locked_list list; /* without markers */
	const char *text;        /* the same as a requirements file */
	const char *python;      /* "3.13" */
	const char *implementation;
	const char *environment; /* what markers are evaluated by, as JSON */
	struct strlist abis;
	struct strlist platforms;
	char key[65];       /* digest of all of this: the store key */
	const char *lacks;  /* what the root does not have, in words */
	const char *wheels; /* the directory of the wheels */
};

/* python_find: sets the program: the root's python3.X, else its python3. ERR_POLICY without. */
int python_find(struct python *p, const char *version, struct err *e) MUST_CHECK;
/* python_find_pip: adds the words that start pip of the host, which has the user's network
 * settings; where the root is the host, its Python has pip. */
int python_find_pip(const struct python *p, struct strlist *argv, struct err *e) MUST_CHECK;
/* pyenv_want: asks the root's Python which lines of the list hold, and which tags it supports.
 * ERR_POLICY if it has no pip. */
int pyenv_want(const struct python *p, const struct locked_list *all, struct pyenv_wanted *ret,
	       struct err *e) MUST_CHECK;
/* python_start_pip: adds the words that start a pip that resolves for that Python: pip itself
 * evaluates markers and Requires-Python for the one that runs it. Where this machine's pip is not
 * built as expected it does so, and prints a line that begins with PIP_IS_OTHER. */
#define PIP_IS_OTHER "ptbuild: another pip"
int python_start_pip(const struct python *p, const struct pyenv_wanted *w, struct strlist *argv,
		     struct err *e) MUST_CHECK;
/* python_add_tags: the options of pip that choose files for that Python. */
void python_add_tags(const struct python *p, const struct pyenv_wanted *w, struct strlist *argv);
