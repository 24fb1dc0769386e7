/* What only the files of 'ptbuild matrix' share. */
#pragma once
#include "cmd/cmd.h"
#include "core/ci/ci.h"

/* matrix_cost: sets what each job may use: processors by --jobs or the table, memory and time by
 * the tables and this store's history. */
int matrix_cost(struct cmd_context *c, const struct ci_plan *p, bool torch_named, struct err *e) MUST_CHECK;
/* matrix_status: prints how far the run in a directory is: a table, json or html. */
int matrix_status(struct cmd_context *c, const char *dir, const char *format, struct err *e) MUST_CHECK;
