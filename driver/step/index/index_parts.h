/* What the files of the index step share. */
#pragma once
#include "core/wheel/dist.h"
#include "step/index/index.h"

#define INDEX_VARIANTS_FILE "-variants.json" /* behind "torch-2.6.0" (PEP 825) */

struct index_wheel {
	const char *file;
	const char *project; /* normalised with dashes, as URLs have it */
	bool spelt_so;       /* METADATA spells the name as `project` does */
	const char *version;
	const char *label;   /* "cpu.avx2"; "" without one */
	const char *profile; /* "cpu-avx2", of the label */
	struct dist dist;
	struct kvlist pins;  /* project and version of what it requires with ==, where it is for */
	struct kvlist takes; /* project and specifier of what else it requires there */
	const char *sha256;
	uint64_t size;
	const char *metadata; /* the text of METADATA */
	size_t metadata_len;
	const char *metadata_sha256;
	const char *requires_python; /* "" if none */
	const char *variants;        /* the file about its version's variants; NULL */
	bool root_torch; /* it was built against a torch that is no wheel: of its root */
	bool yanked;
	const char *reason; /* "" if none */
};

/* index_read: the facts about a wheel in `dir`. */
int index_read(const char *dir, const char *file, struct arena *a, struct index_wheel *ret,
	       struct err *e) MUST_CHECK;
