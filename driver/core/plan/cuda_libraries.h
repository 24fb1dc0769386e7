/* CUDA's libraries as a wheel needs them: which nvidia-* packages hold them, and where those put
 * them. */
#pragma once
#include "core/plan/plan.h"

struct cuda_needs {
	/* patterns of what these packages hold, and the driver's libraries: never taken into a
	 * wheel */
	struct strlist names;
	/* below site-packages, in the order of the table: "nvidia/cublas/lib" */
	struct strlist dirs;
	struct strlist requires; /* for METADATA: "nvidia-cublas-cu12>=12.4.5.8,<13", sorted */
};

/* cuda_needs: for a plan whose libraries have these NEEDED names. Only packages that hold one of
 * them are required; the directories of those that these need in turn are searched as well. Nothing
 * without CUDA. With the plan's cuda_libraries "system" there are names, and nothing to require or
 * to search. */
void cuda_needs(const struct plan *p, const struct strlist *needed, struct arena *a, struct cuda_needs *ret);
/* cuda_needed: the NEEDED names of every dynamic ELF file below a directory, each once. */
int cuda_needed(const char *tree, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
enum cuda_source {
	CUDA_UNKNOWN, /* no library of CUDA's */
	CUDA_DRIVER,  /* of the driver */
	CUDA_PACKAGE, /* of a package that is required */
	CUDA_SYSTEM,  /* of CUDA, but no required package holds it */
};

/* cuda_source: where a wheel that requires these distributions (as wheel_normalize gives them) gets
 * a library from. */
enum cuda_source cuda_source(const struct tables *t, const struct strlist *distributions, const char *name,
			     struct arena *a);
