/* Index: a static simple repository (PEP 503, 592, 629, 658, 691, 700, 714) over a directory of
 * wheels, for pip and uv. */
#pragma once
#include "core/tables/tables.h"

#define INDEX_ALL "simple" /* the sub-directory that has every wheel */

struct index_request {
	const char *dir; /* holds the wheels, and gets the index */
	/* where the wheels of `dir` are served, NULL: beside the index, by relative links */
	const char *base_url;  /* of index_check_base */
	const struct run *run; /* where to log, and how the user stops it */
};

/* INDEX_ALL, or the directory of a profile: "cpu-avx2", by the versions' local labels. */
struct index_sub {
	const char *name;
	const char *label; /* of its wheels of torch: "cpu.avx2"; "" of INDEX_ALL */
	/* of each wheel in `dir` by name: its own ones and those that they pin */
	bool *has;
	/* of a profile, what to ask installers for: of each project the newest version, all of them
	 * with the newest torch: "torch==2.6.0+cpu.avx2"; and the wheels of these versions */
	struct strlist install, wheels;
	/* what a wheel pins and none is, but a yanked one or one for another accelerator, and what
	 * has no version for that torch; for people. INDEX_ALL has the pins of unlabelled wheels */
	struct strlist missing;
	struct kvlist pythons; /* Requires-Python of `wheels` that have one, by file */
};

/* In the directory of a profile: `install`, a line each, for pip and uv. */
#define INDEX_CONSTRAINTS "constraints.txt"
/* In INDEX_ALL: name, label, install, wheels, missing, requires_python of the others. */
#define INDEX_LISTING "ptbuild.json"

struct index_result {
	size_t wheels, projects, yanked;
	struct index_sub *subs;
	size_t count;
};

/* index_check_base: accepts an http, https or file URL, or a relative path, without spaces and
 * control characters; else ERR_USAGE. Such links as "javascript:" stay out of the pages. */
int index_check_base(const char *url, struct err *e) MUST_CHECK;
/* index_write: writes index.html and index.json into <name>/ and <name>/<project>/ below `dir`, for
 * each profile and for all wheels, a start page in `dir` that lists them, unless it has an
 * index.html that is not ptbuild's, INDEX_LISTING, INDEX_CONSTRAINTS, and <wheel>.metadata beside
 * each wheel. A wheel with a file <wheel>.yanked beside it is yanked; the first line is the reason.
 * The same wheels give the same bytes. Sub-directories are exchanged atomically, those without
 * wheels removed; concurrent calls wait. Nothing changes on an error: ERR_INTEGRITY names a bad
 * wheel, ERR_POLICY a directory of that name that is not an index. */
int index_write(const struct index_request *q, struct arena *a, struct index_result *ret,
		struct err *e) MUST_CHECK;

/* Wheel variants (PEP 825, 850: drafts): an index from which installers choose by the machine. */

#define VARIANTS_DIR "variants" /* below the directory of wheels */

/* Makes, in the directory `to`, the variant of a wheel that ptbuild packed; gives its file name. */
typedef int index_variant_fn(const char *wheel, const char *label, const char *json, const char *to,
			     const struct run *run, struct arena *a, const char **ret,
			     struct err *e);

struct index_variants {
	struct index_result index; /* of VARIANTS_DIR */
	/* files made and copied; what is left out, with the reason, for people */
	struct strlist made, plain, left;
};

/* index_variants: in VARIANTS_DIR each wheel of `q->dir` that has a profile's label, made with
 * `make`, with what the label promises as properties; wheels without a label as they are, for
 * installers that know no variants; and the index of them all. Yanked wheels, those whose label no
 * property says, and those that require one of these are left out. Wheels there that come from none
 * of `dir` are removed. As index_write, and ERR_USAGE where there is no variant. */
int index_variants(const struct index_request *q, const struct tables *t, index_variant_fn *make,
		   struct arena *a, struct index_variants *ret, struct err *e) MUST_CHECK;

/* Files next to the wheels of a set: constraints, one bill of materials, a stage for Docker. */

#define BUNDLE_CONSTRAINTS "constraints.txt"
#define BUNDLE_SBOM "sbom.cdx.json"
#define BUNDLE_DOCKERFILE "Dockerfile"

struct bundle_wheel {
	const char *path; /* in the directory */
	const char *name, *version;
	const char *sha256;
};

struct bundle_request {
	const char *dir;              /* holds the wheels and their index */
	const char *name;             /* of the bundle */
	const char *python, *machine; /* "3.13", "x86_64" */
	const struct bundle_wheel *wheels;
	size_t count;
	const struct strlist *install; /* the words that install it from /set */
	const struct tables *tables;   /* whose advisories the bill names */
};

/* bundle_write: writes BUNDLE_CONSTRAINTS for pip and uv; BUNDLE_SBOM, the wheels' bills as one
 * (CycloneDX 1.6), which lists shared components once, with the known vulnerabilities of those
 * that the tables have; BUNDLE_DOCKERFILE. The same wheels and tables give the same bytes.
 * ERR_INTEGRITY for a wheel with a malformed bill, ERR_POLICY for wheels that require other
 * versions of each other or are for other accelerators. */
int bundle_write(const struct bundle_request *q, struct arena *a, struct err *e) MUST_CHECK;
