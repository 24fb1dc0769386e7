/* What the user may ask of a plan besides the variant. The command line is parsed straight into
 * this struct, and it is handed on whole: a new option is a field here, a row in cmd_plan_options
 * and its use. */
#pragma once
#include "base/base.h"

struct plan_options {
	const char *blas;      /* NULL: the profile's, else the platform's */
	struct kvlist toggles; /* --set NAME=VALUE */
	/* --source FILE=SHA256: archives whose digest no table has, with the user's own */
	struct kvlist sources;
	struct strlist without; /* features to drop: "cudnn" */
	/* what torchvision and torchaudio are built against: "root", a wheel's path, or NULL: the
	 * torch of the same variant */
	const char *torch;
	/* "packages" (NULL too): the nvidia-* packages, which the wheel requires; "system":
	 * wherever the loader finds them */
	const char *cuda_libraries;
	const char *platform_tag; /* "manylinux" (NULL too): as the libraries allow; "linux" */
	unsigned metadata_rev;    /* 0 = 1 */
};
