/* A locked list's distributions into the store. */
#pragma once
#include "step/python/locked_list.h"
#include "step/python/python.h"

struct store;

/* The lines of the list that apply to one Python, and the wheels that it takes. */
struct pyenv_wanted {
	struct locked_list list; /* without markers */
	const char *text;        /* the same as a requirements file */
	const char *python;      /* "3.13" */
	const char *implementation;
	struct strlist abis;
	struct strlist platforms;
	char key[65]; /* digest of all of this: the store key */
};

/* pyenv_want: asks the root's Python which markers hold and which tags it takes. ERR_POLICY if it
 * has no pip. */
int pyenv_want(const struct python *p, const struct locked_list *all, struct pyenv_wanted *ret,
	       struct err *e) MUST_CHECK;
/* pyenv_fetch: the store object with requirements.txt and a wheel for each of its lines, downloaded
 * by the host's pip if absent; every digest is checked here too. `why` is for messages. ERR_NETWORK
 * offline or when pip fails; ERR_INTEGRITY for other bytes. */
int pyenv_fetch(const struct python *p, const struct pyenv_wanted *w, struct store *store, bool offline,
		const char *why, const char **ret, struct err *e) MUST_CHECK;
