#include "cmd/cmd.h"

enum {
	TABLES = OPEN_TABLES,
	PATCHES = OPEN_PATCHES,
	NETWORK = OPEN_NETWORK,
	MACHINE = OPEN_MACHINE,
	OUTPUT = OPEN_OUTPUT,
	STORE = OPEN_STORE,
	ROOT = OPEN_ROOT,
	SELECT = MACHINE | ROOT, /* what variants are, on this machine and in its root */
};

/* One row a line, so that adding one changes no other. */
/* clang-format off */
const struct cmd_row cmd_table[] = {
	/*                    before it runs               where a mode needs it */
	{&command_build,      OPEN_BUILD,                  SELECT},
	{&command_capture,    OPEN_BUILD,                  SELECT},
	{&command_slim,       0,                           TABLES | MACHINE | STORE | NETWORK | OUTPUT},
	{&command_bundle,     TABLES | PATCHES | OUTPUT,   SELECT},
	{&command_repack,     0,                           OPEN_BUILD | SELECT},
	{&command_plan,       TABLES | PATCHES,            SELECT | OUTPUT},
	{&command_diff,       0,                           TABLES | PATCHES | SELECT},
	{&command_list,       0,                           TABLES | PATCHES},
	{&command_matrix,     0,                           TABLES | SELECT},
	{&command_units,      TABLES,                      0},
	{&command_fetch,      TABLES | PATCHES | NETWORK,  SELECT},
	{&command_verify,     0,                           TABLES | SELECT},
	{&command_test,       OPEN_BUILD,                  SELECT},
	{&command_bench,      NETWORK,                     TABLES | SELECT},
	{&command_index,      0,                           TABLES},
	{&command_install,    TABLES,                      MACHINE | STORE | NETWORK},
	{&command_shell,      0,                           TABLES | STORE},
	{&command_world,      OPEN_DATA,                   ROOT},
	{&command_cache,      0,                           STORE},
	{&command_detect,     TABLES,                      MACHINE},
	{&command_doctor,     0,                           TABLES | PATCHES | SELECT | OUTPUT},
	{&command_completion, 0,                           TABLES},
	{&command_help,       0,                           0},
	{0},
};
/* clang-format on */

#define GLOBAL(type, field) (type), offsetof(struct cmd_globals, field)

/* Names that development versions before 1.0 had. They are read for one release. */
static const struct {
	const char *before, *now;
} renamed[] = {
	{"take", "capture"},
	{"set", "bundle"},
	{"--without-wall", "--without-protection"},
};

const char *cmd_new_name(const char *word, struct arena *a)
{
	for (size_t i = 0; i < ARRAY_LEN(renamed); i++) {
		const size_t n = strlen(renamed[i].before);
		if (strncmp(word, renamed[i].before, n) != 0)
			continue;
		if (!word[n] || (*word == '-' && word[n] == '='))
			return arena_printf(a, "%s%s", renamed[i].now, word + n);
	}

	return NULL;
}

const struct arg_def cmd_global_options[] = {
	{"json", 0, GLOBAL(ARG_FLAG, json), NULL, "print one JSON document on standard output",
	 NULL},
	{"jobs", 'j', GLOBAL(ARG_COUNT, jobs), "N",
	 "compile jobs at once (default: from processors and memory)", NULL},
	{"offline", 0, GLOBAL(ARG_FLAG, offline), NULL,
	 "never use the network; a file that is not in the store is an error", NULL},
	{"root", 0, GLOBAL(ARG_STRING, root), "DIR",
	 "build in this root file system: a directory, / for this machine's own, or world:NAME "
	 "(default: the release's "
	 "world; of capture, test, bench and verify this machine's own)",
	 "<dir>"},
	{"cache", 0, GLOBAL(ARG_STRING, cache), "DIR",
	 "the store (default: $XDG_CACHE_HOME/ptbuild, else ~/.cache/ptbuild)", "<dir>"},
	{"profiles", 0, GLOBAL(ARG_STRING, profiles), "DIR",
	 "directory of the tables (default: those installed with the program)", "<dir>"},
	{"out", 'o', GLOBAL(ARG_STRING, out), "DIR", "directory for wheels (default: dist)",
	 "<dir>"},
	{"mirror", 0, GLOBAL(ARG_LIST, mirrors), "URL|DIR",
	 "a URL or directory to try first for sources; may be repeated", "<dir>"},
	{"archive", 0, GLOBAL(ARG_LIST, archives), "NAME=URL",
	 "address of a Debian archive (debian, debian-security) or of its snapshot "
	 "(debian-snapshot), instead of this machine's; may be repeated (also "
	 "PTBUILD_ARCHIVE_DEBIAN, separated by spaces)",
	 NULL},
	{"no-drift", 0, GLOBAL(ARG_FLAG, no_drift), NULL,
	 "fail if a pinned package is no longer in the archive (default: use its current version)",
	 NULL},
	{"lower-store", 0, GLOBAL(ARG_LIST, lower_stores), "DIR",
	 "a read-only fallback store, whose objects are used without copying; may be repeated "
	 "(also PTBUILD_LOWER_STORE, separated by colons)",
	 "<dir>"},
	{"store-url", 0, GLOBAL(ARG_STRING, store_url), "URL",
	 "a store on a web server, from which missing objects are downloaded (also "
	 "PTBUILD_STORE_URL)",
	 NULL},
	{"sandbox", 0, GLOBAL(ARG_STRING, sandbox), "KIND", "bubblewrap (default) or none",
	 "bubblewrap none"},
	{"without-protection", 0, GLOBAL(ARG_LIST, without_protections), "NAMES",
	 "build without these sandbox protections ('ptbuild doctor' lists them); changes the keys "
	 "and is recorded",
	 "user seccomp keyring proc setuid limits landlock packages processes"},
	{"max-processes", 0, GLOBAL(ARG_COUNT, max_processes), "N",
	 "processes and threads of a build at once (default: 256, and 64 for each processor)",
	 NULL},
	{"max-memory", 0, GLOBAL(ARG_STRING, max_memory), "SIZE",
	 "memory of a build, for example 24G (default: nearly all of the machine's)", NULL},
	{"max-disk", 0, GLOBAL(ARG_STRING, max_disk), "SIZE",
	 "disk space that a build may use (default: all but the last 512M of the disk)", NULL},
	{"max-log", 0, GLOBAL(ARG_STRING, max_log), "SIZE",
	 "output of one command of a build (default: 1G)", NULL},
	{"max-silence", 0, GLOBAL(ARG_STRING, max_silence), "TIME",
	 "stop a command that prints nothing for this long, for example 90s, 30m, 4h (default: 4h)",
	 NULL},
	{"max-time", 0, GLOBAL(ARG_STRING, max_time), "TIME",
	 "time that one command of a build may take (default: 72h)", NULL},
	{"verbose", 'v', GLOBAL(ARG_FLAG, verbose), NULL, "print more", NULL},
	{"quiet", 'q', GLOBAL(ARG_FLAG, quiet), NULL, "print only errors and the requested result",
	 NULL},
	{"help", 'h', GLOBAL(ARG_FLAG, help), NULL, "print the help of the command", NULL},
	{"version", 0, GLOBAL(ARG_FLAG, version), NULL, "print the version", NULL},
	{0},
};
