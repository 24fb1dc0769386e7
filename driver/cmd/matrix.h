/* What the files about matrices share. */
#pragma once
#include "cmd/select.h"
#include "core/ci/ci.h"

/* matrix_cost: sets what each job may use: processors by --jobs or the table, memory and time by
 * the tables and what is known of this machine's speed. */
int matrix_cost(struct cmd_context *c, const struct ci_plan *p, bool torch_named, struct err *e) MUST_CHECK;
/* matrix_status: prints how far the run in a directory is: a table, json or html. */
int matrix_status(struct cmd_context *c, const char *dir, const char *format, struct err *e) MUST_CHECK;

/* cmd_units_cost: a line on how many units the variants compile, and how many of them are distinct,
 * by the compile commands of configured trees; without trees, what is known without. */
int cmd_units_cost(struct cmd_context *c, const struct strlist *trees, const struct selections *chosen,
		   const char **ret, struct err *e) MUST_CHECK;
