/* Of 'ptbuild slim': the GPUs of this machine, and the release where none is named. */
#pragma once
#include "cmd/cmd.h"
#include "core/machine/detect.h"

/* slim_native: finds what '--gpu native' means here ("sm80+sm90") and what the driver runs.
 * ERR_POLICY if there is no GPU or the driver does not work; the message says which. */
int slim_native(struct cmd_context *c, const struct detected **ret, struct err *e) MUST_CHECK;

struct slim_wish {
	const struct strlist *gpus;    /* of each wheel: "sm80+sm90" */
	const char *platform;          /* "x86_64-linux" */
	const char *python, *cuda;     /* NULL: any */
	const struct detected *native; /* its driver has to run it; NULL: any driver */
};

/* slim_newest_release: finds the newest release, of those taken where none is named, whose official
 * torch is for all of these by the tables. ERR_POLICY if there is none. */
int slim_newest_release(struct cmd_context *c, const struct slim_wish *w, const char **ret, struct err *e) MUST_CHECK;
