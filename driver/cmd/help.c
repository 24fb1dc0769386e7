#include "cmd/help.h"

#include <stdio.h>
#include <string.h>

#include "base/term.h"

#define COLUMN 30 /* of what an option does */
#define COMMAND_COLUMN 14

void help_option(const struct arg_def *def, struct buf *out)
{
	if (def->short_name)
		buf_printf(out, "-%c, ", def->short_name);
	buf_printf(out, "--%s", def->name);
	if (def->metavar)
		buf_printf(out, " %s", def->metavar);
}

void help_synopsis(const struct command *cmd, struct buf *out)
{
	buf_printf(out, "ptbuild %s %s", cmd->name, cmd->usage);
}

static void row(struct buf *out, const char *left, size_t column, const char *right)
{
	size_t n = strlen(left) + 2;
	buf_printf(out, "  %s", left);
	if (n + 1 >= column) {
		buf_addc(out, '\n');
		n = 0;
	}
	buf_printf(out, "%*s", (int)(column - n), "");
	term_wrap(out, right, column, column, TERM_WIDTH);
}

bool help_hides(const struct command *cmd, const char *name)
{
	for (size_t i = 0; cmd && cmd->tables[i]; i++)
		for (const struct arg_def *d = cmd->tables[i]; d->name; d++)
			if (strcmp(d->name, name) == 0)
				return true;
	return false;
}

bool help_is_global(const char *name)
{
	for (const struct arg_def *d = cmd_global_options; d->name; d++)
		if (strcmp(d->name, name) == 0)
			return true;
	return false;
}

/* `hider`: the command whose own options hide some of these; NULL: none does. */
static void option_rows(struct buf *out, const struct arg_def *table, const struct command *hider)
{
	for (const struct arg_def *d = table; d->name; d++) {
		if (help_hides(hider, d->name))
			continue;
		AUTO_BUF struct buf left = {0};
		if (!d->short_name)
			buf_addstr(&left, "    ");
		help_option(d, &left);
		row(out, buf_cstr(&left), COLUMN, d->help);
	}
}

void help_overview(struct buf *out)
{
	buf_printf(out, "ptbuild %s: builds wheels of PyTorch for one exact machine\n\n", PTBUILD_VERSION);
	buf_addstr(out, "usage: ptbuild [build] --profile PROFILE [options]\n       ptbuild COMMAND [options] "
			"[ARGUMENTS]\n\ncommands:\n");
	for (size_t i = 0; cmd_table[i]; i++)
		row(out, cmd_table[i]->name, COMMAND_COLUMN, cmd_table[i]->summary);
	buf_addstr(out, "\noptions of every command:\n");
	option_rows(out, cmd_global_options, NULL);
	buf_addstr(out, "\n'ptbuild help COMMAND' tells more about one; 'ptbuild help --man | man -l -'\nis the manual "
			"page.\n");
}

static void argument_rows(struct buf *out, const struct command *cmd)
{
	if (!cmd->arguments[0].name)
		return;
	buf_addstr(out, "\narguments:\n");
	for (const struct cmd_positional *p = cmd->arguments; p->name; p++)
		row(out, p->name, COMMAND_COLUMN, p->help);
}

/* A long line is one for the shell still. */
static void example(struct buf *out, const struct cmd_example *x)
{
	AUTO_BUF struct buf line = {0};
	term_wrap(&line, x->line, 4, 2, TERM_WIDTH - 2);
	buf_addstr(out, "  ");
	for (const char *p = buf_cstr(&line); *p; p++) {
		if (*p == '\n' && p[1])
			buf_addstr(out, " \\");
		buf_addc(out, *p);
	}
	buf_addstr(out, "      ");
	term_wrap(out, x->what, 6, 6, TERM_WIDTH);
}

void help_command(const struct command *cmd, struct buf *out)
{
	AUTO_BUF struct buf synopsis = {0};
	help_synopsis(cmd, &synopsis);
	buf_addstr(out, "usage: ");
	term_wrap(out, buf_cstr(&synopsis), 9, 7, TERM_WIDTH);
	buf_printf(out, "\n%s\n", cmd->summary);
	for (const char *p = cmd->text; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
		buf_addc(out, '\n');
		term_wrap(out, p, 0, 0, TERM_WIDTH);
	}
	argument_rows(out, cmd);
	if (cmd->tables[0])
		buf_addstr(out, "\noptions:\n");
	for (size_t i = 0; cmd->tables[i]; i++)
		option_rows(out, cmd->tables[i], NULL);
	buf_addstr(out, "\noptions of every command:\n");
	option_rows(out, cmd_global_options, cmd);
	if (cmd->examples[0].line)
		buf_addstr(out, "\nexamples:\n");
	for (const struct cmd_example *x = cmd->examples; x->line; x++)
		example(out, x);
}

/* ---- the command itself ---- */

struct help_options {
	struct cmd_globals global;
	bool man;
};

static int run_help(struct cmd_context *c, const struct strlist *args, struct err *e)
{
	const struct help_options *o = c->options;
	AUTO_BUF struct buf text = {0};
	if (args->count > 1)
		return err_set(e, ERR_USAGE, "help takes one command, not %zu", args->count);
	if (o->man && args->count) {
		err_set(e, ERR_USAGE, "--man prints the page of all commands, not of '%s'", args->items[0]);
		return err_hint(e, "leave one of the two out");
	}
	if (o->man) {
		man_page(&text);
	} else if (args->count == 0) {
		help_overview(&text);
	} else {
		const struct command *cmd = cmd_find(args->items[0]);
		if (!cmd)
			return cmd_unknown(args->items[0], e);
		help_command(cmd, &text);
	}
	return cmd_write_stdout(&text, e);
}

static const struct arg_def help_options[] = {
	{"man", 0, ARG_FLAG, offsetof(struct help_options, man), NULL, "print the manual page in roff", NULL},
	{0},
};

const struct command command_help = {
	.name = "help",
	.summary = "explain the program or a command",
	.usage = "[COMMAND] [--man]",
	.tables = {help_options},
	.arguments = {{"COMMAND", "the command to explain", "<command>"}},
	.examples = {{"ptbuild help plan", "what plan does"},
		     {"ptbuild help --man | man -l -", "read the manual page"}},
	.options_size = sizeof(struct help_options),
	.run = run_help,
};
