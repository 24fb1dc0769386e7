/* What a matrix compiles, from the compile commands of configured trees. */
#pragma once
#include "cmd/select.h"
#include "core/ci/units.h"

/* cmd_units_model: reads the trees and compares them. */
int cmd_units_model(struct cmd_context *c, const struct strlist *trees, struct unit_model *ret,
		    struct err *e) MUST_CHECK;
/* cmd_units_cost: a line on how many units the variants compile, and how many of them are distinct;
 * without trees, what is known without. */
int cmd_units_cost(struct cmd_context *c, const struct strlist *trees, const struct selections *chosen,
		   const char **ret, struct err *e) MUST_CHECK;
