/* The CUDA libraries of a wheel: which nvidia-* packages have them, and in which directories. */
#pragma once
#include "core/plan/plan.h"
#include "core/wheel/requirement.h"

struct cuda_needs {
	/* patterns of the packages' and the driver's libraries, which are never copied into a
	 * wheel */
	struct strlist names;
	/* below site-packages, in the order of the table: "nvidia/cublas/lib" */
	struct strlist dirs;
	struct strlist requires; /* for METADATA: "nvidia-cublas-cu12>=12.4.5.8,<13", sorted */
};

/* cuda_needs: what a wheel of this plan needs if its libraries have these NEEDED names. Required
 * are the packages that have one of them; the directories of what those need are searched as well.
 * All empty without CUDA; only `names` if the plan's cuda_libraries is "system". */
void cuda_needs(const struct plan *p, const struct strlist *needed, struct arena *a,
		struct cuda_needs *ret);
/* cuda_needed: the NEEDED names of every dynamic ELF file below a directory, each once. */
int cuda_needed(const char *tree, struct arena *a, struct strlist *ret, struct err *e) MUST_CHECK;
enum cuda_source {
	CUDA_UNKNOWN, /* no library of CUDA's */
	CUDA_DRIVER,  /* of the driver */
	CUDA_PACKAGE, /* of a package that is required */
	CUDA_SYSTEM,  /* of CUDA, but no required package holds it */
};

/* cuda_source: where a library comes from in a wheel that brings these distributions (names as
 * from wheel_normalize). */
enum cuda_source cuda_source(const struct tables *t, const struct strlist *distributions,
			     const char *name, struct arena *a);
/* cuda_brings: adds what a requirement brings, by the tables: the distribution itself, what its
 * extras bring if it is a bundle, and what these require in turn. */
void cuda_brings(const struct tables *t, const struct requirement *r, struct arena *a,
		 struct strlist *ret);
/* cuda_holders: adds the packages that hold a library: "nvidia-cublas-cu12". */
void cuda_holders(const struct tables *t, const char *name, struct arena *a, struct strlist *ret);
/* cuda_clash: finds two packages of different CUDA lines that install the same files.
 * `distributions` are normalized ("nvidia_nccl_cu12"). True with the names of both as the tables
 * have them ("nvidia-nccl-cu12"; owned by the tables); false if there are none. */
bool cuda_clash(const struct tables *t, const struct strlist *distributions, struct arena *a,
		const char *ret[2]);
