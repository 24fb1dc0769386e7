/* Command-line options from tables: the same table parses, prints the help, the man page and the
 * completions. */
#pragma once

#include "base/err.h"
#include "base/strlist.h"

enum arg_type {
	ARG_FLAG,   /* bool: --name sets true, --no-name sets false */
	ARG_STRING, /* const char *: --name VALUE or --name=VALUE */
	ARG_ONE,    /* the same; a second value that differs is refused */
	ARG_UINT,   /* unsigned: decimal */
	ARG_COUNT,  /* the same, from 1 on; 0 in the target: not given */
	ARG_LIST,   /* struct strlist: may be repeated; VALUE is split at commas */
	ARG_EACH,   /* the same, unsplit: paths may have commas */
	ARG_PAIRS,  /* struct kvlist: the same with NAME=VALUE */
};

struct arg_def {
	const char *name; /* long name without the dashes */
	char short_name;  /* 0: none */
	enum arg_type type;
	size_t offset;       /* of the field in the target struct */
	const char *metavar; /* NULL for flags */
	const char *help;    /* one line, lower case, no full stop */
	/* the allowed values with blanks between, two at least; or a kind such as "<file>", for
	 * completion and for the check of files before a command runs; NULL: any */
	const char *values;
};

/* args_given: whether the command line set an option of `target`, or not to what it was before. */
bool args_given(const struct arg_def *d, const void *target) __attribute__((pure));
/* args_values: the values that an option of `target` has, as they are written; of flags none. */
void args_values(const struct arg_def *d, const void *target, struct arena *a, struct strlist *ret);
/* args_parse: fills `target` by the tables (`ntables` pointers to tables that end with a NULL name)
 * from argv[1] on. Short options may be joined ("-vq", "-j4"); a value that begins with "--" needs
 * --name=VALUE; the last of an option given twice counts, but for ARG_ONE. Everything else, "-" and
 * all behind "--" goes to `positional`. The value of an option for a DIR, a FILE or a TREE is not
 * empty. ERR_USAGE names the option and leaves target and positional untouched. Strings point into
 * argv, pieces of lists live in the arena. */
int args_parse(const struct arg_def *const *tables, size_t ntables, void *target, int argc,
	       char *const *argv, struct arena *a, struct strlist *positional,
	       struct err *e) MUST_CHECK;
