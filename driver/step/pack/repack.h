/* Repack: a wheel with another metadata revision, its packed contents copied as they are. */
#pragma once
#include "step/pack/pack.h"

struct repack_request {
	const char *wheel; /* one that ptbuild packed */
	unsigned metadata_rev;
	const char *generator;     /* "ptbuild 0.1.0" */
	const char *expect_sha256; /* of `wheel`, NULL: not compared */
	int level;                 /* deflate of what is written anew */
	const char *out_dir;       /* where the new wheel goes (existing) */
};

/* repack_wheel: the bytes that pack_wheel would give for the same tree and input key with that
 * revision: everything but WHEEL, marker, RECORD and the directory is copied, nothing is inflated.
 * ERR_INTEGRITY for a wheel whose layout is not ptbuild's own or whose RECORD does not list its
 * entries in their order. Written and renamed as pack_wheel does; unpacked_bytes is what RECORD
 * says. */
int repack_wheel(const struct repack_request *q, const struct run *run, struct arena *a, struct pack_result *ret,
		 struct err *e) MUST_CHECK;
