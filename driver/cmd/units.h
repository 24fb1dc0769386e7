/* What a matrix costs, from the compile commands of trees that were configured. Shared by units,
 * plan and build. */
#pragma once
#include "cmd/select.h"
#include "core/ci/units.h"

/* cmd_units_model: reads the trees and compares them. */
int cmd_units_model(struct cmd_context *c, const struct strlist *trees, struct unit_model *ret,
		    struct err *e) MUST_CHECK;
/* cmd_units_cost: a line about what the chosen variants compile: how many units, how many of them
 * distinct. Without trees: what is known without them. */
int cmd_units_cost(struct cmd_context *c, const struct strlist *trees, const struct selections *chosen,
		   const char **ret, struct err *e) MUST_CHECK;
