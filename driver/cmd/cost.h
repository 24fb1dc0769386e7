/* What a planned build takes on this machine and what it needs, for the commands that say it. */
#pragma once
#include "cmd/root.h"
#include "core/ci/ci.h"
#include "core/plan/plan.h"
#include "step/pipeline/cost.h"
#include "step/pipeline/pipeline_preflight.h"

struct cmd_cost {
	struct cost cost;
	struct cost_downloads downloads;
	unsigned jobs;
	bool torch; /* one that is built first is not in it */
};

/* cmd_cost: by the tables and what is in the store; `root` is what it stands
 * on, `torch` what --torch names (NULL: nothing). */
int cmd_cost(struct cmd_context *c, const struct plan *p, const struct cmd_root_state *root, const char *torch,
	     struct arena *a, struct cmd_cost *ret, struct err *e) MUST_CHECK;
/* cmd_cost_time: the line for people. */
char *cmd_cost_time(const struct cmd_cost *k, struct arena *a);

/* cmd_needs_request: of the root that the command stands on (cmd_root_enter): that one, or of a
 * world that is not made yet this machine's, with what it will take. `plan` NULL: of the
 * release. */
int cmd_needs_request(struct cmd_context *c, const struct release_row *release, const struct plan *plan,
		      struct preflight_request *ret, struct err *e) MUST_CHECK;
/* cmd_needs_reach: the network's row: asks the places of what the store lacks. */
int cmd_needs_reach(struct cmd_context *c, struct preflight *d, struct err *e) MUST_CHECK;
/* cmd_has_others: whether a wheel may come from another store, and nothing is built. */
bool cmd_has_others(const struct cmd_context *c);
/* cmd_needs_before: refuses variants of one root by what can be known before it is made: tables,
 * machine, network. `matrix`: a variant that the tables refuse is left to its build. */
int cmd_needs_before(struct cmd_context *c, const struct cmd_root_group *g, bool matrix, struct err *e) MUST_CHECK;
/* cmd_needs_network: refuses (ERR_NETWORK) a plan whose sources or world's files no place has. */
int cmd_needs_network(struct cmd_context *c, const struct plan *p, struct err *e) MUST_CHECK;
/* cmd_needs_space: refuses a world that is to be made where the store's disk has no room for it. */
int cmd_needs_space(struct cmd_context *c, const struct world *w, struct err *e) MUST_CHECK;
/* cmd_needs_plan: refuses a plan that its world cannot serve, by the world's locks. */
int cmd_needs_plan(struct cmd_context *c, const struct plan *p, const struct world *w, struct err *e) MUST_CHECK;

/* What the files about matrices share. */
/* matrix_cost: sets what each job may use: processors by --jobs or the format's row,
 * memory and time by the tables and what is known of this machine's speed. */
int matrix_cost(struct cmd_context *c, const struct ci_plan *p, const char *format, bool torch_named,
		struct err *e) MUST_CHECK;
/* matrix_status: prints how far the run in a directory is: a table, json or html. */
int matrix_status(struct cmd_context *c, const char *dir, const char *format, struct err *e) MUST_CHECK;

/* cmd_units_cost: a line on how many units the variants compile, and how many of them are distinct,
 * by the compile commands of configured trees; without trees, what is known without. */
int cmd_units_cost(struct cmd_context *c, const struct strlist *trees, const struct selections *chosen,
		   const char **ret, struct err *e) MUST_CHECK;
