/* Command-line options from tables: the same table parses, prints the help, the man page and the
 * completions. */
#pragma once
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strlist.h"

enum arg_type {
	ARG_FLAG,   /* bool: --name sets true, --no-name sets false */
	ARG_STRING, /* const char *: --name VALUE or --name=VALUE */
	ARG_UINT,   /* unsigned: decimal */
	ARG_LIST,   /* struct strlist: may be repeated; VALUE is split at commas */
	ARG_PAIRS,  /* struct kvlist: the same, of pieces NAME=VALUE */
};

struct arg_def {
	const char *name; /* long name without the dashes */
	char short_name;  /* 0: none */
	enum arg_type type;
	size_t offset;       /* of the field in the target struct */
	const char *metavar; /* NULL for flags */
	const char *help;    /* one line, lower case, no full stop */
	/* space-separated values for completion, or a word in angle brackets: "<file>" "<dir>"
	 * "<release>" ...; NULL: none */
	const char *values;
};

/* args_parse: fills `target` by the tables (given as an array of `ntables` pointers to
 * NULL-name-terminated tables) from argv[1] on, argv[0] being the program's name. Short options may
 * be written together ("-vq") and with their value ("-j4", "-j 4"); a value that begins with "--"
 * needs the form --name=VALUE; of options given twice the last counts. What is no option goes to
 * `positional`, in order; so does "-" and all behind "--". ERR_USAGE names the option; an unknown
 * one gets the nearest known as a hint. On failure target and positional are untouched. Strings
 * point into argv, pieces of lists live in the arena. */
int args_parse(const struct arg_def *const *tables, size_t ntables, void *target, int argc, char *const *argv,
	       struct arena *a, struct strlist *positional, struct err *e) MUST_CHECK;
