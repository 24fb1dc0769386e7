/* Whether what is built by a plan can run with the torch of a wheel. */
#pragma once
#include "core/plan/plan.h"

/* torch_cuda: the CUDA of a wheel as it says it: "13.0", "" for none, NULL where it does not say.
 * ERR_INTEGRITY for a damaged wheel. */
int torch_cuda(const char *wheel, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* What is asked of it: rows of torch_fits.c. */
enum torch_need {
	TORCH_TAGS = 1,  /* the platform and glibc of its name; of extensions alone, as the next */
	TORCH_ABI = 2,   /* of its C++ library */
	TORCH_CUDA = 4,  /* the version, or none */
	TORCH_GPUS = 8,  /* its GPU code, of extensions. Takes seconds: it inflates 1 GB */
	TORCH_ROOT = 16, /* its libraries find NVIDIA's in the root and its toolkit */
	TORCH_WHEEL = TORCH_TAGS | TORCH_ABI | TORCH_CUDA,
};

struct torch_asked {
	const struct plan *plan;
	const char *wheel;    /* with `cuda` its name alone */
	const char *cuda;     /* as official wheels say it; NULL: the wheel is read */
	const char *glibc;    /* of the root; NULL: not known, and not asked */
	const char *unpacked; /* of TORCH_ROOT; NULL: nothing is asked */
	const struct root *root;
};

/* torch_fits: refuses by the first of these needs (enum torch_need) that the torch does not meet:
 * ERR_POLICY; ERR_SYSTEM for TORCH_ROOT; ERR_INTEGRITY for a damaged wheel. */
int torch_fits(const struct torch_asked *q, unsigned needs, struct arena *a,
	       struct err *e) MUST_CHECK;
