/* Pack: a tree into a wheel. */
#pragma once
#include "core/wheel/wheel.h"

/* On a torch tree not larger than zlib's 6 and three times as fast, see core/zip/zip_deflate.h. */
#define PACK_LEVEL 5

struct pack_request {
	const char *tree;             /* unpacked, relocated; its .dist-info is rewritten */
	const char *version;          /* full version the wheel must carry, "2.6.0+cpu.avx2" */
	const char *platform;         /* platform tag */
	struct strlist requires;      /* Requires-Dist to set: "torch==2.6.0+cpu.avx2" */
	struct strlist license_files; /* below dist-info/licenses */
	unsigned metadata_rev;
	const char *input_key; /* for the marker: key of all else that the bytes depend on */
	const char *generator; /* "ptbuild 0.1.0" */
	uint64_t epoch;
	unsigned threads;    /* 0 = processors */
	int level;           /* deflate, 0..9 */
	const char *out_dir; /* where the wheel goes (existing) */
};

struct pack_result {
	const char *path;
	const char *file;
	char sha256[65];
	uint64_t bytes, unpacked_bytes;
	size_t files;
};

/* pack_wheel: renames the dist-info to the version, writes METADATA (Version, Requires-Dist), WHEEL
 * (Generator, Tag), the marker .metadata-rev and RECORD, and drops direct_url.json, INSTALLER,
 * REQUESTED, RECORD's signatures and bytecode. Entries are sorted, dist-info last, in it the marker
 * and RECORD last. The marker is "rev=1 tool=ptbuild 0.1.0 input=<key>"; from revision 2 on the
 * revision is also the build tag. Written to a temporary name and renamed. ERR_INTEGRITY for files
 * that are not regular, ERR_POLICY when the wheel exists with other bytes. */
int pack_wheel(const struct pack_request *q, const struct run *run, struct arena *a, struct pack_result *ret,
	       struct err *e) MUST_CHECK;
