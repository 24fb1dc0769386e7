/* Repack: a wheel with another revision or as a variant; its compressed contents are copied. */
#pragma once
#include "step/pack/pack.h"

struct repack_variant {    /* PEP 825 */
	const char *label; /* "cpu.avx2" */
	const char *json;  /* what variant.json says */
};

struct repack_request {
	const char *wheel;         /* one that ptbuild packed */
	unsigned metadata_rev;     /* 0: that of the wheel */
	const char *generator;     /* "ptbuild 0.1.0" */
	const char *expect_sha256; /* of `wheel`, NULL: not compared */
	/* NULL: none. Else the version and what it pins lose their local labels: installers choose
	 * among the variants of one version */
	const struct repack_variant *variant;
	int level;           /* deflate level of the changed files */
	const char *out_dir; /* where the new wheel goes (existing) */
};

/* repack_wheel: the same bytes as pack_wheel for the same tree and input key with that revision.
 * All but WHEEL, marker, RECORD and the directory is copied without inflating. ERR_INTEGRITY for a
 * layout that is not ptbuild's own or a RECORD that does not list the entries in order. */
int repack_wheel(const struct repack_request *q, const struct run *run, struct arena *a, struct pack_result *ret,
		 struct err *e) MUST_CHECK;
