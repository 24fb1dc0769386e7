#include <stdio.h>
#include <string.h>

#include "cmd/help.h"

/* Values from the tables ("<release>") come from the program itself when the shell completes. */
static bool is_kind(const char *values, const char *kind)
{
	return values && strcmp(values, kind) == 0;
}

static bool is_dynamic(const char *values)
{
	return values && values[0] == '<' && !is_kind(values, "<file>") && !is_kind(values, "<dir>") &&
	       !is_kind(values, "<command>");
}

/* The name of a kind, as the arguments of "%.*s". */
#define KIND(values) (int)strlen(values) - 2, (values) + 1

static void command_names(struct buf *out)
{
	for (size_t i = 0; cmd_table[i]; i++)
		buf_printf(out, "%s%s", i ? " " : "", cmd_table[i]->name);
}

/* ---- bash ---- */

static void bash_values(const char *values, struct buf *out)
{
	if (is_kind(values, "<dir>") || is_kind(values, "<file>")) {
		buf_printf(out, "compgen -%c -- \"$cur\"", values[1]);
		return;
	}
	buf_addstr(out, "compgen -W \"");
	if (is_kind(values, "<command>"))
		command_names(out);
	else if (is_dynamic(values))
		buf_printf(out, "$(ptbuild completion --words %.*s 2>/dev/null)", KIND(values));
	else
		buf_addstr(out, values ? values : "");
	buf_addstr(out, "\" -- \"$cur\"");
}

/* "build:--profile|build:-p"; the global ones, of any command, have its name as '*'. */
static void bash_option(const char *cmd, const struct arg_def *d, struct buf *out)
{
	buf_printf(out, "\t%s:--%s", cmd, d->name);
	if (d->short_name)
		buf_printf(out, "|%s:-%c", cmd, d->short_name);
	buf_addc(out, ')');
}

/* What follows an option. A flag needs a line only where it hides a global option. */
static void bash_value_cases(const char *cmd, const struct arg_def *table, struct buf *out)
{
	for (const struct arg_def *d = table; d->name; d++) {
		if (d->type == ARG_FLAG && (*cmd == '*' || !help_is_global(d->name)))
			continue;
		bash_option(cmd, d, out);
		if (d->type != ARG_FLAG) {
			buf_addstr(out, " mapfile -t COMPREPLY < <(");
			bash_values(d->values, out);
			buf_addstr(out, "); return");
		}
		buf_addstr(out, ";;\n");
	}
}

static void bash_names(const struct arg_def *table, struct buf *out)
{
	for (const struct arg_def *d = table; d->name; d++) {
		buf_printf(out, " --%s", d->name);
		if (d->short_name)
			buf_printf(out, " -%c", d->short_name);
	}
}

static void bash_command(const struct command *cmd, struct buf *out)
{
	buf_printf(out, "\t%s)\n\t\twords=\"", cmd->name);
	for (size_t i = 0; cmd->tables[i]; i++)
		bash_names(cmd->tables[i], out);
	buf_addstr(out, "\"\n");
	if (cmd->arguments[0].name) {
		buf_addstr(out, "\t\tif [[ $cur != -* ]]; then mapfile -t COMPREPLY < <(");
		bash_values(cmd->arguments[0].values, out);
		buf_addstr(out, "); fi\n");
	}
	buf_addstr(out, "\t\t;;\n");
}

/* bash makes a word of its own of the '=' in --name=value, and leaves the quote that a word begins with. */
static const char bash_words[] = "\tlocal cur prev word cmd= words\n"
				 "\tCOMPREPLY=()\n\tcur=${COMP_WORDS[COMP_CWORD]}\n\tprev=${COMP_WORDS[COMP_CWORD-1]}\n"
				 "\tif [[ $cur == '=' ]]; then cur=\n"
				 "\telif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
				 "\tcur=${cur#[\\\"\\']}\n";

static void bash_script(struct buf *out)
{
	buf_printf(out, "# bash completion of ptbuild, printed by 'ptbuild completion bash'\n_ptbuild()\n{\n%s",
		   bash_words);
	buf_addstr(out, "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n\t\tcase \" ");
	command_names(out);
	buf_addstr(out, " \" in *\" $word \"*) cmd=$word; break;; esac\n\tdone\n\tcase ${cmd:-build}:$prev in\n");
	for (size_t i = 0; cmd_table[i]; i++)
		for (size_t j = 0; cmd_table[i]->tables[j]; j++)
			bash_value_cases(cmd_table[i]->name, cmd_table[i]->tables[j], out);
	bash_value_cases("*", cmd_global_options, out);
	buf_addstr(out, "\tesac\n\tcase $cmd in\n");
	for (size_t i = 0; cmd_table[i]; i++)
		bash_command(cmd_table[i], out);
	buf_addstr(out, "\t*) words=\"");
	command_names(out);
	for (size_t i = 0; command_build.tables[i]; i++)
		bash_names(command_build.tables[i], out);
	buf_addstr(out, "\"\n\t\t[[ $cur != *torch* ]] || words+=\" $(ptbuild completion --words variant 2>/dev/null)\""
			";;\n\tesac\n\t(( ${#COMPREPLY[@]} )) || mapfile -t COMPREPLY < <(compgen -W \"$words");
	bash_names(cmd_global_options, out);
	buf_addstr(out, "\" -- \"$cur\")\n}\ncomplete -F _ptbuild ptbuild\n");
}

/* ---- zsh ---- */

/* Help text inside zsh's and fish's single-quoted specifications. */
static void quoted(struct buf *out, const char *text, bool zsh)
{
	for (; *text; text++) {
		if (*text == '\'')
			buf_addstr(out, zsh ? "'\\''" : "\\'");
		else if (zsh && (*text == '[' || *text == ']' || *text == ':'))
			buf_printf(out, "\\%c", *text);
		else
			buf_addc(out, *text);
	}
}

static void zsh_action(const char *values, struct buf *out)
{
	if (is_kind(values, "<dir>") || is_kind(values, "<file>")) {
		buf_addstr(out, values[1] == 'd' ? "_path_files -/" : "_files");
	} else if (is_kind(values, "<command>")) {
		buf_addc(out, '(');
		command_names(out);
		buf_addc(out, ')');
	} else if (is_dynamic(values)) {
		buf_printf(out, "_ptbuild_words %.*s", KIND(values));
	} else {
		buf_printf(out, values ? "(%s)" : " %s", values ? values : "");
	}
}

static void zsh_options(const struct arg_def *table, struct buf *out)
{
	for (const struct arg_def *d = table; d->name; d++) {
		for (int form = 0; form < (d->short_name ? 2 : 1); form++) {
			const char *star = d->type == ARG_LIST || d->type == ARG_PAIRS ? "*" : "";
			if (form == 0)
				buf_printf(out, "\t\t'%s--%s%s[", star, d->name, d->type == ARG_FLAG ? "" : "=");
			else
				buf_printf(out, "\t\t'%s-%c[", star, d->short_name);
			quoted(out, d->help, true);
			buf_addc(out, ']');
			if (d->type != ARG_FLAG) {
				buf_printf(out, ":%s:", d->metavar);
				zsh_action(d->values, out);
			}
			buf_addstr(out, "' \\\n");
		}
	}
}

static void zsh_command(const struct command *cmd, struct buf *out)
{
	const char *between = "";
	buf_printf(out, "\t%s)\n\t\t_arguments ${global:#*--(", cmd->name); /* but for those it hides */
	for (size_t i = 0; cmd->tables[i]; i++)
		for (const struct arg_def *d = cmd->tables[i]; d->name; d++)
			if (help_is_global(d->name)) {
				buf_printf(out, "%s%s", between, d->name);
				between = "|";
			}
	buf_addstr(out, ")(|=)\\[*} \\\n");
	for (size_t i = 0; cmd->tables[i]; i++)
		zsh_options(cmd->tables[i], out);
	if (cmd->arguments[0].name) {
		buf_addstr(out, "\t\t'*:");
		quoted(out, cmd->arguments[0].help, true);
		buf_addc(out, ':');
		zsh_action(cmd->arguments[0].values, out);
		buf_addstr(out, "' \\\n");
	}
	buf_addstr(out, "\t\t;;\n");
}

/* The words before the cursor name the command; _arguments is to see the others alone. */
static const char zsh_body[] =
	"\tlocal cmd= i\n"
	"\tfor (( i = 2; i < CURRENT; i++ )); do\n"
	"\t\tif (( ${names[(Ie)$words[i]]} )); then cmd=$words[i]; words[i]=(); (( CURRENT-- )); break; fi\n"
	"\tdone\n"
	"\tif (( CURRENT == 2 )) && [[ -z $cmd && $words[2] != -* ]]; then\n"
	"\t\t_describe command commands\n"
	"\t\t[[ $words[2] != *torch* ]] || _ptbuild_words variant\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tcase ${cmd:-build} in\n";

static void zsh_script(struct buf *out)
{
	buf_addstr(out,
		   "#compdef ptbuild\n# zsh completion of ptbuild, printed by 'ptbuild completion zsh'\n"
		   /* _arguments puts options for compadd before the kind */
		   "_ptbuild_words() { local -a w; w=(${(f)\"$(ptbuild completion --words $@[-1] 2>/dev/null)\"}); "
		   "compadd \"${@[1,-2]}\" -a w }\n"
		   "_ptbuild() {\n\tlocal -a global commands names\n\tglobal=(\n");
	AUTO_BUF struct buf global = {0};
	zsh_options(cmd_global_options, &global);
	for (const char *p = buf_cstr(&global); *p; p++) /* no continuation lines in an array */
		if (p[0] != ' ' || p[1] != '\\' || p[2] != '\n')
			buf_addc(out, *p);
		else
			p++;
	buf_addstr(out, "\t)\n\tcommands=(\n");
	for (size_t i = 0; cmd_table[i]; i++) {
		buf_printf(out, "\t\t'%s:", cmd_table[i]->name);
		quoted(out, cmd_table[i]->summary, true);
		buf_addstr(out, "'\n");
	}
	buf_printf(out, "\t)\n\tnames=(${commands%%%%:*})\n%s", zsh_body);
	for (size_t i = 0; cmd_table[i]; i++)
		zsh_command(cmd_table[i], out);
	buf_addstr(out,
		   "\tesac\n}\n"
		   /* from a file in $fpath it is called at once; sourced, it is registered */
		   "if [[ $funcstack[1] == _ptbuild ]]; then _ptbuild \"$@\"; else compdef _ptbuild ptbuild; fi\n");
}

/* ---- fish ---- */

static void fish_values(const char *values, struct buf *out)
{
	if (is_kind(values, "<file>")) {
		buf_addstr(out, " -F");
	} else if (is_kind(values, "<dir>")) {
		buf_addstr(out, " -a '(__fish_complete_directories (commandline -ct))'");
	} else if (is_kind(values, "<command>")) {
		buf_addstr(out, " -a '");
		command_names(out);
		buf_addc(out, '\'');
	} else if (is_dynamic(values)) {
		buf_printf(out, " -a '(ptbuild completion --words %.*s 2>/dev/null)'", KIND(values));
	} else if (values) {
		buf_printf(out, " -a '%s'", values);
	}
}

static void fish_options(const struct arg_def *table, const char *condition, struct buf *out)
{
	for (const struct arg_def *d = table; d->name; d++) {
		buf_printf(out, "complete -c ptbuild%s", condition);
		for (size_t i = 0; !*condition && cmd_table[i]; i++) /* a global one, which some commands hide */
			if (help_hides(cmd_table[i], d->name))
				buf_printf(out, " -n 'not __fish_seen_subcommand_from %s'", cmd_table[i]->name);
		buf_printf(out, " -l %s", d->name);
		if (d->short_name)
			buf_printf(out, " -s %c", d->short_name);
		if (d->type != ARG_FLAG) {
			buf_addstr(out, is_kind(d->values, "<file>") ? " -r" : " -x");
			fish_values(d->values, out);
		}
		buf_addstr(out, " -d '");
		quoted(out, d->help, false);
		buf_addstr(out, "'\n");
	}
}

static void fish_command(const struct command *cmd, const char *condition, struct buf *out)
{
	for (size_t i = 0; cmd->tables[i]; i++)
		fish_options(cmd->tables[i], condition, out);
	if (!cmd->arguments[0].values)
		return;
	buf_printf(out, "complete -c ptbuild%s", condition);
	fish_values(cmd->arguments[0].values, out);
	buf_addc(out, '\n');
}

static void fish_script(struct buf *out)
{
	buf_addstr(out, "# fish completion of ptbuild, printed by 'ptbuild completion fish'\ncomplete -c ptbuild -f\n");
	fish_options(cmd_global_options, "", out);
	fish_command(&command_build, " -n __fish_use_subcommand", out);
	for (size_t i = 0; cmd_table[i]; i++) {
		char condition[128];
		buf_printf(out, "complete -c ptbuild -n __fish_use_subcommand -a %s -d '", cmd_table[i]->name);
		quoted(out, cmd_table[i]->summary, false);
		buf_addstr(out, "'\n");
		snprintf(condition, sizeof(condition), " -n '__fish_seen_subcommand_from %s'", cmd_table[i]->name);
		fish_command(cmd_table[i], condition, out);
	}
}

int completion_script(const char *shell, struct buf *out, struct err *e)
{
	static const struct {
		const char *shell;
		void (*script)(struct buf *out);
	} shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (strcmp(shells[i].shell, shell) == 0) {
			shells[i].script(out);
			return 0;
		}
	err_set(e, ERR_USAGE, "no completion script for the shell '%s'", shell);
	return err_hint(e, "it is bash, zsh or fish");
}
