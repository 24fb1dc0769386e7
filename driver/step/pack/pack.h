/* Pack: a tree into a wheel. */
#pragma once
#include "core/wheel/wheel.h"

/* The level to ask for: on a torch tree not larger than zlib's 6 and three times as fast, see
 * core/zip_deflate.h. */
#define PACK_LEVEL 5

struct pack_request {
	const char *tree;     /* unpacked and relocated; its .dist-info is rewritten in place */
	const char *version;  /* full version the wheel must carry, "2.6.0+cpu.avx2" */
	const char *platform; /* platform tag */
	/* Requires-Dist lines that replace those of the same distribution and are added otherwise:
	 * "torch==2.6.0+cpu.avx2" */
	struct strlist requires;
	/* below dist-info/licenses, in METADATA from version 2.4 on */
	struct strlist license_files;
	unsigned metadata_rev;
	/* what the bytes come from beside the revision, written into the marker */
	const char *input_key;
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

/* pack_wheel: dist-info renamed to the version, METADATA (Version, Requires-Dist), WHEEL
 * (Generator, Tag lines), .metadata-rev and RECORD written; direct_url.json, INSTALLER, REQUESTED
 * and RECORD signatures dropped; entries sorted, dist-info last, the marker just before RECORD,
 * RECORD the very last. Python bytecode is left out; anything but regular files is ERR_INTEGRITY.
 * The marker says "rev=1 tool=ptbuild 0.1.0 input=<key>"; from revision 2 on the revision is also
 * the build tag. Each file is read once. Written to a temporary name and renamed; an existing file
 * of that name with other bytes is ERR_POLICY. */
int pack_wheel(const struct pack_request *q, const struct run *run, struct arena *a, struct pack_result *ret,
	       struct err *e) MUST_CHECK;
