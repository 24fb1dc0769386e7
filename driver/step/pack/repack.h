/* Repack: a wheel with another metadata revision; its compressed contents are copied. */
#pragma once
#include "step/pack/pack.h"

struct repack_request {
	const char *wheel; /* one that ptbuild packed */
	unsigned metadata_rev;
	const char *generator;     /* "ptbuild 0.1.0" */
	const char *expect_sha256; /* of `wheel`, NULL: not compared */
	int level;                 /* deflate level of the changed files */
	const char *out_dir;       /* where the new wheel goes (existing) */
};

/* repack_wheel: the same bytes as pack_wheel for the same tree and input key with that revision.
 * All but WHEEL, marker, RECORD and the directory is copied without inflating. ERR_INTEGRITY for a
 * layout that is not ptbuild's own or a RECORD that does not list the entries in order. */
int repack_wheel(const struct repack_request *q, const struct run *run, struct arena *a, struct pack_result *ret,
		 struct err *e) MUST_CHECK;
