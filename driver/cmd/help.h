/* What is printed from the command table: help, the man page, completions. */
#pragma once
#include "base/buf.h"
#include "cmd/cmd.h"

/* help_overview: all commands, a line each. help_command: one, with its options. */
void help_overview(struct buf *out);
void help_command(const struct command *cmd, struct buf *out);
/* help_synopsis: "ptbuild plan [options] VARIANT...", no newline. */
void help_synopsis(const struct command *cmd, struct buf *out);
/* help_option: "-j, --jobs N", no newline. */
void help_option(const struct arg_def *def, struct buf *out);
/* help_hides: whether the command has an option of its own of that name, which hides the global
 * one; NULL has none. help_is_global: whether every command has it. */
bool help_hides(const struct command *cmd, const char *name);
bool help_is_global(const char *name);
/* man_page: ptbuild(1) in roff's man macros. */
void man_page(struct buf *out);
/* completion_script: for "bash", "zsh" or "fish"; ERR_USAGE for another shell. */
int completion_script(const char *shell, struct buf *out, struct err *e) MUST_CHECK;
/* cmd_write_stdout: all bytes to standard output. */
int cmd_write_stdout(const struct buf *text, struct err *e) MUST_CHECK;
