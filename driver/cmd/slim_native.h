/* Of 'ptbuild slim': the GPUs of this machine. */
#pragma once
#include "cmd/cmd.h"
#include "core/machine/detect.h"

/* slim_native: finds what '--gpu native' means here ("sm80+sm90"), and the machine whose
 * driver has to run it.
 * ERR_POLICY if there is no GPU or the driver does not work; the message says which. */
int slim_native(struct cmd_context *c, const char **ret, const struct hardware **ret_machine, struct err *e) MUST_CHECK;
