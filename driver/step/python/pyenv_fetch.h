/* A locked list's distributions into the store. Part of the pyenv step. */
#pragma once
#include "step/python/pyenv_list.h"
#include "step/python/pyenv_python.h"

struct store;

/* What of the list applies to one Python, and which wheels that Python takes. */
struct pyenv_wanted {
	struct locked_list list; /* without markers */
	const char *text;        /* the same as a requirements file */
	const char *python;      /* "3.13" */
	const char *implementation;
	struct strlist abis;
	struct strlist platforms;
	char key[65]; /* digest of all of this: the store key */
};

/* pyenv_wanted: asks the root's Python (through its pip, ERR_POLICY if it has none) which markers
 * hold and which tags it takes. */
int pyenv_want(const struct python *p, const struct locked_list *all, struct pyenv_wanted *ret,
	       struct err *e) MUST_CHECK;
/* pyenv_fetch: the store object with requirements.txt and a wheel for each line of it; downloaded
 * by pip on the host where it is not there yet (`why` is for messages). Each file's digest is
 * compared with the list here too. ERR_NETWORK offline or when pip cannot get it; ERR_INTEGRITY for
 * other bytes. */
int pyenv_fetch(const struct python *p, const struct pyenv_wanted *w, struct store *store, bool offline,
		const char *why, const char **ret, struct err *e) MUST_CHECK;
