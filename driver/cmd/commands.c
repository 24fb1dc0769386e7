#include "cmd/cmd.h"

/* One row a line, so that adding one changes no other. */
/* clang-format off */
const struct command *const cmd_table[] = {
	&command_build,
	&command_take,
	&command_repack,
	&command_plan,
	&command_diff,
	&command_list,
	&command_matrix,
	&command_units,
	&command_fetch,
	&command_verify,
	&command_test,
	&command_index,
	&command_shell,
	&command_cache,
	&command_detect,
	&command_doctor,
	&command_completion,
	&command_help,
	NULL,
};
/* clang-format on */

#define GLOBAL(type, field) (type), offsetof(struct cmd_globals, field)

const struct arg_def cmd_global_options[] = {
	{"json", 0, GLOBAL(ARG_FLAG, json), NULL, "print one JSON document on standard output", NULL},
	{"jobs", 'j', GLOBAL(ARG_COUNT, jobs), "N", "compile jobs at once (default: from processors and memory)", NULL},
	{"offline", 0, GLOBAL(ARG_FLAG, offline), NULL,
	 "never use the network; a file that is not in the store is an error", NULL},
	{"root", 0, GLOBAL(ARG_STRING, root), "DIR", "build inside this root file system (default: the host's)",
	 "<dir>"},
	{"cache", 0, GLOBAL(ARG_STRING, cache), "DIR",
	 "the store (default: $XDG_CACHE_HOME/ptbuild, else ~/.cache/ptbuild)", "<dir>"},
	{"profiles", 0, GLOBAL(ARG_STRING, profiles), "DIR",
	 "directory of the tables (default: those installed with the program)", "<dir>"},
	{"out", 'o', GLOBAL(ARG_STRING, out), "DIR", "directory for wheels (default: dist)", "<dir>"},
	{"mirror", 0, GLOBAL(ARG_LIST, mirrors), "PLACE",
	 "a URL or directory to try first for sources; may be repeated", "<dir>"},
	{"lower-store", 0, GLOBAL(ARG_LIST, lower_stores), "DIR",
	 "a read-only fallback store, whose objects are used in place; may be repeated (also PTBUILD_LOWER_STORE, "
	 "separated by colons)",
	 "<dir>"},
	{"store-url", 0, GLOBAL(ARG_STRING, store_url), "URL",
	 "a store on a web server, from which missing objects are downloaded (also PTBUILD_STORE_URL)", NULL},
	{"sandbox", 0, GLOBAL(ARG_STRING, sandbox), "KIND", "bubblewrap (default) or none", "bubblewrap none"},
	{"verbose", 'v', GLOBAL(ARG_FLAG, verbose), NULL, "print more", NULL},
	{"quiet", 'q', GLOBAL(ARG_FLAG, quiet), NULL,
	 "no progress and no summary: print errors, and what a command is asked to show", NULL},
	{"help", 'h', GLOBAL(ARG_FLAG, help), NULL, "print the help of the command", NULL},
	{"version", 0, GLOBAL(ARG_FLAG, version), NULL, "print the version", NULL},
	{0},
};
