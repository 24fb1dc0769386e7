/* The table of commands as a document: the help, and the manual page. */
#include "cmd/cmd.h"

#include "base/sys/json.h"

#define OPTION_WIDTH 27 /* a longer one has a line of its own */

static json_t *option_json(const struct arg_def *d)
{
	AUTO_BUF struct buf name = {0};
	AUTO_BUF struct buf column = {0};

	if (d->short_name)
		buf_printf(&name, "-%c, ", d->short_name);
	buf_printf(&name, "--%s%s%s", d->name, d->metavar ? " " : "", d->metavar ? d->metavar : "");
	buf_printf(&column, "%s%s", d->short_name ? "" : "    ", buf_cstr(&name));
	const bool longer = column.len >= OPTION_WIDTH;
	return json_pack("{s:s, s:s, s:s, s:s}", "name", buf_cstr(&name), "help", d->help, "-long",
			 longer ? buf_cstr(&column) : "", "-column",
			 longer ? " " : buf_cstr(&column));
}

/* `hider`: the command whose own options hide some of these; NULL: none does. */
static void add_options(json_t *list, const struct arg_def *table, const struct command *hider)
{
	AUTO_ARENA struct arena a = {0};

	for (const struct arg_def *d = table; d->name; d++) {
		bool hidden = false;
		for (size_t i = 0; hider && hider->tables[i]; i++)
			hidden = hidden ||
				 cmd_option(hider->tables[i], arena_printf(&a, "--%s", d->name));
		if (!hidden)
			json_array_append_new(list, option_json(d));
	}
}

char *help_line(const char *line, struct arena *a)
{
	AUTO_BUF struct buf wrapped = {0};
	AUTO_BUF struct buf text = {0};

	term_wrap(&wrapped, line, 0, 4, TERM_WIDTH - 2);
	for (const char *p = buf_cstr(&wrapped); *p; p++) {
		if (*p == '\n' && p[1])
			buf_addstr(&text, " \\");
		if (*p != '\n' || p[1])
			buf_addc(&text, *p);
	}

	return arena_strdup(a, buf_cstr(&text));
}

static json_t *example_json(const char *line, const char *what)
{
	AUTO_ARENA struct arena a = {0};
	return json_pack("{s:s, s:s, s:s}", "line", line, "what", what, "-line",
			 help_line(line, &a));
}

/* ---- help/NAME.txt ---- */

/* All files of help/, each below a line "= NAME". */
extern const unsigned char help_texts[];
extern const size_t help_texts_size;

struct reader {
	const char *example; /* the command line that the paragraph explains; NULL: none */
	struct buf paragraph;
	json_t *text, *examples;
};

static void end_paragraph(struct reader *r)
{
	const char *paragraph = buf_cstr(&r->paragraph);

	if (r->example)
		json_array_append_new(r->examples, example_json(r->example, paragraph));
	else if (*paragraph)
		json_array_append_new(r->text, json_string(paragraph));
	r->example = NULL;
	buf_reset(&r->paragraph);
}

/* Paragraphs have empty lines between them. One that begins with an
 * indented line is an example: a command line, and what it does. */
static void read_lines(const char *at, struct arena *a, struct reader *r)
{
	static const char indent[] = "    ";

	while (*at && strncmp(at, "= ", 2) != 0) {
		const char *line = arena_strndup(a, at, strcspn(at, "\n"));
		at += strlen(line) + 1;
		if (!*line)
			end_paragraph(r);
		else if (strncmp(line, indent, strlen(indent)) == 0)
			r->example = line + strlen(indent);
		else
			buf_printf(&r->paragraph, "%s%s", r->paragraph.len ? " " : "", line);
	}

	end_paragraph(r);
}

/* What the file of a command has: paragraphs, and examples. */
static void read_help(const char *name, json_t *text, json_t *examples)
{
	AUTO_ARENA struct arena a = {0};
	struct reader r = {.text = text, .examples = examples};
	const char *all = arena_strndup(&a, (const char *)help_texts, help_texts_size);
	const char *title = arena_printf(&a, "\n= %s\n", name), *at = strstr(all, title);

	if (at)
		read_lines(at + strlen(title), &a, &r);
	buf_release(&r.paragraph);
}

static json_t *command_json(const struct command *cmd)
{
	json_t *arguments = json_array(), *options = json_array(), *every = json_array();
	json_t *text = json_array(), *examples = json_array();

	read_help(cmd->name, text, examples);
	for (const struct cmd_positional *p = cmd->arguments; p->name; p++)
		json_array_append_new(arguments,
				      json_pack("{s:s, s:s}", "name", p->name, "help", p->help));
	for (size_t i = 0; cmd->tables[i]; i++)
		add_options(options, cmd->tables[i], NULL);
	add_options(every, cmd_global_options, cmd);
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "name", cmd->name, "usage",
			 cmd->usage, "summary", cmd->summary, "text", text, "arguments", arguments,
			 "options", options, "global_options", every, "examples", examples);
}

static const struct show option_rows[] = {
	{.text = "{-long}", .indent = 2}, SHOW("{-column:<27}", "{help}", .indent = 2), {0}};

static const struct show command_rows[] = {
	{.text = "usage: ptbuild {name} {usage}"},
	{.text = "\n{summary}"},
	{.text = "\n{}", .each = "text"},
	{.text = "\n{?arguments}arguments:"},
	SHOW("{name:<11}", "{help}", .each = "arguments", .indent = 2),
	{.text = "\n{?options}options:"},
	{.each = "options", .rows = option_rows},
	{.text = "\noptions of every command:"},
	{.each = "global_options", .rows = option_rows},
	{.text = "\n{?examples}examples:"},
	{.text = "{-line}\n    {what}", .each = "examples", .indent = 2},
	{0}};

static const struct show overview_rows[] = {
	{.text = "ptbuild {version}: builds wheels of PyTorch for one exact machine"},
	{.text = "\nusage: ptbuild \\[build\\] --profile PROFILE \\[options\\]"},
	{.text = "ptbuild COMMAND \\[options\\] \\[ARGUMENTS\\]", .indent = 7},
	{.text = "\ncommands:"},
	SHOW("{name:<11}", "{summary}", .each = "commands", .indent = 2),
	{.text = "\noptions of every command:"},
	{.each = "options", .rows = option_rows},
	{.text = "\n'ptbuild help COMMAND' tells more about one; 'ptbuild help --man | man -l -' "
		 "is the manual page."},
	{0}};

/* ---- the manual page ---- */

struct help_row {
	const char *line, *what;
};

static const struct help_row statuses[] = {
	{"0", "success"},
	{"2", "the command line is wrong"},
	{"3", "a table, profile or name is wrong"},
	{"4", "a file could not be downloaded"},
	{"5", "wrong bytes: a digest, an archive or a wheel"},
	{"6", "a compiler or build tool failed"},
	{"7", "what was built is not what was asked for, the combination cannot work, or no "
	      "sandbox can be made"},
	{"8", "the machine: disk, memory, permissions, a missing tool"},
	{"130", "interrupted"},
	{0}};
static const struct help_row environment[] = {
	{"PTBUILD_DATA_DIR", "the directory that holds profiles and patches"},
	{"XDG_CACHE_HOME", "without --cache, the store is its subdirectory ptbuild"},
	{"PTBUILD_LOWER_STORE",
	 "fallback stores beside those of --lower-store, with colons between them"},
	{"PTBUILD_STORE_URL", "the remote store, without --store-url"},
	{"PTBUILD_CCACHE_REMOTE", "the server of the compiler cache, without --ccache-remote"},
	{"CUDA_HOME", "a CUDA toolkit to look at first, without --root and --cuda-home"},
	{"NO_COLOR", "any text in it switches colours off, as TERM=dumb does"},
	{0}};
static const struct help_row files[] = {
	{"~/.cache/ptbuild", "the store: sources, wheels, build trees"},
	{"dist", "where wheels go without --out"},
	{0}};

static json_t *pairs_json(const struct help_row *x)
{
	json_t *list = json_array();

	for (; x->line; x++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s}", "name", x->line, "help", x->what));
	return list;
}

static json_t *all_json(void)
{
	json_t *commands = json_array(), *options = json_array();

	for (size_t i = 0; cmd_table[i].command; i++)
		json_array_append_new(commands, command_json(cmd_table[i].command));
	add_options(options, cmd_global_options, NULL);
	return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "version",
			 PTBUILD_VERSION, "commands", commands, "options", options, "exit_status",
			 pairs_json(statuses), "environment", pairs_json(environment), "files",
			 pairs_json(files));
}

/* Escapes text for roff: no line may look like a request, and hyphens and backslashes print
 * themselves. */
static void roff(const char *text, struct buf *out)
{
	static const char *const escapes[128] = {
		['\\'] = "\\e", ['-'] = "\\-", ['"'] = "\\(dq", ['~'] = "\\(ti"};

	if (*text == '.' || *text == '\'')
		buf_addstr(out, "\\&");
	for (const char *p = text; *p; p++) {
		const char *escape =
			(unsigned char)*p < ARRAY_LEN(escapes) ? escapes[(unsigned char)*p] : NULL;
		buf_add(out, escape ? escape : p, escape ? strlen(escape) : 1);
	}
}

#define ITEM ".TP\n\\\\fB{name}\\\\fR\n{help}\n"

static const struct show man_command[] = {{.text = ".PP\n{}\n", .each = "text"},
					  {.text = ITEM, .each = "arguments"},
					  {.text = ITEM, .each = "options"},
					  {0}};
static const struct show man_example[] = {
	{.text = ".TP\n\\\\fB{line}\\\\fR\n{what}\n", .each = "examples"}, {0}};
static const struct show man_rows[] = {
	{.text = ".TH PTBUILD 1 \"\" \"ptbuild {version}\" \"User Commands\"\n.SH NAME\nptbuild "
		 "\\\\- build PyTorch "
		 "wheels for one exact machine\n.SH SYNOPSIS\n.B ptbuild\n\\[build\\] "
		 "\\\\-\\\\-profile "
		 "\\\\fIPROFILE\\\\fR \\[options\\]\n.br\n.B ptbuild\n\\\\fICOMMAND\\\\fR "
		 "\\[options\\] "
		 "\\[\\\\fIARGUMENTS\\\\fR\\]\n"
		 ".SH DESCRIPTION\nptbuild fetches the pinned sources of PyTorch, torchvision and "
		 "torchaudio and "
		 "checks their digests. It turns a profile (a list of GPU architectures, a CPU "
		 "instruction set, a "
		 "BLAS) into environment variables and CMake cache entries, builds in a sandbox "
		 "without network "
		 "access, proves that what was asked for is what was built, and packs a "
		 "relocatable wheel.\n.SH "
		 "COMMANDS\n"},
	{.text = ".SS \"ptbuild {name} {usage}\"\n{summary}.\n",
	 .each = "commands",
	 .rows = man_command},
	{.text = ".SH OPTIONS OF EVERY COMMAND\n"},
	{.text = ITEM, .each = "options"},
	{.text = ".SH EXAMPLES\n"},
	{.each = "commands", .rows = man_example},
	{.text = ".SH EXIT STATUS\n"},
	{.text = ITEM, .each = "exit_status"},
	{.text = ".SH ENVIRONMENT\n"},
	{.text = ITEM, .each = "environment"},
	{.text = ".SH FILES\n"},
	{.text = ITEM, .each = "files"},
	{0}};

/* ---- the command itself ---- */

int help_show(struct cmd_context *c, const struct command *cmd, struct err *e)
{
	c->wraps = true;
	json_t *doc = cmd ? json_pack("{s:i}", "schema", 1) : all_json();
	if (cmd)
		json_object_update_new(doc, command_json(cmd));
	return cmd_show(c, doc, cmd ? command_rows : overview_rows, e);
}

struct help_options {
	struct cmd_globals global;
	bool man;
};

static int run_help(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct help_options *o = c->options;
	AUTO_BUF struct buf page = {0};

	if (args->count > 1)
		return err_set(e, ERR_USAGE, "help takes one command, not %zu", args->count);
	if (o->man && args->count) {
		err_set(e, ERR_USAGE, "--man prints the page of all commands, not of '%s'",
			args->items[0]);
		return err_hint(e, "leave one of the two out");
	}

	if (o->man && o->global.json)
		return err_set(
			e, ERR_USAGE,
			"--man prints roff, and 'ptbuild help --json' the same as a document");
	if (o->man) {
		AUTO_JSON json_t *doc = all_json();
		show_markup(doc, man_rows, roff, &page);
		return cmd_write_stdout(&page, e);
	}

	const char *now = args->count ? cmd_new_name(args->items[0], c->arena) : NULL;
	const char *name = now || !args->count ? now : args->items[0];
	const struct command *cmd = name ? cmd_find(name) : NULL;
	return args->count && !cmd ? cmd_unknown(args->items[0], e) : help_show(c, cmd, e);
}

static const struct arg_def help_options[] = {
	{"man", 0, ARG_FLAG, offsetof(struct help_options, man), NULL,
	 "print the manual page in roff", NULL},
	{0},
};

const struct command command_help = {
	.name = "help",
	.summary = "explain the program or a command",
	.usage = "[COMMAND] [--man]",
	.tables = {help_options},
	.arguments = {{"COMMAND", "the command to explain", "<command>"}},
	.options_size = sizeof(struct help_options),
	.run = run_help,
};
