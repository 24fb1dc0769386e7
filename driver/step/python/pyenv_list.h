/* A locked list of Python distributions: every line pinned to one version and to the sha256 of its
 * files. Part of the pyenv step. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strlist.h"

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

/* locked_list_read: "NAME==VERSION [; MARKER] --hash=sha256:HEX..." lines, comments, and lines
 * continued with a backslash. Everything else (options, URLs, ranges, a requirement without a hash)
 * is ERR_CONFIG "file:line: ...": what is not in the list must not come in through it. */
int locked_list_read(const char *path, struct arena *a, struct locked_list *ret, struct err *e) MUST_CHECK;
