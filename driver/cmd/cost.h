/* What a planned build takes on this machine, for the commands that say it. */
#pragma once
#include "cmd/root.h"
#include "core/plan/plan.h"
#include "step/pipeline/cost.h"

struct cmd_cost {
	struct cost cost;
	struct cost_downloads downloads;
	unsigned jobs;
	bool torch; /* one that is built first is not in it */
};

/* cmd_history: what earlier builds in the store of this command took; empty where there is no
 * store, and none is made. */
const struct history *cmd_history(struct cmd_context *c, const char *package, const char *release, struct arena *a)
	__attribute__((returns_nonnull));
/* cmd_cost: by the tables, this store's history and what is in the store; `root` is what it stands
 * on, `torch` what --torch names (NULL: nothing). */
int cmd_cost(struct cmd_context *c, const struct plan *p, const struct cmd_root_state *root, const char *torch,
	     struct arena *a, struct cmd_cost *ret, struct err *e) MUST_CHECK;
/* cmd_cost_time: the line for people. */
char *cmd_cost_time(const struct cmd_cost *k, struct arena *a);
