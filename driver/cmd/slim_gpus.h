/* The GPUs of this machine and code that was slimmed: what runs where. */
#pragma once
#include "cmd/select.h"
#include "core/wheel/slim_marker.h"

/* cmd_env_doctor: shows what the environment at `dir` was slimmed for. ERR_POLICY if a GPU of this
 * machine runs none of it. */
int cmd_env_doctor(struct cmd_context *c, const char *dir, struct err *e) MUST_CHECK;
/* cmd_env_warn: a warning for each GPU of this machine that does not run code for these. */
int cmd_env_warn(struct cmd_context *c, const struct slim_marker *wanted, struct err *e) MUST_CHECK;
/* slim_native: finds what '--gpu native' means here ("sm80+sm90"), and the machine whose driver has
 * to run it. ERR_POLICY if there is no GPU or the driver does not work; the message says which. */
int slim_native(struct cmd_context *c, const char **ret, const struct hardware **ret_machine,
		struct err *e) MUST_CHECK;
