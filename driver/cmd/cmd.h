/* Commands as data: one table parses, prints the help, the man page and the shell completions. */
#pragma once
#include "base/args.h"
#include "base/show.h"
#include "core/machine/detect.h"
#include "core/root/toolkit.h"
#include "core/tables/tables.h"

struct cmd_costs;
struct fetch_options; /* step/fetch/fetch.h */
struct fetch_store;
struct plan_digests;
struct world;
struct store;

/* --release value for the newest release that can be built. */
#define CMD_LATEST "latest"

/* Options of every command. The options struct of a command begins with one of these. */
struct cmd_globals {
	bool json, offline, verbose, quiet, help, version, no_drift;
	unsigned jobs; /* 0: by processors and memory */
	const char *root;
	const char *cache;
	const char *profiles;
	const char *out;
	const char *sandbox;
	struct strlist mirrors;
	struct strlist archives;
	struct strlist lower_stores;
	const char *store_url;
	struct strlist without_protections;
	unsigned max_processes;
	const char *max_memory, *max_disk, *max_log, *max_silence, *max_time;
};

struct cmd_positional {
	const char *name; /* "VARIANT..." */
	const char *help;
	const char *values; /* as arg_def.values */
};

struct cmd_context;

enum { CMD_TABLES = 5 };

struct command {
	const char *name;
	const char *summary; /* one line, lower case, no full stop */
	const char *usage;   /* what follows the name in the synopsis */
	/* Each of these ends with an empty element. */
	const struct arg_def *tables[CMD_TABLES + 1]; /* beside the global ones */
	struct cmd_positional arguments[3];           /* none: words are refused */
	/* of the options struct; 0: struct cmd_globals alone */
	size_t options_size;
	int (*run)(struct cmd_context *c, const struct strlist *args, struct err *e);
};

/* What a command may open, in the order in which it is opened; with what that needs itself. */
enum cmd_thing {
	OPEN_DATA = 1,                 /* profiles_dir */
	OPEN_TABLES = 2 | OPEN_DATA,   /* tables */
	OPEN_PATCHES = 4 | OPEN_DATA,  /* patches_dir */
	OPEN_MACHINE = 8 | OPEN_DATA,  /* cmd_machine */
	OPEN_LOOK = 16,                /* cmd_store_look, cmd_store_read */
	OPEN_STORE = 32 | OPEN_LOOK,   /* cmd_store, which creates it */
	OPEN_NETWORK = 64 | OPEN_DATA, /* fetch */
	OPEN_OUTPUT = 128,             /* out_dir */
	/* cmd_root, cmd_toolchain: it may be a world, which is fetched into the store */
	OPEN_ROOT = 256 | OPEN_STORE | OPEN_NETWORK,
	/* all that a build is made of, but what its variants decide */
	OPEN_BUILD = OPEN_TABLES | OPEN_PATCHES | OPEN_NETWORK | OPEN_OUTPUT,
};

/* A command and what it opens: the fields of the context that it finds filled, and the functions
 * that it may call. Anything else is refused. */
struct cmd_row {
	const struct command *command;
	unsigned first; /* before it runs */
	/* where only some of its modes need it (cmd_open), or its arguments are judged before: a
	 * root and a store, which are created, and the machine */
	unsigned later;
};

/* The table itself, in the order of the help; a row without a command ends it. A new command is a
 * file, its help in help/NAME.txt, a declaration here, a row in commands.c and its file in
 * CMakeLists.txt. */
extern const struct cmd_row cmd_table[];
extern const struct command command_build, command_fetch, command_verify, command_cache,
	command_doctor, command_completion, command_help;
extern const struct command command_repack, command_index, command_capture, command_slim,
	command_bundle;
extern const struct command command_plan, command_diff, command_list, command_units;
extern const struct command command_detect, command_matrix;
extern const struct command command_shell, command_test, command_bench, command_world,
	command_install;
extern const struct arg_def cmd_global_options[];
/* cmd_new_name: returns what a command or an option is called now, with the option's "=VALUE", for
 * its name of before 1.0; NULL for any other word. Lives in `a`. */
const char *cmd_new_name(const char *word, struct arena *a);

struct cmd_context {
	const struct run *run;
	struct arena *arena; /* of the run */
	const struct command *command;
	const struct cmd_row *row; /* of the command */
	const struct cmd_globals *global;
	const void *options; /* the command's own struct */
	/* of the command line: the program, then all but the command's name */
	const struct strlist *words;
	/* Filled by cmd_open, as the row says. */
	unsigned opened;          /* of enum cmd_thing */
	const char *profiles_dir; /* where the tables are */
	const struct tables *tables;
	const char *patches_dir;
	const struct fetch_options *fetch;
	const char *out_dir; /* absolute; not made */
	/* Opened by the functions below when first asked for. */
	/* of --source (cmd/select.h): digests that the user gives; whether a package has a source
	 * of the user's, and the release with its version, NULL: none */
	struct kvlist sources;
	bool own_source;
	const char *own_release;
	const struct toolchain *toolchain;
	const struct toolkits *toolkits;
	struct store *store;
	bool *store_told; /* that it cannot be looked into, by whichever copy of the context */
	/* that the root is of; NULL: none (cmd/select.h) */
	const struct world *world;
	const char *root_platform; /* of the world that --root names; NULL: this machine's */
	bool look;            /* the pipeline looks at all of it, before anything of it is run */
	struct strlist drift; /* of it, as world_result */
	struct root *root;
	struct strlist emulated; /* platforms that cmd_can_run has found besides this machine's */
	const struct strlist *cross; /* names of the cross parts; NULL: not looked for yet */
	const struct hardware_facts *facts;
	struct hardware *machine;
	struct plan_digests *digests;
	struct cmd_costs *costs;   /* that were counted; NULL: none yet */
	struct cmd_slower *slower; /* that cmd_slower has found; NULL: none yet */
	bool wraps;                /* lines of text keep to TERM_WIDTH where there is no terminal */
	bool shown;                /* standard output has the document, or what a program wrote */
};

/* An action of a command with several. */
struct cmd_action {
	const char *name;
	const char *takes; /* options of its own, with blanks around */
	bool named;        /* its first argument is a name */
	int (*run)(struct cmd_context *c, const char *name, struct err *e);
};

/* cmd_protections: reads the protections and limits on the command line into `run`. */
int cmd_protections(const struct cmd_globals *g, struct run *run, struct err *e) MUST_CHECK;
/* cmd_installed_data: returns the data directory installed with the program; NULL where others are
 * used: by --profiles or $PTBUILD_DATA_DIR, or those of the source tree. */
const char *cmd_installed_data(struct cmd_context *c);
/* cmd_open: opens those of `what` (enum cmd_thing) that are not open yet and fills their fields.
 * OPEN_DATA: --profiles, else `profiles` below the data directory: $PTBUILD_DATA_DIR, <directory of
 * the program>/../share/ptbuild, the source tree it was built from. OPEN_PATCHES: `patches` beside
 * the profiles, else below the data directory. OPEN_NETWORK: --offline, --mirror, --archive, and
 * the file "archives" in the parent of the profiles, else in the data directory; ERR_USAGE for an
 * invalid --archive. ERR_CONFIG as cmd_declared. */
int cmd_open(struct cmd_context *c, unsigned what, struct err *e) MUST_CHECK;
/* cmd_declared: ERR_CONFIG if the command's row does not declare `thing`. */
int cmd_declared(const struct cmd_context *c, unsigned thing, struct err *e) MUST_CHECK;
/* cmd_recorded_path: the user's digests, which OPEN_TABLES reads: recorded.yaml in ptbuild's
 * directory below $XDG_CONFIG_HOME, else ~/.config; NULL without a home. */
const char *cmd_recorded_path(const struct cmd_context *c);
/* cmd_store: the store of --cache, else $XDG_CACHE_HOME/ptbuild, else ~/.cache/ptbuild, with its
 * fallbacks (--lower-store, PTBUILD_LOWER_STORE) and the remote one (--store-url,
 * PTBUILD_STORE_URL; not with --offline). Closed by cmd_main. cmd_cache_dir: where that is, nothing
 * opened. */
int cmd_store(struct cmd_context *c, struct store **ret, struct err *e) MUST_CHECK;
/* cmd_store_read: like cmd_store, for reading only; accepts a store that cannot be written, which
 * cmd_store then refuses. */
int cmd_store_read(struct cmd_context *c, struct store **ret, struct err *e) MUST_CHECK;
/* cmd_store_look: like cmd_store_read, but NULL if no store exists yet; creates none. */
int cmd_store_look(struct cmd_context *c, struct store **ret, struct err *e) MUST_CHECK;
int cmd_cache_dir(const struct cmd_context *c, const char **ret, struct err *e) MUST_CHECK;
int cmd_root(struct cmd_context *c, const struct root **ret, struct err *e) MUST_CHECK;
enum sandbox_kind cmd_sandbox(const struct cmd_context *c);
int cmd_toolchain(struct cmd_context *c, const struct toolchain **ret, struct err *e) MUST_CHECK;
/* cmd_machine: this machine, with its GPUs if the first call asks for them, and the facts by which
 * it is judged. */
int cmd_machine(struct cmd_context *c, bool gpus, const struct hardware_facts **ret_facts,
		const struct hardware **ret, struct err *e) MUST_CHECK;
/* cmd_add_runs_on: adds where a wheel runs, and whether it runs here (NULL: unknown). */
void cmd_add_runs_on(json_t *doc, const struct runs_on *r, const struct fit *fit);
/* cmd_out_dir: --out, else "dist", as an absolute path; not made. */
int cmd_out_dir(const struct cmd_context *c, const char **ret, struct err *e) MUST_CHECK;

/* cmd_keep_days: the seconds of --keep-days; ERR_USAGE. */
int cmd_keep_days(const char *text, int64_t *ret, struct err *e) MUST_CHECK;
/* cmd_show: prints the document, which it then owns: as JSON with --json, else as text. */
int cmd_show(struct cmd_context *c, json_t *doc, const struct show *rows, struct err *e) MUST_CHECK;
/* cmd_result: like cmd_show, for a result that --quiet leaves out. */
int cmd_result(struct cmd_context *c, json_t *doc, const struct show *rows,
	       struct err *e) MUST_CHECK;
/* cmd_disk_hint: gives the error of a full disk the file system's name and the options that move
 * what could not be written. */
void cmd_disk_hint(const struct cmd_context *c, struct err *e);
/* cmd_error_json: an error in a document: exit code, message, hint. New reference. */
json_t *cmd_error_json(const struct err *e);
/* cmd_find: the command of that name, NULL. cmd_row_of: its row in the table. */
const struct cmd_row *cmd_row_of(const struct command *cmd) __attribute__((returns_nonnull));
const struct command *cmd_find(const char *name);
/* cmd_names_files: whether the values of a kind (arg_def.values) are files, for completion. */
bool cmd_names_files(const char *values);

/* cmd_option: the option of a table that a word such as "--jobs" or "-j" names; NULL. */
const struct arg_def *cmd_option(const struct arg_def *table, const char *word);
/* cmd_first_word: returns the index of the first argument that is neither an option nor an option's
 * value; argc if all are options. */
int cmd_first_word(int argc, const char *const *argv);
/* cmd_unknown: ERR_USAGE for a word that is not a command; the hint names the nearest one. */
int cmd_unknown(const char *word, struct err *e);
/* cmd_refuse: ERR_USAGE if an option of the command's own was given that is not in the third
 * parameter, names with spaces around; `who` names the form that does not support it. */
int cmd_refuse(const struct cmd_context *c, const char *who, const char *takes,
	       struct err *e) MUST_CHECK;
/* cmd_action: runs the action that the first word names. */
int cmd_action(struct cmd_context *c, const struct cmd_action *actions, size_t count,
	       const struct strlist *args, struct err *e) MUST_CHECK;
/* cmd_main: all of a run: finds the command, parses, runs it. argv[0] is the program. The caller
 * prints the error; its kind is the exit code. With --json a document has it, too, unless the
 * command has printed its own. */
int cmd_main(int argc, char *const *argv, const struct run *run, struct err *e) MUST_CHECK;
/* The command with which an installer installs the wheels of an index. install_url: URL of a
 * directory on this machine, "file:///srv/dist/cpu-avx2/". */
char *install_url(struct arena *a, const char *dir, const char *name)
	__attribute__((returns_nonnull));
/* install_argv: adds the words for pip, or uv. The versions are named, so that no other index that
 * the installer looks into can give a newer one; everything else comes from there. */
void install_argv(const char *python, bool uv, const char *url, const struct strlist *wanted,
		  struct arena *a, struct strlist *ret);

/* What is printed from the command table. */
/* help_show: a command with its options; NULL: all commands, a line each. */
int help_show(struct cmd_context *c, const struct command *cmd, struct err *e) MUST_CHECK;
/* cmd_write_stdout: all of a text to standard output, as a terminal can show it. cmd_write_bytes:
 * as it is. Where the reader has closed the pipe, SIGPIPE ends the process. */
int cmd_write_stdout(const struct buf *text, struct err *e) MUST_CHECK;
int cmd_write_bytes(const struct buf *bytes, struct err *e) MUST_CHECK;
/* help_line: a command line, in lines of less than TERM_WIDTH that are one for the shell still. */
char *help_line(const char *line, struct arena *a) __attribute__((returns_nonnull));
