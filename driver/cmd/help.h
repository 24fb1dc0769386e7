/* What is printed from the command table. */
#pragma once
#include "base/buf.h"
#include "cmd/cmd.h"

/* help_show: a command with its options; NULL: all commands, a line each. */
int help_show(struct cmd_context *c, const struct command *cmd, struct err *e) MUST_CHECK;
/* cmd_write_stdout: all bytes to standard output. */
int cmd_write_stdout(const struct buf *text, struct err *e) MUST_CHECK;
/* help_line: a command line, in lines of less than TERM_WIDTH that are one for the shell still. */
char *help_line(const char *line, struct arena *a) __attribute__((returns_nonnull));
