/* Whether what is built by a plan can run with the torch of a wheel. */
#pragma once
#include "core/plan/plan.h"

/* torch_cuda: the CUDA of a wheel as it says it: "13.0", "" for none, NULL where it does not say.
 * ERR_INTEGRITY for a damaged wheel. */
int torch_cuda(const char *wheel, struct arena *a, const char **ret, struct err *e) MUST_CHECK;
/* torch_fits: its platform and glibc (`glibc`: the root's; NULL: not known), the ABI of its C++
 * library, its CUDA; for a package of the release that alone. ERR_POLICY says which does not
 * fit. */
int torch_fits(const char *wheel, const struct plan *p, const char *glibc, struct arena *a,
	       struct err *e) MUST_CHECK;
/* torch_fits_cuda: the last alone, of a wheel that is for this CUDA, as torch_cuda and official
 * wheels say it. */
int torch_fits_cuda(const char *wheel, const char *has, const struct plan *p, struct arena *a,
		    struct err *e) MUST_CHECK;
/* torch_fits_root: ERR_SYSTEM where its libraries need one of NVIDIA's packages that neither the
 * root nor its toolkit has, so that it could not be imported there. `unpacked` likewise. */
int torch_fits_root(const char *unpacked, const struct plan *p, const struct root *root,
		    struct arena *a, struct err *e) MUST_CHECK;
/* torch_fits_gpus: whether its GPU code runs on the plan's targets. Takes seconds: a library of
 * 1 GB is inflated. */
int torch_fits_gpus(const char *wheel, const struct plan *p, struct arena *a,
		    struct err *e) MUST_CHECK;
