/* A locked list of Python distributions, pinned by version and sha256. */
#pragma once
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

/* locked_list_read: "NAME==VERSION [; MARKER] --hash=sha256:HEX..." lines, comments, continued
 * lines. Anything else (options, URLs, ranges, no hash) is ERR_CONFIG "file:line: ...". */
int locked_list_read(const char *path, struct arena *a, struct locked_list *ret, struct err *e) MUST_CHECK;
/* locked_lists_read: those of these files in a directory as one; NULL and "" are no files. */
int locked_lists_read(const char *dir, const char *const *files, size_t count, struct arena *a, struct locked_list *ret,
		      struct err *e) MUST_CHECK;
