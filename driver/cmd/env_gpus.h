/* For which GPUs an environment has code, and whether those of this machine run it. */
#pragma once
#include "cmd/select.h"
#include "core/wheel/slim_marker.h"

/* cmd_env_doctor: shows what the environment at `dir` was slimmed for. ERR_POLICY if a GPU of this
 * machine runs none of it. */
int cmd_env_doctor(struct cmd_context *c, const char *dir, struct err *e) MUST_CHECK;
/* cmd_env_warn: a warning for each GPU of this machine that does not run code for these. */
int cmd_env_warn(struct cmd_context *c, const struct slim_marker *wanted, struct err *e) MUST_CHECK;
