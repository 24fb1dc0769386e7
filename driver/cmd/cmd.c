#include <signal.h>

#include "cmd/cmd.h"

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "cache/store.h"
#include "core/plan/plan.h"
#include "step/fetch/fetch_place.h"

const struct command *cmd_find(const char *name)
{
	for (const struct cmd_row *r = cmd_table; r->command; r++)
		if (strcmp(r->command->name, name) == 0)
			return r->command;
	return NULL;
}

const struct cmd_row *cmd_row_of(const struct command *cmd)
{
	const struct cmd_row *r = cmd_table;

	while (r->command != cmd)
		r++;
	return r;
}

const struct arg_def *cmd_option(const struct arg_def *table, const char *word)
{
	for (const struct arg_def *d = table; d->name; d++)
		if (word[1] == '-' ? strcmp(word + 2, d->name) == 0
				   : (word[1] == d->short_name && !word[2]))
			return d;
	return NULL;
}

static bool takes_value(const struct arg_def *table, const char *word)
{
	const struct arg_def *d = cmd_option(table, word);
	return d && d->type != ARG_FLAG;
}

/* Whether the next word is this option's value. Which
 * command it is of is not known yet, so any counts. */
static bool value_follows(const char *word)
{
	if (takes_value(cmd_global_options, word))
		return true;
	for (size_t i = 0; cmd_table[i].command; i++)
		for (size_t j = 0; cmd_table[i].command->tables[j]; j++)
			if (takes_value(cmd_table[i].command->tables[j], word))
				return true;
	return false;
}

/* --version without a value, as every program has it: some commands have an option of that name,
 * whose values, versions of packages, begin with no '-'. */
static bool alone(const char *word, const char *next)
{
	return strcmp(word, "--version") == 0 && *next == '-';
}

int cmd_first_word(int argc, const char *const *argv)
{
	int i = 1;

	for (; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			return argc;
		if (argv[i][0] != '-' || !argv[i][1])
			return i;
		if (value_follows(argv[i]) && !alone(argv[i], i + 1 < argc ? argv[i + 1] : "-"))
			i++;
	}

	return argc;
}

/* What other tools call the removal of old files. */
static const char *const removals[] = {"clean", "clear", "gc", "prune", "purge"};

int cmd_unknown(const char *word, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *names[64];
	size_t count = 0;

	for (; cmd_table[count].command && count < ARRAY_LEN(names); count++)
		names[count] = cmd_table[count].command->name;
	const char *near = suggest_nearest(word, names, count);
	err_set(e, ERR_USAGE, "not a command: '%s'", word);
	if (strings_contain(removals, ARRAY_LEN(removals), word))
		return err_hint(
			e,
			"did you mean 'ptbuild cache gc --keep-days 30'? 'ptbuild help' lists all");
	for (const struct arg_def *d = cmd_global_options; d->name; d++)
		if (d->type == ARG_FLAG && strcmp(d->name, word) == 0)
			return err_hint(
				e, "did you mean 'ptbuild --%s'? 'ptbuild help' lists the commands",
				word);
	if (!near && strchr(word, '-') && shell_quoted(word, &a) == word)
		return err_hint(e,
				"for a profile: 'ptbuild build --profile %s'; 'ptbuild help' lists "
				"the commands",
				word);
	return near ? err_hint(e, "did you mean 'ptbuild %s'? 'ptbuild help' lists all", near)
		    : err_hint(e, "'ptbuild help' lists all");
}

/* What was typed, and what it asks for. */
struct command_line {
	int argc;
	char *const *argv;
	const struct command *command;
	struct strlist words; /* without the command's name */
};

/* The command, and the words without its name. Without
 * a command, options or a variant's name mean build. */
static int find_command(struct command_line *l, struct arena *a, struct err *e)
{
	const int argc = l->argc;
	char *const *argv = l->argv;
	int at = cmd_first_word(argc, (const char *const *)argv);
	const struct command *cmd = at < argc ? cmd_find(argv[at]) : NULL;

	if (at < argc && !cmd && !variant_looks_like(argv[at]))
		return cmd_unknown(argv[at], e);
	for (int i = 0; i < argc; i++)
		if (!cmd || i != at)
			strlist_ref(&l->words, a, argv[i]);
	if (!cmd)
		cmd = cmd_find(argc > 1 ? "build" : "help");
	if (!cmd)
		return err_set(e, ERR_USAGE, "no command");
	l->command = cmd;
	return 0;
}

static int refuse_words(const struct command *cmd, const struct strlist *args, struct err *e)
{
	if (cmd->arguments[0].name || args->count == 0)
		return 0;
	err_set(e, ERR_USAGE, "'%s' has no argument '%s'", cmd->name, args->items[0]);
	return err_hint(e, "see 'ptbuild %s --help'", cmd->name);
}

int cmd_write_stdout(const struct buf *text, struct err *e)
{
	AUTO_BUF struct buf shown = {0};
	utf8_show(&shown, buf_cstr(text), text->len, term_of(STDOUT_FILENO).colour);
	return cmd_write_bytes(&shown, e);
}

int cmd_write_bytes(const struct buf *bytes, struct err *e)
{
	int rc = fs_write_all(STDOUT_FILENO, buf_cstr(bytes), bytes->len, "standard output", e);

	/* Who read it has seen enough, as 'head' has: ptbuild ends as other programs do then. */
	if (rc < 0 && errno == EPIPE) {
		(void)signal(SIGPIPE, SIG_DFL);
		(void)raise(SIGPIPE);
	}

	return rc;
}

int cmd_show(struct cmd_context *c, json_t *doc, const struct show *rows, struct err *e)
{
	AUTO_JSON json_t *own = doc;
	AUTO_BUF struct buf text = {0};
	struct term t = term_of(STDOUT_FILENO);

	c->shown = true;
	if (c->run)
		log_status_end(c->run->log);
	if (c->global->json) {
		show_strip(own);
		return json_print(own, e);
	}

	t.width = c->wraps && !t.width ? TERM_WIDTH : t.width;
	show_text(own, rows, &t, &text);
	return cmd_write_stdout(&text, e);
}

int cmd_result(struct cmd_context *c, json_t *doc, const struct show *rows, struct err *e)
{
	if (!c->global->quiet || c->global->json)
		return cmd_show(c, doc, rows, e);
	json_decref(doc);
	return 0;
}

json_t *cmd_error_json(const struct err *e)
{
	return json_pack("{s:i, s:o, s:o}", "exit_code", e->kind, "message", json_or_null(e->msg),
			 "hint", json_or_null(e->hint));
}

/* What is no file and may yet be in a file's place. */
static const struct file_kind {
	const char *values;
	bool folder; /* a directory */
	bool word;   /* root, the root's own torch, or official, a wheel of the index */
	bool pin;    /* NAME==VERSION */
	bool place;  /* a URL, or PLACE=SHA256 */
} file_kinds[] = {
	{"<file>", false, false, false, false},
	{"<wheel>", false, true, true, false},
	{"<wheel or variant>", false, true, true, false},
	{"<wheel or tree>", true, true, true, false},
	{"<tree>", true, false, false, false},
	{"<extension>", true, false, true, false},
	{"<source>", true, false, false, true},
};

static const struct file_kind *file_kind(const char *values)
{
	for (size_t i = 0; i < ARRAY_LEN(file_kinds); i++)
		if (strcmp(file_kinds[i].values, values) == 0)
			return &file_kinds[i];
	return NULL;
}

bool cmd_names_files(const char *values)
{
	return file_kind(values);
}

static const char *const file_words[] = {"official", "root"};

/* Whether the kind lets `path` be something else than a file. What it is, the command judges. */
static bool is_no_file(const struct file_kind *kind, const char *path)
{
	if (kind->place && (strchr(path, '=') || strstr(path, "://")))
		return true;
	if (kind->pin && strstr(path, "=="))
		return true;
	for (size_t i = 0; kind->word && i < ARRAY_LEN(file_words); i++)
		if (strcmp(path, file_words[i]) == 0)
			return true;
	return false;
}

/* Files on the command line must exist before anything is done. An argument is an option without
 * a name. Where a name is expected, a path of a YAML file will do. */
static int check_file(const struct arg_def *d, const char *path, struct err *e)
{
	const struct file_kind *kind = file_kind(d->values);
	struct stat st;

	if (kind ? is_no_file(kind, path) : *d->values != '<' || !path_has_suffix(path, ".yaml"))
		return 0;
	int rc = access(path, R_OK) < 0 ? -1 : stat(path, &st);
	if (rc == 0 && (S_ISREG(st.st_mode) || (kind && kind->folder && S_ISDIR(st.st_mode))))
		return 0;
	if (rc == 0)
		err_set(e, ERR_USAGE, "'%s' is not a regular file", path);
	else if (errno == ENOENT)
		err_set(e, ERR_USAGE, "'%s' does not exist", path);
	else
		err_errno(e, ERR_USAGE, "cannot read '%s'", path);
	const char *near = suggest_nearest(path, file_words, ARRAY_LEN(file_words));
	if (rc < 0 && near && d->name && kind && kind->word)
		err_hint(e, "did you mean '%s'?", near);
	return d->name ? err_wrap(e, "--%s", d->name) : -1;
}

static bool has_option(const struct command *cmd, const char *name)
{
	for (size_t i = 0; cmd->tables[i]; i++)
		for (const struct arg_def *d = cmd->tables[i]; d->name; d++)
			if (strcmp(d->name, name) == 0)
				return true;
	return false;
}

/* A word in the place of a file: "sm89", "native", "sm90-avx512". */
static int hint_word(const struct command *cmd, const char *word, struct err *e)
{
	const bool gpu = strncmp(word, "sm", 2) == 0 && isdigit((unsigned char)word[2]);
	const bool profile = strchr(word, '-') != NULL;

	if (*e->hint || access(word, F_OK) == 0)
		return -1;
	if ((strcmp(word, "native") == 0 || (gpu && !profile)) && has_option(cmd, "gpu"))
		return err_hint(e, "a GPU is named with --gpu %s", word);
	if (gpu && profile && has_option(cmd, "profile"))
		return err_hint(e, "a profile is named with --profile %s", word);
	return -1;
}

/* The kind of file that an argument must be; NULL: it is not a file, but a variant. */
static const char *argument_kind(const char *values, const char *word)
{
	const bool variant =
		strcmp(values, "<variant>") == 0 || strcmp(values, "<wheel or variant>") == 0;

	if (variant)
		return path_has_suffix(word, ".whl") ? "<file>" : NULL;
	return cmd_names_files(values) || strcmp(values, "<matrix>") == 0 ? values : NULL;
}

static int check_arguments(const struct command *cmd, const struct strlist *args, struct err *e)
{
	const struct cmd_positional *p = cmd->arguments;

	for (size_t i = 0; i < args->count; i++) {
		const char *word = args->items[i];
		const struct arg_def d = {.values =
						  argument_kind(p->values ? p->values : "", word)};
		if (d.values && check_file(&d, word, e) < 0)
			return hint_word(cmd, word, e);
	}

	return 0;
}

static int check_files(const struct command *cmd, const void *options, const struct strlist *args,
		       struct err *e)
{
	AUTO_ARENA struct arena a = {0};

	for (size_t i = 0; cmd->tables[i]; i++)
		for (const struct arg_def *d = cmd->tables[i]; d->name; d++) {
			struct strlist values = {0};
			if (d->values && d->type != ARG_PAIRS)
				args_values(d, options, &a, &values);
			for (size_t k = 0; k < values.count; k++)
				if (check_file(d, values.items[k], e) < 0)
					return -1;
		}
	return check_arguments(cmd, args, e);
}

static bool is_given(const struct command *cmd, const void *options, const char *name)
{
	for (size_t i = 0; cmd->tables[i]; i++)
		for (const struct arg_def *d = cmd->tables[i]; d->name; d++)
			if (strcmp(d->name, name) == 0)
				return args_given(d, options);
	return false;
}

/* "v2.9.1", the form of upstream's tags, is 2.9.1. "latest" is a build's default for --release; a
 * matrix names its own, and for official wheels the command itself chooses. */
static int settle_releases(const struct command *cmd, void *options, struct err *e)
{
	const bool matrix = is_given(cmd, options, "matrix") || strcmp(cmd->name, "matrix") == 0;

	for (size_t i = 0; cmd->tables[i]; i++)
		for (const struct arg_def *d = cmd->tables[i]; d->name; d++) {
			const char **at = (const char **)(void *)((char *)options + d->offset);
			const char *kind = d->values ? d->values : "";
			const bool built = strcmp(kind, "<release>") == 0;
			if ((!built && strcmp(kind, "<official>") != 0) || !*at)
				continue;
			if (**at == 'v' && isdigit((unsigned char)(*at)[1]))
				(*at)++;
			if (!built || strcmp(*at, CMD_LATEST) != 0)
				continue;
			if (matrix) {
				err_set(e, ERR_USAGE,
					"'--release latest' and a matrix cannot be used together");
				return err_hint(
					e,
					"name the release: 'ptbuild list --releases' lists them");
			}

			*at = NULL;
		}
	return 0;
}

/* "314", "cp314t" and "python3.14", which pip, tags and uv have for 3.14 and 3.14t. */
static const char *python_of(const char *word, struct arena *a)
{
	static const char *const prefixes[] = {"cpython", "python", "cp"};
	const char *text = word;

	for (size_t i = 0; i < ARRAY_LEN(prefixes) && text == word; i++)
		if (strncmp(word, prefixes[i], strlen(prefixes[i])) == 0)
			text += strlen(prefixes[i]);
	const size_t n = strspn(text, "0123456789");
	const bool threaded = strcmp(text + n, "t") == 0;
	if (*text == '3' && (n == 2 || n == 3) && (!text[n] || threaded))
		return arena_printf(a, "3.%s", text + 1);
	return strncmp(text, "3.", 2) == 0 ? text : word;
}

static void settle_pythons(const struct command *cmd, void *options, struct arena *a)
{
	for (size_t i = 0; cmd->tables[i]; i++)
		for (const struct arg_def *d = cmd->tables[i]; d->name; d++) {
			const char **at = (const char **)(void *)((char *)options + d->offset);
			if (d->values && strcmp(d->values, "<python>") == 0 && *at)
				*at = python_of(*at, a);
		}
}

static int print_version(bool json, struct err *e)
{
	static const struct show rows[] = {{.text = "{program} {version}"}, {0}};
	struct cmd_context c = {.global = &(struct cmd_globals){.json = json}};

	return cmd_show(&c,
			json_pack("{s:s, s:s}", "program", "ptbuild", "version", PTBUILD_VERSION),
			rows, e);
}

static int run_command(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	if (c->global->quiet)
		c->run->log->level = LOG_QUIET;
	else if (c->global->verbose)
		c->run->log->level = LOG_VERBOSE;
	int rc = cmd_open(c, c->row->first, e);
	if (rc == 0)
		rc = c->command->run(c, args, e);
	store_close(c->store);
	log_status_end(c->run->log);
	return rc;
}

int cmd_refuse(const struct cmd_context *c, const char *who, const char *takes, struct err *e)
{
	for (size_t i = 0; c->command->tables[i]; i++)
		for (const struct arg_def *d = c->command->tables[i]; d->name; d++)
			if (args_given(d, c->options) &&
			    !strstr(takes, arena_printf(c->arena, " %s ", d->name)))
				return err_set(e, ERR_USAGE, "%s does not support --%s", who,
					       d->name);
	return 0;
}

int cmd_action(struct cmd_context *c, const struct cmd_action *actions, size_t count,
	       const struct strlist *args, struct err *e)
{
	const char *command = c->command->name, *word = args->count ? args->items[0] : "";
	struct strlist names = {0};

	for (size_t i = 0; i < count; i++) {
		const struct cmd_action *x = &actions[i];
		strlist_ref(&names, c->arena, x->name);
		if (strcmp(word, x->name) != 0)
			continue;
		if (cmd_refuse(c, arena_printf(c->arena, "%s %s", command, x->name), x->takes, e) <
		    0)
			return -1;
		if (args->count == (x->named ? 2U : 1U))
			return x->run(c, x->named ? args->items[1] : NULL, e);
		err_set(e, ERR_USAGE,
			x->named ? "%s %s needs one name, not %zu" : "%s %s has no name argument",
			command, x->name, args->count - 1);
		return x->named ? err_hint(e, "'ptbuild %s list' has the names", command) : -1;
	}

	const char *near = suggest_nearest(word, names.items, count);
	if (*word)
		err_set(e, ERR_USAGE, "not an action of %s: '%s'", command, word);
	else
		err_set(e, ERR_USAGE, "%s needs an action", command);
	return near && *word ? err_hint(e, "did you mean '%s'?", near)
			     : err_hint(e, "its actions: %s", strlist_join(&names, c->arena, ", "));
}

static bool asks_version(const struct strlist *words)
{
	for (size_t i = 1; i < words->count && strcmp(words->items[i], "--") != 0; i++)
		if (alone(words->items[i], i + 1 < words->count ? words->items[i + 1] : "-"))
			return true;
	return false;
}

/* The command line with today's names. A command is renamed as the first word alone: further ones
 * are arguments, which may have any name. */
static char *const *rename_words(int argc, char *const *argv, struct log *log, struct arena *a)
{
	const int first = cmd_first_word(argc, (const char *const *)argv);
	struct strlist ret = {0};
	bool rest = false;

	for (int i = 0; i < argc; i++) {
		rest = rest || strcmp(argv[i], "--") == 0;
		const bool name = i == first || (!rest && i && strncmp(argv[i], "--", 2) == 0);
		const char *now = name ? cmd_new_name(argv[i], a) : NULL;
		if (now)
			log_warn(log,
				 "'%.*s' is now called '%.*s'; the next release drops the old name",
				 (int)strcspn(argv[i], "="), argv[i], (int)strcspn(now, "="), now);
		strlist_ref(&ret, a, now ? now : argv[i]);
	}

	return (char *const *)strlist_argv(&ret, a);
}

/* The commands that have an option of this name. */
static void owners_of(const char *word, struct strlist *ret, struct arena *a)
{
	for (size_t n = 0; cmd_table[n].command; n++)
		for (size_t k = 0; cmd_table[n].command->tables[k]; k++)
			if (cmd_option(cmd_table[n].command->tables[k], word))
				strlist_ref(ret, a, cmd_table[n].command->name);
}

/* For the first word that is an option of other commands: which they are, or what this command has
 * in its place. */
static void hint_owners(const struct command *cmd, const struct strlist *words, struct arena *a,
			struct err *e)
{
	struct strlist owners = {0};
	const char *word = "";

	for (size_t i = 1; i < words->count && !owners.count; i++) {
		word = arena_strndup(a, words->items[i], strcspn(words->items[i], "="));
		if (strcmp(word, "--") == 0)
			return;
		if (strncmp(word, "--", 2) == 0 && !has_option(cmd, word + 2))
			owners_of(word, &owners, a);
	}

	if (!owners.count)
		return;
	const bool dry_run = strcmp(word, "--dry-run") == 0,
		   planned = strcmp(cmd->name, "plan") == 0;
	if (dry_run && has_option(cmd, "print"))
		err_hint(e, "'ptbuild %s --print' shows what it would do", cmd->name);
	else if (dry_run && !planned && has_option(cmd, "profile"))
		err_hint(e, "'ptbuild plan' says what a build would do");
	else
		err_hint(e, "it is an option of %s; 'ptbuild help %s' lists those of %s",
			 strlist_join(&owners, a, ", "), cmd->name, cmd->name);
}

static int parse_and_run(int argc, char *const *given, const struct run *run, bool *shown,
			 struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	char *const *argv = rename_words(argc, given, run->log, &a);
	struct command_line line = {.argc = argc, .argv = argv};
	struct strlist args = {0};

	if (find_command(&line, &a, e) < 0)
		return -1;
	const struct command *cmd = line.command;
	struct strlist words = line.words;
	if (asks_version(&words))
		return print_version(strlist_contains(&words, "--json"), e);
	const struct arg_def *tables[CMD_TABLES + 1];
	size_t count = 0;
	for (; cmd->tables[count]; count++)
		tables[count] = cmd->tables[count];
	/* last: a command's own option of the same name wins */
	tables[count++] = cmd_global_options;
	size_t size = cmd->options_size > sizeof(struct cmd_globals) ? cmd->options_size
								     : sizeof(struct cmd_globals);
	struct cmd_globals *options = arena_alloc(&a, size);
	const char *const *list = strlist_argv(&words, &a);
	if (args_parse(tables, count, options, (int)words.count, (char *const *)list, &a, &args,
		       e) < 0) {
		if (!e->hint[0])
			hint_owners(cmd, &words, &a, e);
		return e->hint[0] ? -1 : err_hint(e, "see 'ptbuild %s --help'", cmd->name);
	}

	if (options->help)
		return help_show(
			&(struct cmd_context){.global = options},
			cmd_first_word(argc, (const char *const *)argv) == argc ? NULL : cmd, e);
	if (options->version)
		return print_version(options->json, e);
	if (options->verbose && options->quiet)
		return err_set(e, ERR_USAGE, "--verbose and --quiet cannot be used together");
	if (options->jobs > 4096)
		return err_set(e, ERR_USAGE, "--jobs %u is too many", options->jobs);
	if (refuse_words(cmd, &args, e) < 0 || check_files(cmd, options, &args, e) < 0)
		return -1;
	struct run protected = *run;
	settle_pythons(cmd, options, &a);
	if (settle_releases(cmd, options, e) < 0 || cmd_protections(options, &protected, e) < 0)
		return -1;
	struct plan_digests digests = {.arena = &a};
	bool store_told = false;
	struct cmd_context c = {.digests = &digests,
				.store_told = &store_told,
				.run = &protected,
				.arena = &a,
				.command = cmd,
				.row = cmd_row_of(cmd),
				.global = options,
				.options = options,
				.words = &words};
	int rc = run_command(&c, &args, e);
	if (rc < 0)
		cmd_disk_hint(&c, e);
	*shown = c.shown;
	return rc;
}

int cmd_main(int argc, char *const *argv, const struct run *run, struct err *e)
{
	struct err ignored = {0};
	bool shown = false, json = false;

	if (parse_and_run(argc, argv, run, &shown, e) == 0)
		return 0;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		json = json || strcmp(argv[i], "--json") == 0;
	AUTO_JSON json_t *doc = json_pack("{s:i, s:o}", "schema", 1, "error", cmd_error_json(e));
	if (json && !shown && json_print(doc, &ignored) < 0)
		log_verbose(run->log, "%s", ignored.msg);
	return -1;
}
